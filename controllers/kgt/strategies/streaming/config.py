# SPDX-License-Identifier: MIT
"""The strategy "streaming", for GPUs: several time steps per launch, plane by plane.

    tile of a work-group (2D)             the item: `cells` of the arriving row, per time step
      margin |  cells written  | margin     what is kept of the rows before (see `pipeline`)
    +--------+-----------------+------+
    |  junk  \\ step 1          / junk |     arriving row r  ->  step 1 computes row r - 1
    |         \\ step 2        /       |     step 2 takes it  ->  row r - 2,  and so on
    +--------+-----------------+------+     row r - T is written
        | streams along axis 0
        v `length` planes

A group computes a tile of cells of all axes but the first, and streams along that.  All tiles
overlap by what T steps reach: the cells in the margin are computed from junk and never written.
Items hand the cells at the edge of their blocks to each other through local memory, or by
shuffles.  Each plane of the field is loaded once per tile.

Planes at which the whole tile is far from the ends of memory and of the computed cells have no
tests; the other ones are computed by a second loop, where cells that are not computed are read
again from the field, which has them as they always were, or are copied from those that they show
behind a mirror (`tile_mirrors`).
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
from controllers.kgt.strategies.streaming.body import mirrors_nbytes, streaming_kernel
from controllers.kgt.strategies.streaming.length import LENGTHS, Demand, best_length
from controllers.kgt.strategies.streaming.parameters import MAX_ITEMS, StreamingParameters
from controllers.kgt.strategies.streaming.pipeline import Pipeline
from controllers.kgt.strategies.streaming.tile import WorkTile
from controllers.kgt.text import fast
from controllers.kgt.text.terms import loops_over_terms
from controllers.program.expression import Given, Scalar
from controllers.program.following import leader, leading
from controllers.program.mirrors import Mirrors
from controllers.program.program import INTEGERS, Program, Stage
from controllers.program.steps import own_reach

LEAST_ITEMS = 256   # of one that a GPU of which nothing is known has room for
LEAST_LOCAL_BYTES = 1 << 15     # of one of which nothing is known
KEPT_WORDS = 96         # registers that what an item keeps may take
MAX_STEPS = 12
FEW_FLOPS = 6           # per cell: a launch of many steps, bound by the latency of memory
FLOPS = 70              # per cell and launch, beyond which more steps gain nothing


@dataclass(frozen=True)
class StreamingConfig(StreamingParameters, Config):
    """The parameters of "streaming", and what follows from them."""

    strategy: ClassVar[str] = "streaming"
    kind: ClassVar[str] = "gpu"
    about: ClassVar[str] = "several steps per launch in registers"
    vectors: ClassVar[bool] = True
    given: ClassVar[tuple[type[Given], ...]] = (Scalar,)

    @classmethod
    def _stores(cls, stage: Stage) -> bool:
        return len(stage.stored) == 1 + len(stage.follows)

    @classmethod
    def default(
        cls, program: Program, stage: Stage, exceeds_cache: bool = False, nvidia: bool = False
    ) -> StreamingConfig:
        """What is good for `stage` on an NVIDIA H200, for large boxes (docs/performance.md).

        With `nvidia`, by means that only NVIDIA's devices have.  ValueError where not even two
        steps fit.
        """
        _refuse(program, stage)
        config = _form(program.n_axes, program.itemsize(leader(stage)) == 8)
        config = replace(config, shuffles=nvidia, reciprocals=True)
        prefetch = 4 if nvidia else 0
        if program.n_axes == 2 and program.flops_per_cell <= FEW_FLOPS:
            config = replace(config, length=256, ahead=2, prefetch=prefetch)
        elif program.n_axes == 2 and max(map(sum, own_reach(stage))) > 2:
            config = replace(config, prefetch=prefetch)
        kept_words = _kept_words(program, stage, config)
        flops = FLOPS * (1 + len(stage.follows))    # a launch moves as many bytes more
        limits = MAX_STEPS, KEPT_WORDS // kept_words, flops // max(1, program.flops_per_cell)
        steps = max(2, min(limits) // 2 * 2)
        while steps > 2 and not _worthwhile(stage, replace(config, steps_per_launch=steps)):
            steps -= 2
        config = replace(config, steps_per_launch=steps)
        WorkTile.of(stage, config)    # says why, if there is no room
        return config

    @classmethod
    def chosen(
        cls, program: Program, stage: Stage, launch: Launch | None
    ) -> StreamingConfig | None:
        """As many steps as the launch has, if a tile has room for them."""
        if launch is None or launch.n_steps == 1:
            return None
        try:
            config = cls.default(program, stage, nvidia=launch.nvidia)
        except ValueError:
            return None
        config = replace(config, steps_per_launch=launch.n_steps)
        if not launch.aligned(config.vector):
            config = replace(config, vector=1)
        x, y, z = config.group
        while x * y * z > (launch.max_items or LEAST_ITEMS) and y > 1:
            y -= 1
        config = replace(config, group=(x, y, z))
        most = launch.local_bytes or LEAST_LOCAL_BYTES
        while y > 1 and config.fits(stage) and config.local_bytes(program, stage) > most:
            y -= 1
            config = replace(config, group=(x, y, z))
        if not config.fits(stage):
            return None
        return config.fitting(program, stage, launch.extent, launch.units)

    @classmethod
    def usual_steps(cls, program: Program, stage: Stage) -> int:
        """So many as by default."""
        if 2 * program.flops_per_cell > FLOPS and program.math == "strict":
            return 1    # bound by arithmetic, of which overlapping tiles have more
        if program.n_axes > 2 and stage.follows:
            return 1    # not measured
        if program.n_axes > 2 and len(stage.fields_read) > 1:
            return 1    # each step reads the other fields again: 0.57 of the copy rate, not 0.88
        boundary = program.field(leader(stage)).boundary
        if program.n_axes > 2 and Mirrors.of(boundary, program.n_axes):
            return 1    # many tiles touch a mirror: 7 points at 512^3 take 2.0 times as long
        try:
            config = cls.default(program, stage)
        except ValueError:
            return 1
        kept_words = config.steps_per_launch * _kept_words(program, stage, config)
        if stage.follows and kept_words > KEPT_WORDS:
            return 1    # two steps of wide planes: a third less memory, more than there is room for
        return config.steps_per_launch

    @classmethod
    def step_counts(cls, program: Program, stage: Stage) -> set[int]:
        """Those of the space around the default."""
        if loops_over_terms(stage):
            return set()
        try:
            space = cls.default(program, stage).space(program.n_axes)
        except ValueError:
            return set()
        return {config.steps_per_launch for config in space}

    def space(self, n_axes: int) -> Iterator[StreamingConfig]:
        """What may be tried instead, with vectors as wide; `fits` says what has room."""
        flat = [
            ((times * self.vector, 1, 1), (items, 1, 1))
            for times in (1, 2) for items in (32, 64, 128)
        ]  # fmt: skip
        deep = [
            ((self.vector, rows, 1), (items, lines, 1))
            for rows in (1, 2, 3, 4) for items in (8, 16, 32) for lines in (8, 12, 16, 20, 24, 32)
            if 128 <= items * lines <= MAX_ITEMS
        ]  # fmt: skip
        forms = flat if n_axes < 3 else deep if n_axes == 3 else [(self.cells, self.group)]
        steps = (*range(2, 13), 14, 16) if n_axes < 3 else range(2, 7)
        lengths = LENGTHS if n_axes > 1 else (self.length,)
        aheads = (0, 1, 2, 4) if n_axes < 3 else (0, 1)
        fetches = (0, 4, 8) if self.shuffles and n_axes == 2 else (self.prefetch,)
        space = product(steps, forms, lengths, aheads, (1, 2), fetches)
        for step, (cells, group), length, ahead, unroll, fetch in space:
            yield replace(
                self, steps_per_launch=step, cells=cells, group=group, length=length,
                ahead=ahead, unroll=unroll, prefetch=fetch,
            )  # fmt: skip

    def fits(self, stage: Stage) -> bool:
        """Whether a tile has cells that it may write after so many steps of `stage`."""
        try:
            WorkTile.of(stage, self)
        except ValueError:
            return False
        return True

    def alike(self, extent: tuple[int, ...]) -> Iterator[StreamingConfig]:
        """Groups up to twice as long or short."""
        if len(extent) > 1:
            near = (n for n in LENGTHS if self.length <= 2 * n and n <= 2 * self.length)
            others = (replace(self, length=n).within(extent) for n in near)
            yield from (config for config in dict.fromkeys(others) if config != self)

    def within(self, extent: tuple[int, ...]) -> StreamingConfig:
        """The same with groups that are not longer than the box."""
        enough = (length for length in LENGTHS if length >= extent[0])
        return replace(self, length=min(self.length, next(enough, self.length)))

    def fitting(
        self, program: Program, stage: Stage, extent: tuple[int, ...], units: int = 0
    ) -> StreamingConfig:
        """The same with the length that is best for a box on a device of so many units.

        ValueError where a tile has no room for as many steps of `stage`.
        """
        tile = WorkTile.of(stage, self)
        if not tile.streams:
            return self
        steps, itemsize = self.steps_per_launch, program.itemsize(leader(stage))
        demand = Demand.of(
            steps * (tile.low[0] + Pipeline.of(stage, True).lag),
            steps * _kept_words(program, stage, self), itemsize, self.ahead > 1,
        )  # fmt: skip
        return replace(self, length=best_length(tile, extent, demand, units))

    @property
    def multiple(self) -> int:
        """All rows start aligned."""
        return self.vector

    def local_bytes(self, program: Program, stage: Stage) -> int:
        """That of mirrors, and of what is handed over beside them."""
        return mirrors_nbytes(program, stage, self)

    def work_sizes(self, program: Program, stage: Stage) -> WorkSizes:
        """One group per tile and `length` planes."""
        return work_sizes(WorkTile.of(stage, self), self)

    def kernel(self, program: Program, stage: Stage) -> StageKernel:
        """The kernel of `stage` that computes several steps, streaming along the first axis."""
        _refuse(program, stage)
        stage = fast.stage_of(program, stage)
        return streaming_kernel(program, stage, self, self.work_sizes(program, stage))


def _refuse(program: Program, stage: Stage) -> None:
    """ValueError where this strategy cannot compute the stage, however it is configured."""
    if program.dtype_of(stage) in INTEGERS or leader(stage) not in leading(stage).fields_read:
        raise ValueError(
            f"stage {stage.name!r}: the strategy 'streaming' is for a stage that reads the field "
            f"it writes, in float32 or float64; take another one, with one step per launch"
        )


def _kept_words(program: Program, stage: Stage, config: StreamingConfig) -> int:
    """Words of four bytes that an item keeps per time step."""
    kept = max(1, Pipeline.of(stage, program.n_axes > 1).n_kept)
    return program.itemsize(leader(stage)) // 4 * prod(config.cells) * kept


def _form(n_axes: int, wide: bool) -> StreamingConfig:
    """The smallest configuration for so many axes, and cells of 8 bytes or of 4."""
    config = StreamingConfig(2)
    if n_axes == 1:
        config = replace(config, cells=(8, 1, 1), group=(128, 1, 1))
    if n_axes == 3:
        config = replace(config, cells=(4, 3, 1), group=(16, 24, 1), length=56)
    if n_axes == 4:
        config = replace(config, group=(8, 8, 8), length=40)
    if wide:
        x, y, z = config.cells
        config = replace(config, cells=(x // 2, y, z), vector=2)
    return config


def _worthwhile(stage: Stage, config: StreamingConfig) -> bool:
    """Whether at least two thirds of what a tile computes are written."""
    if not config.fits(stage):
        return False
    tile = WorkTile.of(stage, config)
    return 3 * prod(tile.useful) >= 2 * prod(tile.items) * prod(tile.cells)


def work_sizes(tile: WorkTile, config: StreamingConfig) -> WorkSizes:
    """One group per tile and `length` planes."""

    def sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        counts = [-(-extent[a] // tile.useful[a]) for a in tile.axes]
        last = tile.axes[-1]
        counts[-1] = -(-(extent[last] + config.vector - 1) // tile.useful[last])
        chunks = (-(-extent[0] // config.length),) if tile.streams else ()
        x, y, z, more = (*counts[::-1], *chunks, 1, 1, 1)[:4]
        return (x * tile.n_items, y, z * more), (tile.n_items, 1, 1)

    return sizes
