# SPDX-License-Identifier: MIT
"""The tile of a work-group of "streaming": its size, margins, and who needs whose cells."""
from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple, Protocol

from controllers.expression import Read, reads
from controllers.program import Stage

WARP = 32


class Shape(Protocol):
    """What a tile takes of a configuration."""

    @property
    def steps_per_launch(self) -> int: ...
    @property
    def cells(self) -> tuple[int, int, int]: ...
    @property
    def group(self) -> tuple[int, int, int]: ...
    @property
    def vector(self) -> int: ...
    @property
    def shuffles(self) -> bool: ...


class HandOver(NamedTuple):
    """A cell that an item needs: where in its own, extended block; whose it is, and which."""

    to: tuple[int, ...]
    cell: tuple[int, ...]
    away: int           # items, in the order of the group
    shuffled: bool


@dataclass(frozen=True)
class Tile:
    """Everything per axis of the stage; 1 and 0 along the axis that is streamed.

    low, high: the reach into the stage's own field.  cells: of an item's block.  items: of the group.  margin: cells before
    the first one that is written.  useful: those written.
    """

    streams: bool
    axes: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    cells: tuple[int, ...]
    items: tuple[int, ...]
    margin: tuple[int, ...]
    useful: tuple[int, ...]
    hand_overs: tuple[HandOver, ...]

    @classmethod
    def of(cls, stage: Stage, made: Shape) -> Tile:
        """The tile for `stage`; ValueError where nothing of it would be written."""
        n_axes = len(stage.shape)
        streams = n_axes > 1
        axes = tuple(range(1 if streams else 0, n_axes))
        own = [read for read in reads(stage.expression) if read.field == stage.writes]
        offsets = [read.offset for read in own]
        low = tuple(max([0, *(-o[a] for o in offsets)]) for a in range(n_axes))
        high = tuple(max([0, *(o[a] for o in offsets)]) for a in range(n_axes))
        cells = [1] * n_axes
        items = [1] * n_axes
        margin, useful = [0] * n_axes, [1] * n_axes
        steps = made.steps_per_launch
        for a in axes:
            cells[a], items[a] = made.cells[n_axes - 1 - a], made.group[n_axes - 1 - a]
            unit = made.vector if a == n_axes - 1 else 1
            margin[a] = -(-steps * low[a] // unit) * unit
            useful[a] = (cells[a] * items[a] - margin[a] - steps * high[a]) // unit * unit
            if useful[a] < 1:
                raise ValueError(
                    f"stage {stage.name!r}: {steps} steps reach {steps * (low[a] + high[a])} cells "
                    f"along axis {a}, a tile has {cells[a] * items[a]}; take fewer steps"
                )
        made_tile = cls(
            streams, axes, low, high, tuple(cells), tuple(items), tuple(margin), tuple(useful), ()
        )
        return cls(**{**made_tile.__dict__, "hand_overs": made_tile._hand_overs(own, made)})

    @property
    def n_items(self) -> int:
        return prod(self.items)

    @property
    def before(self) -> tuple[int, ...]:
        """Cells of an extended block before the block, per axis of the tile."""
        return tuple(self.low[a] for a in self.axes)

    def extended(self) -> tuple[int, ...]:
        return tuple(self.low[a] + self.cells[a] + self.high[a] for a in self.axes)

    def _hand_overs(self, own: list[Read], made: Shape) -> tuple[HandOver, ...]:
        skip = 1 if self.streams else 0
        blocks = [self.cells[a] for a in self.axes]
        needed = {
            tuple(b + o for b, o in zip(at, read.offset[skip:]))
            for read in own
            for at in product(*map(range, blocks))
        }
        found = []
        for to in sorted(needed):
            moves = [divmod(t, n) for t, n in zip(to, blocks)]
            if any(shift for shift, _ in moves):
                away = 0
                for (shift, _), a in zip(moves, self.axes):
                    away = away * self.items[a] + shift
                alone = self.n_items <= WARP or (
                    not any(shift for shift, _ in moves[:-1]) and WARP % self.items[-1] == 0
                )
                found.append(
                    HandOver(to, tuple(c for _, c in moves), away, made.shuffles and alone)
                )
        return tuple(found)
