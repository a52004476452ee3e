# SPDX-License-Identifier: MIT
"""The strategy "wavefront", for CPUs: several time steps of a tile while it is in the cache.

    axis 0   old level      level 1       level 2       level 3, the new one
      |      ========       ........      ........      ........
      |      ========       ========      ........      ........      ==  known
      v      ========       ========      ========      ........      ..  known no more: its slot
             ========       ========      ========      ========          holds a later slice
             ========       > now  <      ========      ========
             (memory)                     > now  <      ========      (memory)
                                                        > now  <

A work-item streams the slices of its tile (rows; planes) along axis 0 through all levels: each
level follows the one below it by its reach, a few slices side by side.  The levels in between lie
in rings (`controllers.kgt.rings`), so memory sees one read and one write for all steps.  Only the
cells around a tile are computed twice.  Cells that the stage does not compute are copied from the
old level to each ring.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np

from controllers.kgt import frame
from controllers.kgt.emitter import arithmetic_type
from controllers.kgt.front import front_body
from controllers.kgt.kernel import GeneratedKernel, WorkSizes
from controllers.kgt.lanes import Lanes
from controllers.kgt.levels import Levels
from controllers.kgt.rings import Rings
from controllers.kgt.slices import functions
from controllers.program.expression import reads
from controllers.program.offsets import Offsets
from controllers.program.program import Program, Stage
from controllers.program.steps import own_reach

MIN_ITEMS = 8       # work-items, where bands do not fall below MIN_BAND slices
MIN_BAND = 64
LOCAL_BYTES = 640 * 1024    # of a core's second-level cache; the old and the new level need some
_BYTES = {"int": 4, "long": 8, "ulong": 8, "float": 4, "double": 8}


@dataclass(frozen=True)
class WavefrontConfiguration:
    """The parameters of "wavefront".

    lanes: cells of a vector, 2 to 16.  slices: of a level, computed side by side.  band, depth,
    height, segment: the most cells of an item's tile along the first axis, the second of four, the
    last but one, the last.  streaming: stores bypass the caches (for fields that exceed them).
    """

    strategy: ClassVar[str] = "wavefront"

    steps_per_launch: int = 8
    lanes: int = 16
    slices: int = 4
    band: int = 512
    depth: int = 1
    height: int = 1
    segment: int = 2048
    streaming: bool = False

    def __post_init__(self) -> None:
        if self.steps_per_launch < 2:
            raise ValueError(
                f"a wavefront makes at least 2 steps per launch, got {self.steps_per_launch}; "
                f"use the strategy 'rows' for one"
            )
        if self.segment < 2 * self.lanes:
            raise ValueError(
                f"a segment holds at least two vectors of {self.lanes} cells, got {self.segment} "
                f"cells; use a longer one"
            )

    @classmethod
    def default(
        cls, program: Program, stage: Stage, streaming: bool = False
    ) -> WavefrontConfiguration:
        """What is good for `stage` on a CPU (docs/performance.md); 64 bytes to a vector."""
        lanes = 64 // _BYTES[arithmetic_type(stage, program.dtype)]
        line = 64 // np.dtype(program.dtype).itemsize
        made = (
            cls(8, lanes, 1, band=1, segment=128 * line, streaming=streaming),
            cls(8, lanes, _side_by_side(stage), segment=128 * line, streaming=streaming),
            # short rows, several of them side by side: stores past the caches cost a third
            cls(3, lanes, 3, band=192, height=24, segment=25 * line),
            cls(2, lanes, 2, band=48, depth=8, height=8, segment=16 * line),
        )[program.n_axes - 1]
        reach, most = own_reach(stage), LOCAL_BYTES // 64 * line
        while made.rings(reach).n_elements > most and made != made._smaller(line):
            made = made._smaller(line)
        return made

    def _smaller(self, line: int) -> WavefrontConfiguration:
        """With smaller tiles; if they are small already, of fewer steps; at last smaller still."""
        for least in (32, 4):
            if self.segment > least * line:
                return replace(self, segment=self.segment // 2)
            if max(self.height, self.depth) > least // 8:
                return replace(self, height=-(-self.height // 2), depth=-(-self.depth // 2))
            if self.steps_per_launch > 2:
                return replace(self, steps_per_launch=self.steps_per_launch - 1)
        return replace(self, slices=1)

    def search_space(self, n_axes: int) -> Iterator[WavefrontConfiguration]:
        """What may be tried instead, with the same stores; see `local_bytes` as well."""
        steps = sorted({2, 3, 4, 6, 8, 12, 16, self.steps_per_launch})
        slices = (1, 2, 3, 4, 6) if n_axes > 1 else (1,)
        bands = sorted({64, 192, 512, self.band}) if n_axes > 1 else [1]
        heights = sorted({8, 16, 24, 32, 48, self.height}) if n_axes > 2 else [1]
        depths = sorted({4, 8, 16, self.depth}) if n_axes > 3 else [1]
        segments = sorted({self.segment // 2, self.segment, self.segment * 2})
        lanes = (self.lanes, self.lanes // 2)
        for values in product(steps, lanes, slices, bands, depths, heights, segments):
            yield WavefrontConfiguration(*values, self.streaming)

    def within(self, extent: tuple[int, ...]) -> WavefrontConfiguration:
        """The same for a box of this extent.

        Tiles hold whole rows of it if they can, higher ones if rows are short; bands are low enough
        that several cores have work.

        >>> WavefrontConfiguration().within((1024, 1024)).band
        128
        >>> made = WavefrontConfiguration(steps_per_launch=3, height=24, segment=400)
        >>> [made.within((n, n, n)).tile(3) for n in (190, 640)]
        [(95, 46, 208), (512, 14, 656)]
        """
        made = self
        if len(extent) > 2:
            row = -(-(extent[-1] + self.lanes - 1) // self.lanes) * self.lanes
            height = self.height * self.segment // row
            if height >= min(self.height, 8):
                height = min(height, 2 * self.height)
                made = replace(self, height=height, segment=max(row, 2 * self.lanes))
        if len(extent) == 1:
            return made
        others = prod(-(-n // most) for n, most in zip(extent[1:], made.tile(len(extent))[1:]))
        band = max(MIN_BAND, -(-extent[0] // -(-MIN_ITEMS // others)))
        return replace(made, slices=min(self.slices, extent[0]), band=min(self.band, band))

    def fitting(
        self, program: Program, stage: Stage, local_bytes: int
    ) -> WavefrontConfiguration | None:
        """The same with tiles whose rings fit this much local memory; None where none do."""
        made, least = self, 4 * self.lanes
        while made.local_bytes(program, stage) > local_bytes:
            if made.segment > least and made.segment >= 8 * made.height:
                made = replace(made, segment=max(least, made.segment // 2))
            elif made.height > 1:
                made = replace(made, height=made.height // 2)
            elif made.depth > 1:
                made = replace(made, depth=made.depth // 2)
            elif made.segment > least:
                made = replace(made, segment=max(least, made.segment // 2))
            else:
                return None
        return made

    def tile(self, n_axes: int) -> tuple[int, ...]:
        """The most cells of an item's tile."""
        return (
            (self.segment,),
            (self.band, self.segment),
            (self.band, self.height, self.segment),
            (self.band, self.depth, self.height, self.segment),
        )[n_axes - 1]

    def rings(self, reach: Offsets) -> Rings:
        """Where the levels in between are kept, for stages of this `own_reach`."""
        slices = self.slices if len(reach) > 1 else 1
        return Rings(reach, self.steps_per_launch, self.lanes, slices, self.tile(len(reach)))

    def local_bytes(self, program: Program, stage: Stage) -> int:
        """The local memory of a device that the kernel needs."""
        return self.rings(own_reach(stage)).n_elements * np.dtype(program.dtype).itemsize


