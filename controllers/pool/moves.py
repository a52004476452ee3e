# SPDX-License-Identifier: MIT
"""What is moved before a job, as far as is foreseen."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from controllers.estimates.median_fit import Floats
from controllers.estimates.task_key import TaskKey
from controllers.pool.data import Touch
from controllers.pool.lane import Lane
from controllers.pool.newest import HOST_MEMORY, Move
from hitmap.region import Region


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


def moves_of(touch: Touch, memory: int, *, replica: bool) -> list[Move]:
    """What is moved before a job that computes there, as far as is foreseen (`Memories.before`)."""
    foreseen = touch.datum.foreseen
    there = []
    if touch.reads and not foreseen.has(memory, touch.box):
        there = foreseen.moves(memory, touch.box)
    if not replica or memory == HOST_MEMORY:
        return there
    to_host = foreseen.moves(HOST_MEMORY, touch.box)
    return [*to_host, *(move for move in there if move[1] == memory)]


def move_key(lanes: Sequence[Lane], memory: int, *, to_device: bool) -> TaskKey | None:
    """Under which times of transfers are kept; None where there are none."""
    for lane in lanes:
        if lane.memory == memory != HOST_MEMORY and lane.device is not None:
            return TaskKey.of("a transfer", "to it" if to_device else "from it", lane.device)
    return None


def found_upto(cells: Region, touch: Touch, n: int) -> Floats:
    """Which part of `cells` is in the first 0, 1 ... n of n parts of the rows of an array."""
    if not touch.is_box or touch.box.extent != touch.view.shape:
        return np.linspace(0, 1, n + 1)
    rows = np.linspace(touch.box.lower[0], touch.box.upper[0], n + 1)
    found = np.zeros(n + 1)
    for box in cells.boxes:
        found += np.interp(rows, (box.lower[0], box.upper[0]), (0, box.n_cells / cells.n_cells))
    return found


def rounded(nbytes: int) -> float:
    """To an eighth, so that there are few unlike sizes.

    >>> rounded(1000), rounded(1001)
    (960.0, 960.0)
    """
    step = 1 << max(0, nbytes.bit_length() - 4)
    return float(nbytes // step * step)
