# SPDX-License-Identifier: MIT
"""A whole array on one rank <-> the owned cells of every place on the ranks that hold them.

Place by place, in messages of bounded size that are runs of consecutive cells of the place, so
that no second copy of a share is made.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hitmap.agreement import agree, raise_together
from hitmap.comm import Communicator, receive, send
from hitmap.layout import Layout
from hitmap.shape import Shape

_MESSAGE_NBYTES = 2**30


def scatter(
    whole: npt.NDArray[Any] | None,
    layout: Layout,
    ranks: Sequence[int],
    comm: Communicator,
    root: int = 0,
    *,
    message_nbytes: int = _MESSAGE_NBYTES,
) -> dict[int, npt.NDArray[Any]]:
    """Give each place its owned cells; {place: new contiguous array} for the places of this rank.

    whole: [*layout.domain.extent] on root, ignored elsewhere.  `ranks[place]` holds the place.
    Collective: the other arguments must be the same on all ranks; ValueError on all of them if
    they are not, or if root's array does not fit.
    """
    _check(layout, ranks, comm, root)
    is_root = comm.rank == root
    whole = whole if is_root else None
    raise_together(comm, _problem(whole, layout.domain, "the whole array") if is_root else None)
    dtype = np.dtype(comm.bcast(None if whole is None else whole.dtype, root))
    parts: dict[int, npt.NDArray[Any]] = {}
    for place, (rank, box) in enumerate(zip(ranks, layout.owned, strict=True)):
        if rank == comm.rank:
            parts[place] = np.empty(box.extent, dtype)
        for run in _runs(box, message_nbytes, dtype):
            if whole is not None:
                cells = whole[run.slices(layout.domain.lower)]
                if rank == root:
                    parts[place][run.slices(box.lower)] = cells
                else:
                    send(comm, np.ascontiguousarray(cells), rank)
            elif rank == comm.rank:
                receive(comm, parts[place][run.slices(box.lower)], root)
    return parts


def gather(
    parts: Mapping[int, npt.NDArray[Any]],
    layout: Layout,
    ranks: Sequence[int],
    comm: Communicator,
    dtype: npt.DTypeLike,
    root: int = 0,
    out: npt.NDArray[Any] | None = None,
    *,
    message_nbytes: int = _MESSAGE_NBYTES,
) -> npt.NDArray[Any] | None:
    """Bring the owned cells of all places together on root; None on the other ranks.

    parts: for each place of this rank an array [*layout.owned[place].extent] of `dtype`.
    out: [*layout.domain.extent] on root, a `numpy.memmap` for instance; a new array if None.
    Collective: `layout`, `ranks`, `dtype` and `root` must be the same on all ranks; ValueError
    on all of them if they are not, or if some rank's arrays do not fit.
    """
    dtype = np.dtype(dtype)
    _check(layout, ranks, comm, root)
    agree(comm, "gather: dtype", dtype)
    mine = [place for place, rank in enumerate(ranks) if rank == comm.rank]
    problems = [_problem(parts.get(p), layout.owned[p], f"place {p}", dtype) for p in mine]
    whole = None
    if comm.rank == root:
        whole = np.empty(layout.domain.extent, dtype) if out is None else out
        problems.append(_problem(whole, layout.domain, "out", dtype))
    raise_together(comm, next(filter(None, problems), None))
    for place, (rank, box) in enumerate(zip(ranks, layout.owned, strict=True)):
        for run in _runs(box, message_nbytes, dtype):
            if whole is not None:
                cells = whole[run.slices(layout.domain.lower)]
                if rank == root:
                    cells[...] = parts[place][run.slices(box.lower)]
                else:
                    _receive_into(cells, comm, rank)
            elif rank == comm.rank:
                send(comm, np.ascontiguousarray(parts[place][run.slices(box.lower)]), root)
    return whole


def _receive_into(cells: npt.NDArray[Any], comm: Communicator, source: int) -> None:
    """Receive into an array that need not be contiguous."""
    if cells.flags.c_contiguous:
        receive(comm, cells, source)
    else:
        buffer = np.empty(cells.shape, cells.dtype)
        receive(comm, buffer, source)
        cells[...] = buffer


def _runs(box: Shape, message_nbytes: int, dtype: np.dtype[Any], axis: int = 0) -> Iterator[Shape]:
    """`box` in C order as boxes of consecutive cells, each of at most `message_nbytes`.

    >>> [str(run) for run in _runs(Shape.of_extent((3, 4)), 64, np.dtype("f8"))]
    ['[0:2, 0:4]', '[2:3, 0:4]']
    """
    if box.empty:
        return
    row_nbytes = math.prod(box.extent[axis + 1 :]) * dtype.itemsize
    is_last = axis == box.n_axes - 1
    step = max(1, message_nbytes // max(1, row_nbytes))
    for lower in range(box.lower[axis], box.upper[axis], step):
        slab = box.slab(axis, lower, min(lower + step, box.upper[axis]))
        if row_nbytes <= message_nbytes or is_last:
            yield slab
        else:
            yield from _runs(slab, message_nbytes, dtype, axis + 1)


def _check(layout: Layout, ranks: Sequence[int], comm: Communicator, root: int) -> None:
    """Collective."""
    agree(comm, "layout, ranks and root", (layout.domain, layout.owned, tuple(ranks), root))
    if len(ranks) != layout.n_places:
        raise ValueError(f"ranks: one per place, {layout.n_places} places, got {len(ranks)}")
    for rank in (*ranks, root):
        if not 0 <= rank < comm.size:
            raise ValueError(f"ranks and root must be in 0..{comm.size - 1}, got {rank}")


def _problem(
    array: npt.NDArray[Any] | None, box: Shape, what: str, dtype: np.dtype[Any] | None = None
) -> str | None:
    """Why `array` cannot hold the cells of `box`, or None."""
    if array is None:
        return f"{what}: an array {box.extent} is needed, got None"
    if array.shape != box.extent:
        return f"{what}: must have the extent {box.extent} of {box}, got {array.shape}"
    if array.dtype.hasobject:
        return f"{what}: must hold plain numbers or structs, got dtype {array.dtype}"
    if dtype is not None and array.dtype != dtype:
        return f"{what}: must have dtype {dtype}, got {array.dtype}; convert it with astype"
    return None
