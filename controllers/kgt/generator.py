# SPDX-License-Identifier: MIT
"""The choice of a strategy: a program's stage becomes OpenCL C."""
from __future__ import annotations

from collections.abc import Callable, Mapping

from controllers.kgt.cell import cell_kernel
from controllers.kgt.kernel import GeneratedKernel
from controllers.program import Program, Stage

STRATEGIES: Mapping[str, Callable[[Program, Stage], GeneratedKernel]] = {"cell": cell_kernel}
DEFAULT_STRATEGY = "cell"


def generate(program: Program, stage: Stage, strategy: str = DEFAULT_STRATEGY) -> GeneratedKernel:
    """The kernel of one stage of `program`; the same arguments give the same text."""
    if strategy not in STRATEGIES:
        raise ValueError(f"the strategy is one of {', '.join(STRATEGIES)}, got {strategy!r}")
    return STRATEGIES[strategy](program, stage)
