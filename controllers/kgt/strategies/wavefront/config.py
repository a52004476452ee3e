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
in `rings`, so memory sees one read and one write for all steps.  Only the cells around a tile are
computed twice.  Cells that the stage does not compute are copied from the old level to each ring.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import ClassVar

from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.launch import Launch
from controllers.kgt.strategies.config import Config
from controllers.kgt.strategies.wavefront.digests import digest_helpers, digest_parameters
from controllers.kgt.strategies.wavefront.frames import keep_function
from controllers.kgt.strategies.wavefront.front import front_body
from controllers.kgt.strategies.wavefront.levels import Levels
from controllers.kgt.strategies.wavefront.parameters import WavefrontParameters
from controllers.kgt.strategies.wavefront.slices import functions
from controllers.kgt.text import fast, frame
from controllers.kgt.text.analysis import SEVERAL_FIELDS, arithmetic_type, reads_many
from controllers.kgt.text.lanes import Lanes
from controllers.kgt.text.terms import loops_over_terms
from controllers.program.expression import Given, Scalar
from controllers.program.following import leader, leading
from controllers.program.program import Program, Stage
from controllers.program.steps import own_reach

MIN_ITEMS = 8       # work-items, where bands do not fall below MIN_BAND slices
MIN_BAND = 64
LEAST_LOCAL_BYTES = 1 << 18     # of a CPU of which nothing is known
LOCAL_BYTES = 640 * 1024    # of a core's second-level cache; the old and the new level need some
_BYTES = {"int": 4, "long": 8, "ulong": 8, "float": 4, "double": 8}


