# SPDX-License-Identifier: MIT
"""What all parts of a "streaming" kernel's text know of it."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from controllers.kgt.strategies.streaming.parameters import StreamingParameters
from controllers.kgt.strategies.streaming.pipeline import Pipeline
from controllers.kgt.strategies.streaming.tile import WorkTile
from controllers.kgt.strategies.streaming.tile_text import unrolled
from controllers.kgt.text.c_text import plus
from controllers.kgt.text.emitter import OPENCL_TYPES
from controllers.program.following import leading
from controllers.program.mirrors import NO_MIRRORS, Mirrors
from controllers.program.program import Stage


@dataclass(frozen=True)
class Design:
    """The kernel of one stage: names and C text that follow from its tile and its pipeline.

    ValueError where a tile has no room for so many steps.
    """

    stage: Stage
    dtype: str
    parameters: StreamingParameters
    mirrors: Mirrors = NO_MIRRORS

    @cached_property
    def tile(self) -> WorkTile:
        """The tile of a work-group."""
        return WorkTile.of(self.stage, self.parameters)

    @cached_property
    def pipeline(self) -> Pipeline:
        """What is computed as planes arrive."""
        return Pipeline.of(self.stage, self.tile.streams)

    @cached_property
    def lead(self) -> Stage:
        """The stage without what follows."""
        return leading(self.stage)

    @property
    def own(self) -> str:
        """The field that each step computes."""
        return self.lead.writes

    @property
    def follower(self) -> str:
        """The field that has what that one had before the last step; "" where there is none."""
        return next(iter(self.stage.follows), "")

    @property
    def stored(self) -> dict[str, str]:
        """The fields that are written, each with the array that holds its cells."""
        return {self.own: "next", **({self.follower: "behind"} if self.follower else {})}

    @property
    def cell(self) -> str:
        """The type of a cell."""
        return OPENCL_TYPES[self.dtype]

    @property
    def steps(self) -> int:
        """Time steps of a launch."""
        return self.parameters.steps_per_launch

    @property
    def n_axes(self) -> int:
        """Axes of the fields."""
        return len(self.stage.offsets)

    @property
    def lag(self) -> int:
        """Planes between the one that arrives and the one that a step makes of it."""
        return self.pipeline.lag

    @property
    def mirrors_planes(self) -> bool:
        """Whether planes behind an end show others."""
        return self.tile.streams and bool(self.mirrors) and any(self.mirrors.signs[0])

    @property
    def most_delay(self) -> int:
        """Planes that groups at the first one hold back between two steps; see `tile_mirrors`."""
        return 2 * self.tile.low[0] - 1 if self.mirrors_planes and self.mirrors.signs[0][0] else 0

    def apart(self, delay: str = "") -> str:
        """C text of the planes between the one that a step gets and the one that the next gets."""
        return f"({self.lag} + {delay})" if delay else str(self.lag)

    def along(self, field: str, axis: int, cells: str) -> str:
        """C text of the elements that so many cells along an axis are."""
        return cells if axis == self.n_axes - 1 else f"{cells} * {field}_pitch_{axis}"

    def index(self, shifts: Sequence[int] = ()) -> str:
        """C text that picks the cell of the loops from an array, moved by `shifts`."""
        loops = self.tile.loops
        each = zip(loops, shifts or (0,) * len(loops))
        return "".join(f"[{name}{plus(shift)}]" for name, shift in each)

    def each_cell(self, lines: Sequence[str]) -> list[str]:
        """C lines: `lines` for each cell of an item."""
        counts = zip(self.tile.loops, self.tile.block)
        return unrolled([(name, count, 1) for name, count in counts], lines)

    def copied(self, target: str, source: str) -> list[str]:
        """C lines: all cells of an item from one array to another."""
        here = self.index()
        return self.each_cell([f"{target}{here} = {source}{here};"])

    @property
    def arrived(self) -> str:
        """C text of the cell of the loops in `cells`, where those of other items lie around it."""
        return f"cells{self.index(self.tile.before)}"
