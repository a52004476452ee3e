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
again from the field, which has them as they always were.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import ClassVar

import numpy as np

from controllers.kgt import frame
from controllers.kgt.division import divide
from controllers.kgt.emitter import OPENCL_TYPES
from controllers.kgt.kernel import GeneratedKernel, WorkSizes
from controllers.kgt.length import LENGTHS, Demand, best_length
from controllers.kgt.marching import LANES
from controllers.kgt.pipeline import Pipeline
from controllers.kgt.tile import Tile
from controllers.kgt.tile_functions import LIMIT, loads, prefetch, shuffles, store
from controllers.kgt.tile_march import TileMarch
from controllers.kgt.tile_start import TileStart
from controllers.program.program import INTEGERS, Program, Stage
from controllers.program.steps import own_reach

MAX_ITEMS = 1024    # of a work-group, on NVIDIA's GPUs
KEPT_WORDS = 96         # registers that what an item keeps may take
MAX_STEPS = 12
FEW_FLOPS = 6           # per cell: a launch of many steps, bound by the latency of memory
FLOPS = 70              # per cell and launch, beyond which more steps gain nothing


@dataclass(frozen=True)
class StreamingConfiguration:
    """The parameters of "streaming".

    cells, group: cells of an item, items of a work-group, along the last axis, the last but one,
    the last but two; 1 along the first axis, of which a group streams through `length` cells (one
    axis: nothing streams).  vector: cells that are loaded and stored at once.  ahead: planes that
    are loaded before they are needed.  unroll: planes per turn of the loop.  reciprocals: divide
    by constants as in `division`.

    On NVIDIA's devices only: shuffles: cells are handed over within a warp without local memory.
    prefetch: so many planes before it arrives a plane is brought to the cache; 0: not.
    """

    strategy: ClassVar[str] = "streaming"

    steps_per_launch: int = 8
    cells: tuple[int, int, int] = (4, 1, 1)
    group: tuple[int, int, int] = (32, 1, 1)
    length: int = 192
    vector: int = 4
    ahead: int = 1
    unroll: int = 2
    shuffles: bool = False
    reciprocals: bool = False
    prefetch: int = 0

    def __post_init__(self) -> None:
        if self.vector not in LANES or self.cells[0] % self.vector:
            raise ValueError(
                f"streaming: a vector has 1, 2 or 4 cells, and cells[0] is a multiple of it, "
                f"got {self.vector} and {self.cells[0]}"
            )
        if self.steps_per_launch < 2 or prod(self.group) > MAX_ITEMS:
            raise ValueError(
                f"streaming: 2 steps or more, {MAX_ITEMS} items at most, got "
                f"{self.steps_per_launch} and {prod(self.group)}"
            )

    @classmethod
    def default(
        cls, program: Program, stage: Stage, nvidia: bool = False
    ) -> StreamingConfiguration:
        """What is good for `stage` on an NVIDIA H200, for large boxes (docs/performance.md).

        With `nvidia`, by means that only NVIDIA's devices have.  ValueError where not even two
        steps fit.
        """
        made = _form(program.n_axes, np.dtype(program.dtype).itemsize == 8)
        made = replace(made, shuffles=nvidia, reciprocals=True)
        prefetch = 4 if nvidia else 0
        if program.n_axes == 2 and program.flops_per_cell <= FEW_FLOPS:
            made = replace(made, length=256, ahead=2, prefetch=prefetch)
        elif program.n_axes == 2 and max(map(sum, own_reach(stage))) > 2:
            made = replace(made, prefetch=prefetch)
        kept_words = _kept_words(program, stage, made)
        limits = MAX_STEPS, KEPT_WORDS // kept_words, FLOPS // max(1, program.flops_per_cell)
        steps = max(2, min(limits) // 2 * 2)
        while steps > 2 and not _worthwhile(stage, replace(made, steps_per_launch=steps)):
            steps -= 2
        made = replace(made, steps_per_launch=steps)
        Tile.of(stage, made)    # says why, if there is no room
        return made

    def search_space(self, n_axes: int) -> Iterator[StreamingConfiguration]:
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
            Tile.of(stage, self)
        except ValueError:
            return False
        return True

    def within(self, extent: tuple[int, ...]) -> StreamingConfiguration:
        """The same with groups that are not longer than the box."""
        enough = (length for length in LENGTHS if length >= extent[0])
        return replace(self, length=min(self.length, next(enough, self.length)))

    def fitting(
        self, program: Program, stage: Stage, extent: tuple[int, ...], units: int = 0
    ) -> StreamingConfiguration:
        """The same with the length that is best for a box on a device of so many units.

        ValueError where a tile has no room for as many steps of `stage`.
        """
        tile = Tile.of(stage, self)
        if not tile.streams:
            return self
        steps, itemsize = self.steps_per_launch, np.dtype(program.dtype).itemsize
        demand = Demand.of(
            steps * (tile.low[0] + Pipeline.of(stage, True).lag),
            steps * _kept_words(program, stage, self), itemsize, self.ahead > 1,
        )  # fmt: skip
        return replace(self, length=best_length(tile, extent, demand, units))


def _kept_words(program: Program, stage: Stage, made: StreamingConfiguration) -> int:
    """Words of four bytes that an item keeps per time step."""
    kept = max(1, Pipeline.of(stage, program.n_axes > 1).n_kept)
    return np.dtype(program.dtype).itemsize // 4 * prod(made.cells) * kept


def _form(n_axes: int, wide: bool) -> StreamingConfiguration:
    """The smallest configuration for so many axes, and cells of 8 bytes or of 4."""
    made = StreamingConfiguration(2)
    if n_axes == 1:
        made = replace(made, cells=(8, 1, 1), group=(128, 1, 1))
    if n_axes == 3:
        made = replace(made, cells=(4, 3, 1), group=(16, 24, 1), length=56)
    if n_axes == 4:
        made = replace(made, group=(8, 8, 8), length=40)
    if wide:
        x, y, z = made.cells
        made = replace(made, cells=(x // 2, y, z), vector=2)
    return made


def _worthwhile(stage: Stage, made: StreamingConfiguration) -> bool:
    """Whether at least two thirds of what a tile computes are written."""
    if not made.fits(stage):
        return False
    tile = Tile.of(stage, made)
    return 3 * prod(tile.useful) >= 2 * prod(tile.items) * prod(tile.cells)


def streaming_kernel(
    program: Program, stage: Stage, configuration: StreamingConfiguration | None = None
) -> GeneratedKernel:
    """The kernel of `stage` that computes several steps, streaming along the first axis."""
    if program.dtype in INTEGERS or stage.writes not in stage.fields_read:
        raise ValueError(
            f"stage {stage.name!r}: the strategy 'streaming' is for a stage that reads the field "
            f"it writes, in float32 or float64; take another one, with one step per launch"
        )
    made = configuration or StreamingConfiguration.default(program, stage)
    tile = Tile.of(stage, made)
    pipeline = Pipeline.of(stage, tile.streams)
    steps, vector, unroll = made.steps_per_launch, made.vector, made.unroll
    start = TileStart(
        stage, tile, pipeline,
        steps=steps, length=made.length, vector=vector, ahead=made.ahead, unroll=unroll,
    )  # fmt: skip
    march = TileMarch(
        stage, program.dtype, tile, pipeline,
        steps=steps, vector=vector, ahead=made.ahead, prefetch=made.prefetch, unroll=unroll,
        shuffles=made.shuffles, reciprocals=made.reciprocals,
    )  # fmt: skip
    return frame.kernel(
        program,
        stage,
        f"{steps} of them per launch, {_how(tile)}",
        [*start.lines(), *march.lines(start.edge())],
        work_sizes(tile, made),
        helpers=_functions(program.dtype, made, march),
        multiple=vector,
        group=(tile.n_items, 1, 1),
        steps_per_launch=steps,
    )


def _how(tile: Tile) -> str:
    widths = " x ".join(str(tile.items[axis] * tile.cells[axis]) for axis in tile.axes)
    return f"tiles of {widths} cells{' that stream along axis 0' if tile.streams else ''}"


def _functions(dtype: str, made: StreamingConfiguration, march: TileMarch) -> list[str]:
    cell = OPENCL_TYPES[dtype]
    lines = [*LIMIT, "", *loads(cell, made.vector), *store(cell, made.vector)]
    if march.exchange.shuffles:
        lines += shuffles(cell)
    if made.prefetch:
        lines += prefetch(cell)
    if march.quotient:
        lines += [*divide("kgt_divide", march.quotient[1], dtype, prod(made.cells)), ""]
    return lines


def work_sizes(tile: Tile, made: StreamingConfiguration) -> WorkSizes:
    """One group per tile and `length` planes."""

    def sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        counts = [-(-extent[a] // tile.useful[a]) for a in tile.axes]
        last = tile.axes[-1]
        counts[-1] = -(-(extent[last] + made.vector - 1) // tile.useful[last])
        chunks = (-(-extent[0] // made.length),) if tile.streams else ()
        x, y, z, more = (*counts[::-1], *chunks, 1, 1, 1)[:4]
        return (x * tile.n_items, y, z * more), (tile.n_items, 1, 1)

    return sizes
