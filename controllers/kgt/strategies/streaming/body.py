# SPDX-License-Identifier: MIT
"""A "streaming" kernel as text: its functions, and the parts of its body."""
from __future__ import annotations

from math import prod

from controllers.kgt.kernel import StageKernel, WorkSizes
from controllers.kgt.strategies.streaming.design import Design
from controllers.kgt.strategies.streaming.parameters import StreamingParameters
from controllers.kgt.strategies.streaming.tile import WorkTile
from controllers.kgt.strategies.streaming.tile_exchange import TileExchange
from controllers.kgt.strategies.streaming.tile_functions import (
    LIMIT,
    loads,
    prefetch,
    shuffles,
    store,
)
from controllers.kgt.strategies.streaming.tile_march import TileMarch
from controllers.kgt.strategies.streaming.tile_mirrors import TileMirrors
from controllers.kgt.strategies.streaming.tile_start import TileStart
from controllers.kgt.text import frame
from controllers.kgt.text.division import divide
from controllers.program.following import leader
from controllers.program.mirrors import NO_MIRRORS, Mirrors
from controllers.program.program import Program, Stage


def streaming_kernel(
    program: Program, stage: Stage, parameters: StreamingParameters, work_sizes: WorkSizes
) -> StageKernel:
    """The kernel of `stage` that computes several steps, streaming along the first axis."""
    design = _design(program, stage, parameters)
    start, march = TileStart(design), TileMarch(design)
    return frame.kernel(
        program,
        stage,
        f"{design.steps} of them per launch, {_how(design.tile)}",
        [*start.lines(), *march.lines(start.edge())],
        work_sizes,
        helpers=_functions(design, march),
        group=(design.tile.n_items, 1, 1),
        steps_per_launch=design.steps,
        scalars=parameters.scalars() if design.tile.streams else {},
    )


def mirrors_nbytes(program: Program, stage: Stage, parameters: StreamingParameters) -> int:
    """Bytes of local memory where mirrors take any; what is handed over comes to it."""
    design = _design(program, stage, parameters)
    n_seen = TileMirrors(design).n_seen
    return program.itemsize(design.own) * (n_seen + TileExchange(design).n_cells) * (n_seen > 0)


def _design(program: Program, stage: Stage, parameters: StreamingParameters) -> Design:
    mirrors = Mirrors.of(program.field(leader(stage)).boundary, program.n_axes)
    return Design(stage, program.dtype_of(stage), parameters, mirrors if mirrors else NO_MIRRORS)


def _how(tile: WorkTile) -> str:
    widths = " x ".join(str(tile.items[axis] * tile.cells[axis]) for axis in tile.axes)
    return f"tiles of {widths} cells{' that stream along axis 0' if tile.streams else ''}"


def _functions(design: Design, march: TileMarch) -> list[str]:
    """C lines: the functions that the kernel calls."""
    cell, parameters, step = design.cell, design.parameters, march.step
    lines = [*LIMIT, "", *loads(cell, parameters.vector), *store(cell, parameters.vector)]
    if step.exchange.shuffles:
        lines += shuffles(cell)
    if parameters.prefetch:
        lines += prefetch(cell)
    if step.quotient:
        n_cells = prod(parameters.cells)
        lines += [*divide("kgt_divide", step.quotient[1], design.dtype, n_cells), ""]
    return lines
