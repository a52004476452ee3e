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
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from controllers.expression import reads
from controllers.kgt import frame
from controllers.kgt.division import divide
from controllers.kgt.emitter import OPENCL_TYPES
from controllers.kgt.kernel import GeneratedKernel, WorkSizes
from controllers.kgt.pipeline import Pipeline
from controllers.kgt.tile import Tile
from controllers.kgt.tile_functions import LIMIT, loads, shuffles, store
from controllers.kgt.tile_march import TileMarch
from controllers.kgt.tile_start import TileStart
from controllers.program import INTEGERS, Program, Stage

MAX_ITEMS = 1024


@dataclass(frozen=True)
class StreamingConfiguration:
    """The parameters of "streaming".

    cells, group: cells of an item, items of a work-group, along the last axis, the last but one,
    the last but two; 1 on the first axis, along which `length` cells are streamed.  vector: cells
    that are loaded and stored at once.  ahead: planes that are loaded before they are needed.
    unroll: planes per turn of the loop.  shuffles: on NVIDIA's devices, hand cells over within a
    warp without local memory.  reciprocals: constants are divided by as in `division`.
    """

    steps_per_launch: int = 8
    cells: tuple[int, int, int] = (8, 1, 1)
    group: tuple[int, int, int] = (32, 1, 1)
    length: int = 512
    vector: int = 4
    ahead: int = 1
    unroll: int = 2
    shuffles: bool = True
    reciprocals: bool = True

    @classmethod
    def default(cls, program: Program, stage: Stage) -> StreamingConfiguration:
        """What is good for `stage` on an NVIDIA H200, for large boxes (docs/performance.md)."""
        return cls()


def streaming_kernel(
    program: Program, stage: Stage, configuration: StreamingConfiguration | None = None
) -> GeneratedKernel:
    """The kernel of `stage` that computes several steps, streaming along the first axis."""
    made = configuration or StreamingConfiguration.default(program, stage)
    if program.dtype in INTEGERS or stage.writes not in {r.field for r in reads(stage.expression)}:
        raise ValueError(
            f"stage {stage.name!r}: the strategy 'streaming' is for a stage that reads the field "
            f"it writes, in float32 or float64; take another one, with one step per launch"
        )
    tile = Tile.of(stage, made)
    pipeline = Pipeline.of(stage, tile.streams)
    steps, vector, unroll = made.steps_per_launch, made.vector, made.unroll
    start = TileStart(
        stage, tile, pipeline,
        steps=steps, length=made.length, vector=vector, ahead=made.ahead, unroll=unroll,
    )  # fmt: skip
    march = TileMarch(
        stage, program.dtype, tile, pipeline,
        steps=steps, vector=vector, ahead=made.ahead, unroll=unroll,
        shuffles=made.shuffles, reciprocals=made.reciprocals,
    )  # fmt: skip
    return frame.kernel(
        program,
        stage,
        f"{steps} steps per launch, {_how(tile)}",
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
    if any(each.shuffled for each in march.hand_overs):
        lines += shuffles(cell)
    if march.division:
        lines += [*divide("kgt_divide", march.division, dtype, prod(made.cells)), ""]
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