@dataclass(frozen=True)
class WavefrontConfig(WavefrontParameters, Config):
    """The parameters of "wavefront", and what follows from them."""

    strategy: ClassVar[str] = "wavefront"
    kind: ClassVar[str] = "cpu"
    about: ClassVar[str] = "several steps per launch in the cache"
    vectors: ClassVar[bool] = True
    digests: ClassVar[bool] = True
    given: ClassVar[tuple[type[Given], ...]] = (Scalar,)

    @classmethod
    def _stores(cls, stage: Stage) -> bool:
        return len(stage.stored) == 1 + len(stage.follows)

    @classmethod
    def default(
        cls, program: Program, stage: Stage, exceeds_cache: bool = False, nvidia: bool = False
    ) -> WavefrontConfig:
        """What is good for `stage` on a CPU (docs/performance.md); 64 bytes to a vector."""
        streaming = exceeds_cache
        lanes = 64 // _BYTES[arithmetic_type(stage, program.dtype_of(stage))]
        line = 64 // program.itemsize(leader(stage))
        config = (
            cls(8, lanes, 1, band=1, segment=128 * line, streaming=streaming),
            cls(8, lanes, _side_by_side(stage), segment=128 * line, streaming=streaming),
            # short rows, several of them side by side: stores past the caches cost a third
            cls(3, lanes, 3, band=192, height=24, segment=25 * line),
            cls(2, lanes, 2, band=48, depth=8, height=8, segment=16 * line),
        )[program.n_axes - 1]
        if program.n_axes == 3 and reads_many(stage, SEVERAL_FIELDS):
            # what the levels share of other fields stays in the cache; vectors of half the length
            # leave room for what addresses need
            config = cls(4, lanes // 2, 1, band=64, height=32, segment=17 * line)
        while config._ring_cells(stage) > LOCAL_BYTES // 64 * line:
            if config == config._smaller(line):
                break
            config = config._smaller(line)
        return config

    def _smaller(self, line: int) -> WavefrontConfig:
        """With smaller tiles; if they are small already, of fewer steps; at last smaller still."""
        for least in (32, 4):
            if self.segment > least * line:
                return replace(self, segment=self.segment // 2)
            if max(self.height, self.depth) > least // 8:
                return replace(self, height=-(-self.height // 2), depth=-(-self.depth // 2))
            if self.steps_per_launch > 2:
                return replace(self, steps_per_launch=self.steps_per_launch - 1)
        return replace(self, slices=1)

    @classmethod
    def chosen(
        cls, program: Program, stage: Stage, launch: Launch | None
    ) -> WavefrontConfig | None:
        """Several steps, if the rings fit and rows are as long as a vector."""
        if launch is None or launch.n_steps == 1:
            return None
        config = cls.default(program, stage, launch.exceeds_cache)
        config = replace(config, steps_per_launch=launch.n_steps).within(launch.extent)
        config = config.shared(launch.extent, launch.units)
        fitting = config.fitting(program, stage, launch.local_bytes or LEAST_LOCAL_BYTES)
        return fitting if fitting and fitting.suits(launch.fields.values()) else None

    @classmethod
    def usual_steps(cls, program: Program, stage: Stage) -> int:
        """So many as by default."""
        if stage.follows and program.n_axes > 2:
            return 1    # waves of accuracy 2 are 0.96 times as fast with 3, of accuracy 8 half
        return cls.default(program, stage).steps_per_launch

    @classmethod
    def step_counts(cls, program: Program, stage: Stage) -> set[int]:
        """Those of the space around the default."""
        if loops_over_terms(stage):
            return set()
        space = cls.default(program, stage).space(program.n_axes)
        return {config.steps_per_launch for config in space}

    def space(self, n_axes: int) -> Iterator[WavefrontConfig]:
        """What may be tried instead, with the same stores; see `local_bytes` as well."""
        steps = sorted({2, 3, 4, 6, 8, 12, 16, self.steps_per_launch})
        slices = (1, 2, 3, 4, 6) if n_axes > 1 else (1,)
        bands = sorted({64, 192, 512, self.band}) if n_axes > 1 else [1]
        heights = sorted({8, 16, 24, 32, 48, self.height}) if n_axes > 2 else [1]
        depths = sorted({4, 8, 16, self.depth}) if n_axes > 3 else [1]
        segments = sorted({self.segment // 2, self.segment, self.segment * 2})
        lanes = (self.lanes, self.lanes // 2)
        for values in product(steps, lanes, slices, bands, depths, heights, segments):
            if values[-1] >= 2 * values[1]:     # cells of a segment, of a vector
                yield WavefrontConfig(*values, self.streaming)

    def within(self, extent: tuple[int, ...]) -> WavefrontConfig:
        """The same for a box of this extent.

        Tiles hold whole rows of it if they can, higher ones if rows are short; bands are low enough
        that several cores have work.

        >>> WavefrontConfig().within((1024, 1024)).band
        128
        >>> config = WavefrontConfig(steps_per_launch=3, height=24, segment=400)
        >>> [config.within((n, n, n)).tile(3) for n in (190, 640)]
        [(95, 46, 208), (512, 14, 656)]
        """
        config = self
        if len(extent) > 2:
            row = -(-(extent[-1] + self.lanes - 1) // self.lanes) * self.lanes
            height = self.height * self.segment // row
            if height >= min(self.height, 8):
                height = min(height, 2 * self.height)
                config = replace(self, height=height, segment=max(row, 2 * self.lanes))
        if len(extent) == 1:
            return config
        others = prod(-(-n // most) for n, most in zip(extent[1:], config.tile(len(extent))[1:]))
        band = max(MIN_BAND, -(-extent[0] // -(-MIN_ITEMS // others)))
        return replace(config, slices=min(self.slices, extent[0]), band=min(self.band, band))

    def shared(self, extent: tuple[int, ...], units: int) -> WavefrontConfig:
        """The same for a volume of this extent with as many tiles for each of so many cores.

        >>> config = WavefrontConfig(band=64, height=62, segment=136)
        >>> config.shared((62, 62, 126), 2).height, config.shared((62, 62, 126), 1).height
        (31, 62)
        """
        if len(extent) != 3 or units < 2:
            return self
        band, height, row = (-(-n // most) for n, most in zip(extent, self.tile(3)))
        counts = (n for n in range(height, 2 * height + 1) if not band * n * row % units)
        return replace(self, height=-(-extent[1] // next(counts, height)))

    def fitting(
        self, program: Program, stage: Stage, local_bytes: int
    ) -> WavefrontConfig | None:
        """The same with tiles whose rings fit this much local memory; None where none do."""
        config, least = self, 4 * self.lanes
        while config.local_bytes(program, stage) > local_bytes:
            if config.segment > least and config.segment >= 8 * config.height:
                config = replace(config, segment=max(least, config.segment // 2))
            elif config.height > 1:
                config = replace(config, height=config.height // 2)
            elif config.depth > 1:
                config = replace(config, depth=config.depth // 2)
            elif config.segment > least:
                config = replace(config, segment=max(least, config.segment // 2))
            else:
                return None
        return config

    def local_bytes(self, program: Program, stage: Stage) -> int:
        """That of the rings: PoCL aborts where it is too much."""
        return self._ring_cells(stage) * program.itemsize(leader(stage))

    def _ring_cells(self, stage: Stage) -> int:
        """Cells of all rings."""
        return self.rings(own_reach(stage), follows=bool(stage.follows)).n_elements

    def least(self, n_axes: int) -> tuple[int, ...]:
        """A vector of a row."""
        return (*(1,) * (n_axes - 1), self.lanes)

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        """One item per tile."""
        return work_sizes(self)

    def kernel(self, program: Program, stage: Stage) -> StageKernel:
        """The kernel of `stage` that computes several steps of a tile."""
        return self._kernel(Levels(program, fast.stage_of(program, stage), self))

    def digesting(self, program: Program, stage: Stage) -> StageKernel:
        return self._kernel(Levels(program, fast.stage_of(program, stage), self, digests=True))

    def _kernel(self, levels: Levels) -> StageKernel:
        how = f"tile by tile through the cache, in vectors of {self.lanes} cells"
        return frame.kernel(
            levels.program, levels.stage, how, front_body(levels), work_sizes(self),
            helpers=[*functions(levels), *keep_function(levels), *digest_helpers(levels)],
            lanes=Lanes(self.lanes, clang=True), steps_per_launch=self.steps_per_launch,
            more=digest_parameters(levels),
        )  # fmt: skip


def _side_by_side(stage: Stage) -> int:
    """Rows at a time: as many as share what they read, fewer where a row is read at many places."""
    lead = leading(stage)
    own = [read.offset for read in lead.reads if read.field == lead.writes]
    return 3 if len(own) >= 3 * len({offset[:-1] for offset in own}) else 4


def work_sizes(config: WavefrontConfig) -> WorkSizes:
    """One item per tile; each is a work-group, so that cores share them out.

    Segments end with whole lines of memory, so there may be one more of them.

    >>> work_sizes(WavefrontConfig(segment=1024))((1000, 8191), True)
    ((9, 2), (1, 1))
    """

    def sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        tile = config.tile(len(extent))
        cells = (*extent[:-1], extent[-1] + config.lanes - 1)
        counts = [-(-n // most) for n, most in zip(cells, tile)]
        if len(counts) == 4:
            counts[:2] = [counts[0] * counts[1]]
        return tuple(counts[::-1]), (1,) * len(counts)

    return sizes
