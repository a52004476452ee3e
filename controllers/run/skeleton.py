# SPDX-License-Identifier: MIT
"""The iterative-stencil skeleton: one call from a pattern of weights to a report.

Skeleton after EPSILOD, de Castro et al. 2023, doi:10.1007/s11227-022-05040-y: borders
first, their hand-over while the inner part is computed, tiles swapped without copying.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt

from controllers.check import Check
from controllers.kernel.variant import Kernel
from controllers.language.weights import Stencil
from controllers.memory.tile import TileView
from controllers.placement.partition import check_some_computed, periodic_axes
from controllers.plan import Overlap
from controllers.program.program import Math
from controllers.report.report import Report
from controllers.run.computation import Computation
from controllers.run.door import check_options, dtype_name
from controllers.run.progress import Watcher
from hitmap.argument import whole
from hitmap.comm import Communicator


def stencil_computation(
    sizes: int | Sequence[int],
    shape: Sequence[Sequence[int]],
    pattern: Any,
    factor: float,
    iterations: int,
    kernel: str | Kernel | None = None,
    init: Callable[[TileView], None] | None = None,
    output: Callable[[TileView], None] | None = None,
    *,
    partition: str | None = None,
    weights: Sequence[float] | None = None,
    align: int | Sequence[int] = 1,
    block: int | Sequence[int] | None = None,
    boundary: str | Sequence[str] = "fixed",
    devices: str | Sequence[str] | None = None,
    comm: Communicator | None = None,
    dtype: npt.DTypeLike = "float32",
    overlap: Overlap = "auto",
    steps_per_launch: int | None = None,
    math: Math = "strict",
    memory_cap: str | int | None = None,
    watchdog: float | None = None,
    check: Check = None,
    tune: float = 0.0,
    progress: Watcher = None,
) -> Report:
    """Apply a weighted stencil `iterations` times to a field; collective.

    sizes: extents of the field in cells, its boundary cells included.
    shape: inclusive first and last offset per axis, such as [(-1, 1), (-1, 1)].
    pattern: the weights over `shape` in C order, flat or nested; 0 where nothing is read.
    factor: what the weighted sum is divided by.
    kernel: None for the kernel that is generated for the stencil, "generic", or one of your
        own (`register_stencil`); `pattern` then says which neighbours it reads.
    init, output: called once per place with a `TileView`, before and after the steps; the
        field is 0 where `init` sets nothing.
    dtype: float32 or float64, or uint8, int16, int32 or int64 with whole weights and factor.
    progress: who is told how far the steps are; True for a bar (`Computation.run`).

    The other options are those of `Computation`.  Returns what the steps have cost; ValueError
    where they would change no cell, since the field is too small for the stencil.
    """
    program = Stencil.of("stencil", shape, pattern, factor).program(dtype_name(dtype))
    with Computation(
        program,
        sizes,
        partition=partition,
        weights=weights,
        align=align,
        block=block,
        boundary=boundary,
        devices=devices,
        comm=comm,
        overlap=overlap,
        steps_per_launch=steps_per_launch,
        kernel=kernel,
        math=math,
        memory_cap=memory_cap,
        watchdog=watchdog,
        check=check,
        tune=tune,
    ) as computation:
        # all ranks agree on the other arguments by now
        check_options(init=init, output=output)
        iterations = whole(iterations, "iterations")
        periodic = periodic_axes(boundary, program.n_axes)
        check_some_computed(program, computation.domain, periodic)
        if init is not None:
            computation.load(init)
        computation.run(iterations, progress)
        if output is not None:
            computation.visit(output)
        return computation.report()
