# SPDX-License-Identifier: MIT
"""The iterative-stencil skeleton: one call from a pattern of weights to a report.

Skeleton after EPSILOD, de Castro et al. 2023, doi:10.1007/s11227-022-05040-y: borders
first, their hand-over while the inner part is computed, tiles swapped without copying.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy.typing as npt

from controllers.kernel.variant import Kernel
from controllers.language.dtype import dtype_name
from controllers.language.weights import Pattern, Stencil
from controllers.memory.tile import TileView
from controllers.report.report import Report
from controllers.run.computation import Computation
from controllers.run.progress import Watcher
from controllers.settings.division import Division
from controllers.settings.domain import Boundaries, check_some_computed
from controllers.settings.execution import Execution
from controllers.settings.request import Sizes
from hitmap.argument import function, whole
from hitmap.comm import Communicator

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from controllers.settings.request import Keywords


def stencil_computation(  # type: ignore[misc]  # `kernel` has a place of its own
    sizes: Sizes,
    shape: Sequence[Sequence[int]] | None,
    pattern: Pattern,
    factor: float,
    iterations: int,
    kernel: str | Kernel | None = None,
    init: Callable[[TileView], None] | None = None,
    output: Callable[[TileView], None] | None = None,
    *,
    boundary: Boundaries = None,
    comm: Communicator | None = None,
    dtype: npt.DTypeLike = "float32",
    progress: Watcher = None,
    division: Division | None = None,
    execution: Execution | None = None,
    **keywords: Unpack[Keywords],
) -> Report:
    """Apply a weighted stencil `iterations` times to a field; collective.

    sizes: extents of the field in cells, its boundary cells included; or the initial field.
    shape: inclusive first and last offset per axis, such as [(-1, 1), (-1, 1)]; None for those
        around the middle of a nested pattern.
    pattern: the weights over `shape` in C order, flat or nested; 0 where nothing is read.
    factor: what the weighted sum is divided by.
    kernel: None for the kernel that is generated for the stencil, "generic", or one of your
        own (`register_stencil`); `pattern` then says which neighbours it reads.
    init, output: called once per place with a `TileView`, before and after the steps; the
        field is 0 where `init` sets nothing.
    dtype: float32 or float64, or uint8, int16, int32 or int64 with whole weights and factor.
    progress: who is told how far the steps are; True for a bar (`Computation.run`).

    The other arguments are those of `Computation`.  Returns what the steps have cost; ValueError
    where they would change no cell, since the field is too small for the stencil.
    """
    if kernel is not None:
        keywords["kernel"] = kernel
    program = Stencil.of("stencil", shape, pattern, factor).program(dtype_name(dtype))
    with Computation(
        program, sizes, boundary=boundary, comm=comm, division=division, execution=execution,
        **keywords,
    ) as computation:  # fmt: skip
        # all ranks agree on the other arguments by now
        for what, given in {"init": init, "output": output}.items():
            if given is not None:
                function(given, what)
        iterations = whole(iterations, "iterations")
        check_some_computed(program, computation.domain, computation.plan.periodic)
        if init is not None:
            computation.load(init)
        computation.run(iterations, progress)
        if output is not None:
            computation.visit(output)
        return computation.report()