def _side_by_side(stage: Stage) -> int:
    """Rows at a time: as many as share what they read, fewer where a row is read at many places."""
    own = [read.offset for read in reads(stage.expression) if read.field == stage.writes]
    return 3 if len(own) >= 3 * len({offset[:-1] for offset in own}) else 4


def wavefront_kernel(
    program: Program, stage: Stage, configuration: WavefrontConfiguration | None = None
) -> GeneratedKernel:
    """The kernel of `stage` that computes several steps of a tile."""
    made = configuration or WavefrontConfiguration.default(program, stage)
    levels = Levels(program, stage, made.rings(own_reach(stage)), made.streaming)
    how = f"tile by tile through the cache, in vectors of {made.lanes} cells"
    least = (*(1,) * (program.n_axes - 1), made.lanes)
    return frame.kernel(
        program, stage, how, front_body(levels), work_sizes(made), helpers=functions(levels),
        lanes=Lanes(made.lanes, clang=True), least=least, steps_per_launch=made.steps_per_launch,
    )  # fmt: skip


def work_sizes(made: WavefrontConfiguration) -> WorkSizes:
    """One item per tile; each is a work-group, so that cores share them out.

    Segments end with whole lines of memory, so there may be one more of them.

    >>> work_sizes(WavefrontConfiguration(segment=1024))((1000, 8191), True)
    ((9, 2), (1, 1))
    """

    def sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        tile = made.tile(len(extent))
        cells = (*extent[:-1], extent[-1] + made.lanes - 1)
        counts = [-(-n // most) for n, most in zip(cells, tile)]
        if len(counts) == 4:
            counts[:2] = [counts[0] * counts[1]]
        return tuple(counts[::-1]), (1,) * len(counts)

    return sizes
