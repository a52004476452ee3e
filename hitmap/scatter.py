# SPDX-License-Identifier: MIT
"""A whole array on one rank <-> the owned cells of every place on the ranks that hold them.

Place by place, in messages of bounded size that are runs of consecutive cells of the place, so
that no second copy of a share is made.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hitmap.agreement import agree_on_call, raise_together
from hitmap.argument import whole
from hitmap.comm import Communicator, receive, send
from hitmap.conversion import convert
from hitmap.layout import Layout
from hitmap.part import check_parts, check_ranks, problem
from hitmap.shape import Shape
from hitmap.strided import consecutive

MESSAGE_NBYTES = 2**30
BROADCAST_NBYTES = 2**26   # of which each rank has a copy meanwhile


def scatter(
    whole: npt.NDArray[Any] | None,
    layout: Layout,
    ranks: Sequence[int],
    comm: Communicator,
    root: int = 0,
    dtype: npt.DTypeLike | None = None,
    *,
    message_nbytes: int = MESSAGE_NBYTES,
) -> dict[int, npt.NDArray[Any]]:
    """Give each place its owned cells; {place: new contiguous array} for the places of this rank.

    whole: [*layout.domain.extent] on root, ignored elsewhere.  `ranks[place]` holds the place.
    dtype: of the new arrays, root's values being converted (`hitmap.conversion`); None: root's.
    Collective: the other arguments must be the same on all ranks; ValueError on all of them if
    they are not, or if root's array or one of its values does not fit.
    """
    wanted = None if dtype is None else np.dtype(dtype)
    _check("scatter", layout, ranks, comm, root, dtype=wanted)
    is_root = comm.rank == root
    whole = whole if is_root else None
    raise_together(comm, problem(whole, layout.domain, "the whole array") if is_root else None)
    if wanted is None:
        wanted = np.dtype(comm.bcast(None if whole is None else whole.dtype, root))
    parts: dict[int, npt.NDArray[Any]] = {}
    misfit: str | None = None
    for place, (rank, box) in enumerate(zip(ranks, layout.owned, strict=True)):
        if rank == comm.rank:
            parts[place] = np.empty(box.extent, wanted)
        for run in consecutive(box, message_nbytes // wanted.itemsize):
            own = parts[place][run.slices(box.lower)] if rank == comm.rank else None
            if whole is not None:
                cells = whole[run.slices(layout.domain.lower)]
                target = _room_for(cells, wanted) if own is None else own
                if target is not cells and misfit is None:  # else nobody will see the values
                    misfit = _misfit(cells, target, run)
                if own is None:
                    send(comm, target, rank)
            elif own is not None:
                receive(comm, own, root)
    if dtype is not None:
        raise_together(comm, misfit)
    return parts


def _room_for(cells: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An array for them that can be sent: they themselves, or a new one to be filled."""
    if cells.dtype == dtype and cells.flags.c_contiguous:
        return cells
    return np.empty(cells.shape, dtype)


def _misfit(cells: npt.NDArray[Any], target: npt.NDArray[Any], box: Shape) -> str | None:
    """Copy `cells` of `box`, converted; which of them does not fit."""
    try:
        convert(cells, target, box.lower)
    except ValueError as error:
        return f"the whole array: {error}"
    return None


def gather(
    parts: Mapping[int, npt.NDArray[Any]],
    layout: Layout,
    ranks: Sequence[int],
    comm: Communicator,
    dtype: npt.DTypeLike,
    root: int = 0,
    out: npt.NDArray[Any] | None = None,
    *,
    message_nbytes: int = MESSAGE_NBYTES,
) -> npt.NDArray[Any] | None:
    """Bring the owned cells of all places together on root; None on the other ranks.

    parts: for each place of this rank an array [*layout.owned[place].extent] of `dtype`.
    out: [*layout.domain.extent] on root, a `numpy.memmap` for instance; a new array if None.
    Collective: `layout`, `ranks`, `dtype` and `root` must be the same on all ranks; ValueError
    on all of them if they are not, or if some rank's arrays do not fit.
    """
    dtype = np.dtype(dtype)
    _check("gather", layout, ranks, comm, root, dtype=dtype)
    whole, problem_of_out = None, None
    if comm.rank == root:
        whole = np.empty(layout.domain.extent, dtype) if out is None else out
        problem_of_out = problem(whole, layout.domain, "out", dtype)
    check_parts(parts, layout, ranks, comm, dtype, also=problem_of_out)
    for place, (rank, box) in enumerate(zip(ranks, layout.owned, strict=True)):
        for run in consecutive(box, message_nbytes // dtype.itemsize):
            if whole is not None:
                cells = whole[run.slices(layout.domain.lower)]
                if rank == root:
                    cells[...] = parts[place][run.slices(box.lower)]
                else:
                    _receive_into(cells, comm, rank)
            elif rank == comm.rank:
                send(comm, np.ascontiguousarray(parts[place][run.slices(box.lower)]), root)
    return whole


def everywhere(
    whole: npt.NDArray[Any] | None,
    domain: Shape,
    dtype: npt.DTypeLike,
    comm: Communicator,
    *,
    message_nbytes: int = BROADCAST_NBYTES,
) -> npt.NDArray[Any]:
    """The array [*domain.extent] that rank 0 has (None elsewhere), on every rank.  Collective."""
    result = np.empty(domain.extent, dtype) if whole is None else whole
    if comm.size > 1:
        for run in consecutive(domain, message_nbytes // result.itemsize):
            cells = result[run.slices(domain.lower)]
            got = comm.bcast(cells if comm.rank == 0 else None)
            if got is not None and comm.rank != 0:
                cells[...] = got
    return result


def _receive_into(cells: npt.NDArray[Any], comm: Communicator, source: int) -> None:
    """Receive into an array that need not be contiguous."""
    if cells.flags.c_contiguous:
        receive(comm, cells, source)
    else:
        buffer = np.empty(cells.shape, cells.dtype)
        receive(comm, buffer, source)
        cells[...] = buffer


def _check(
    call: str,
    layout: Layout,
    ranks: Sequence[int],
    comm: Communicator,
    root: int,
    **also: object,
) -> None:
    """Collective."""
    where = layout.domain, layout.owned, tuple(ranks), root
    agree_on_call(comm, call, {**also, "layout, ranks and root": where})
    check_ranks(layout, ranks, comm)
    root = whole(root, "root")
    if not 0 <= root < comm.size:
        raise ValueError(f"root must be in 0..{comm.size - 1}, got {root}")
