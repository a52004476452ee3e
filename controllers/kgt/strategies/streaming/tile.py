# SPDX-License-Identifier: MIT
"""The tile of a work-group of "streaming": its size, its margins, and who needs whose cells.

    low reach 1, T = 3, cells (4, 1), items (8, 1)

    |margin  |useful                  |     |     loaded: 8 items of 4 cells
    |x x x . |. . . .|. . .  ...  . . |x x x|     x: spoilt by the tile's edge, one cell per step
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from controllers.kgt.strategies.streaming.parameters import StreamingParameters
from controllers.program.expression import Read, reads
from controllers.program.following import leading
from controllers.program.program import Stage

WARP = 32       # items that may shuffle cells between each other
LOOPS = "ijk"   # over the cells of an item, along the last axis, the last but one, the last but two


class HandOver(NamedTuple):
    """A cell that an item needs and another one has; places count from the item's first cell."""

    to: tuple[int, ...]     # outside of the item's own cells
    cell: tuple[int, ...]   # in the other item's cells
    away: int               # items between the two, in the order of the group
    shuffled: bool


@dataclass(frozen=True)
class WorkTile:
    """Lengths are per axis of the stage, 1 or 0 along the one that is streamed.

    axes: those of the tile.  low, high: the reach into the stage's own field.  cells: of an item.
    items: of the group.  margin: cells before the first one that is written.  useful: those
    written.
    """

    streams: bool
    axes: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    cells: tuple[int, ...]
    items: tuple[int, ...]
    margin: tuple[int, ...]
    useful: tuple[int, ...]

    @classmethod
    def of(cls, stage: Stage, parameters: StreamingParameters) -> WorkTile:
        """The tile for `stage`; ValueError where no cell of it would be written."""
        n_axes, steps = len(stage.offsets), parameters.steps_per_launch
        stage = leading(stage)
        axes = tuple(range(min(1, n_axes - 1), n_axes))
        offsets = [at.offset for at in reads(stage.expression) if at.field == stage.writes]
        low = tuple(max([0, *(-at[axis] for at in offsets)]) for axis in range(n_axes))
        high = tuple(max([0, *(at[axis] for at in offsets)]) for axis in range(n_axes))
        cells, items, margin, useful = [1] * n_axes, [1] * n_axes, [0] * n_axes, [1] * n_axes
        for axis in axes:
            cells[axis] = parameters.cells[n_axes - 1 - axis]
            items[axis] = parameters.group[n_axes - 1 - axis]
            unit = parameters.vector if axis == n_axes - 1 else 1
            margin[axis] = -(-steps * low[axis] // unit) * unit
            left = cells[axis] * items[axis] - margin[axis] - steps * high[axis]
            useful[axis] = left // unit * unit
            if useful[axis] < 1:
                raise ValueError(
                    f"stage {stage.name!r}: {steps} steps spoil {steps * (low[axis] + high[axis])} "
                    f"cells along axis {axis}, a tile has {cells[axis] * items[axis]} there; take "
                    f"fewer steps or more cells"
                )
        lengths = (tuple(each) for each in (cells, items, margin, useful))
        return cls(n_axes > 1, axes, low, high, *lengths)

    @property
    def n_items(self) -> int:
        """Items of the group."""
        return prod(self.items)

    @property
    def block(self) -> tuple[int, ...]:
        """Cells of an item, per axis of the tile."""
        return tuple(self.cells[axis] for axis in self.axes)

    @property
    def before(self) -> tuple[int, ...]:
        """Cells before those of an item that it may need, per axis of the tile."""
        return tuple(self.low[axis] for axis in self.axes)

    @property
    def extended(self) -> tuple[int, ...]:
        """All cells that an item may need, per axis of the tile."""
        return tuple(self.low[axis] + self.cells[axis] + self.high[axis] for axis in self.axes)

    @property
    def loops(self) -> tuple[str, ...]:
        """The variables of the loops over an item's cells, per axis of the tile."""
        return tuple(reversed(LOOPS[: len(self.axes)]))

    def inner(self, offset: Sequence[int]) -> tuple[int, ...]:
        """An offset of the stage, on the axes of the tile."""
        return tuple(offset[axis] for axis in self.axes)

    def hand_overs(self, stage: Stage, shuffles: bool) -> list[HandOver]:
        """The cells that pass between items; by shuffles where both are in one warp."""
        own = [read for read in reads(stage.expression) if read.field == stage.writes]
        return [
            self._hand_over(to, shuffles)
            for to in sorted(set(self._needed(own)))
            if any(not 0 <= place < count for place, count in zip(to, self.block))
        ]

    def _needed(self, own: Sequence[Read]) -> Iterator[tuple[int, ...]]:
        for read, cell in product(own, product(*map(range, self.block))):
            yield tuple(place + step for place, step in zip(cell, self.inner(read.offset)))

    def _hand_over(self, to: tuple[int, ...], shuffles: bool) -> HandOver:
        parts = [divmod(place, count) for place, count in zip(to, self.block)]
        away = 0
        for (items, _), axis in zip(parts, self.axes):
            away = away * self.items[axis] + items
        along_last = not any(items for items, _ in parts[:-1]) and WARP % self.items[-1] == 0
        warp = self.n_items <= WARP or along_last
        return HandOver(to, tuple(cell for _, cell in parts), away, shuffles and warp)
