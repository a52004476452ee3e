# SPDX-License-Identifier: MIT
"""Parts: host arrays with the owned cells of places, and what collective functions ask of them."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hitmap.agreement import raise_together
from hitmap.comm import Communicator
from hitmap.layout import Layout
from hitmap.shape import Shape


def check_ranks(layout: Layout, ranks: Sequence[int], comm: Communicator) -> None:
    """ValueError unless each place has a rank of `comm`."""
    if len(ranks) != layout.n_places:
        raise ValueError(f"ranks: one per place, {layout.n_places} places, got {len(ranks)}")
    for rank in ranks:
        if not 0 <= rank < comm.size:
            raise ValueError(f"ranks must be in 0..{comm.size - 1}, got {rank}")


def check_parts(
    parts: Mapping[int, npt.NDArray[Any]],
    layout: Layout,
    ranks: Sequence[int],
    comm: Communicator,
    dtype: np.dtype[Any],
    also: str | None = None,
) -> None:
    """ValueError on every rank unless each has an array for all its places.  Collective.

    `also` is a problem that this rank has found itself.
    """
    mine = [place for place, rank in enumerate(ranks) if rank == comm.rank]
    problems = [problem(parts.get(p), layout.owned[p], f"place {p}", dtype) for p in mine]
    raise_together(comm, next(filter(None, [*problems, also]), None))


def problem(
    array: npt.NDArray[Any] | None, box: Shape, what: str, dtype: np.dtype[Any] | None = None
) -> str | None:
    """Why `array` cannot hold the cells of `box`, or None."""
    if array is None:
        return f"{what}: an array {box.extent} is needed, got None"
    if not isinstance(array, np.ndarray):
        kind = type(array).__name__
        return f"{what}: a NumPy array {box.extent} is needed, got {kind}; use numpy.asarray"
    if array.shape != box.extent:
        return f"{what}: must have the extent {box.extent} of {box}, got {array.shape}"
    if array.dtype.hasobject:
        return f"{what}: must hold plain numbers or structs, got dtype {array.dtype}"
    if dtype is not None and array.dtype != dtype:
        return f"{what}: must have dtype {dtype}, got {array.dtype}; convert it with astype"
    return None
