# SPDX-License-Identifier: MIT
"""What is moved before a job, as far as is foreseen."""
from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from controllers.pool.data import Touch
from controllers.pool.newest import HOST_MEMORY, Move
from hitmap.region import Region

Upto: TypeAlias = tuple[float, ...]     # seconds of the first 0, 1 ... parts


def foresee(touches: Sequence[Touch], memory: int, *, replica: bool) -> None:
    """A job that computes there will be done."""
    for touch in touches:
        for _, target, cells in moves_of(touch, memory, replica=replica):
            touch.datum.foreseen.brought(target, cells)
    for touch in touches:
        if touch.writes and replica and memory != HOST_MEMORY:
            touch.datum.foreseen.spoilt(memory, touch.box)  # until the host has written it
        elif touch.writes:
            touch.datum.foreseen.wrote(memory, touch.box)


def moves_of(touch: Touch, memory: int, *, replica: bool) -> Sequence[Move]:
    """What is moved before a job that computes there, as far as is foreseen (`Memories.before`)."""
    foreseen = touch.datum.foreseen
    there: Sequence[Move] = ()
    if touch.reads and not foreseen.has(memory, touch.box):
        there = foreseen.moves(memory, touch.box)
    if not replica or memory == HOST_MEMORY:
        return there
    to_host = foreseen.moves(HOST_MEMORY, touch.box)
    return [*to_host, *(move for move in there if move[1] == memory)]


def rows_of(touch: Touch) -> tuple[int, int] | None:
    """The first row of its memory that an array has, and the one after the last one.

    None where it is no box of rows.
    """
    if not touch.is_box or touch.box.extent != touch.view.shape:
        return None
    return touch.box.lower[0], touch.box.upper[0]


@lru_cache(maxsize=256)     # while nothing changes tasks are foreseen to move the same
def moved_upto(moves: tuple[tuple[float, Region, tuple[int, int] | None], ...], n: int) -> Upto:
    """How long it takes to move what is needed of the first 0, 1 ... n of n parts of the rows.

    moves: how long each of them takes for all of its cells, and which rows are divided; None where
    cells are taken for evenly distributed.

    >>> from hitmap.shape import Shape
    >>> moved_upto(((8.0, Region.of([Shape((2,), (4,))]), (0, 4)), (1.0, Region(), None)), 4)
    (0.0, 0.25, 0.5, 4.75, 9.0)
    """
    found = np.zeros(n + 1)
    for seconds, cells, rows in moves:
        if rows is None:
            found += np.linspace(0, seconds, n + 1)
            continue
        for box in cells.boxes:
            ends, all_s = (box.lower[0], box.upper[0]), seconds * box.n_cells / cells.n_cells
            found += np.interp(np.linspace(*rows, n + 1), ends, (0, all_s))
    return tuple(found.tolist())
