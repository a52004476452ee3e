# SPDX-License-Identifier: MIT
"""One cell among all: for sources, and what happens in one place."""
from __future__ import annotations

from functools import reduce
from operator import and_

from controllers.language.grid import Grid, PerAxis
from controllers.language.value import Value
from controllers.program.expression import Index, where
from hitmap.argument import instance


def point(grid: Grid, position: PerAxis) -> Value:
    """1 in the cell that holds a position, 0 in all others; for use in a step, with cells.

    position: a coordinate per axis, in their order or by name; ValueError outside the grid.
    """
    instance(grid, Grid, "point: grid", "write point(grid, position)")
    cell = grid.cell(position)
    conditions = [Index(axis) == number for axis, number in enumerate(cell)]
    at_cells = (False,) * len(cell)
    return Value(where(reduce(and_, conditions), 1, 0), grid.places, half=at_cells)
