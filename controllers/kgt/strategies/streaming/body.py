# SPDX-License-Identifier: MIT
"""A "streaming" kernel as text: its functions, and the parts of its body."""
from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from controllers.kgt.kernel import GeneratedKernel
from controllers.kgt.strategies.streaming.pipeline import Pipeline
from controllers.kgt.strategies.streaming.tile import Tile
from controllers.kgt.strategies.streaming.tile_functions import (
    LIMIT,
    loads,
    prefetch,
    shuffles,
    store,
)
from controllers.kgt.strategies.streaming.tile_march import TileMarch
from controllers.kgt.strategies.streaming.tile_start import TileStart
from controllers.kgt.text import frame
from controllers.kgt.text.division import divide
from controllers.kgt.text.emitter import OPENCL_TYPES
from controllers.program.program import Program, Stage

if TYPE_CHECKING:
    from controllers.kgt.strategies.streaming.config import StreamingConfig


def streaming_kernel(
    program: Program, stage: Stage, config: StreamingConfig
) -> GeneratedKernel:
    """The kernel of `stage` that computes several steps, streaming along the first axis."""
    tile = Tile.of(stage, config)
    pipeline = Pipeline.of(stage, tile.streams)
    steps, vector, unroll = config.steps_per_launch, config.vector, config.unroll
    start = TileStart(
        stage, tile, pipeline,
        steps=steps, length=config.length, vector=vector, ahead=config.ahead, unroll=unroll,
    )  # fmt: skip
    march = TileMarch(
        stage, program.dtype_of(stage), tile, pipeline,
        steps=steps, vector=vector, ahead=config.ahead, prefetch=config.prefetch, unroll=unroll,
        shuffles=config.shuffles, reciprocals=config.reciprocals,
    )  # fmt: skip
    return frame.kernel(
        program,
        stage,
        f"{steps} of them per launch, {_how(tile)}",
        [*start.lines(), *march.lines(start.edge())],
        config.work_sizes(program, stage),
        helpers=_functions(program.dtype_of(stage), config, march),
        group=(tile.n_items, 1, 1),
        steps_per_launch=steps,
    )


def _how(tile: Tile) -> str:
    widths = " x ".join(str(tile.items[axis] * tile.cells[axis]) for axis in tile.axes)
    return f"tiles of {widths} cells{' that stream along axis 0' if tile.streams else ''}"


def _functions(dtype: str, config: StreamingConfig, march: TileMarch) -> list[str]:
    cell = OPENCL_TYPES[dtype]
    lines = [*LIMIT, "", *loads(cell, config.vector), *store(cell, config.vector)]
    if march.exchange.shuffles:
        lines += shuffles(cell)
    if config.prefetch:
        lines += prefetch(cell)
    if march.quotient:
        lines += [*divide("kgt_divide", march.quotient[1], dtype, prod(config.cells)), ""]
    return lines
