# SPDX-License-Identifier: MIT
"""A program's stage becomes OpenCL C, by one of the strategies."""
from __future__ import annotations

from controllers.kgt.kernel import StageKernel
from controllers.kgt.naming import clashes, renamed, with_names
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.config import Config
from controllers.program.program import Program, Stage


def generate(program: Program, stage: Stage, config: Config | None = None) -> StageKernel:
    """The kernel of one stage of `program`; the same arguments give the same text.

    Without a configuration it computes one cell per work-item.  ValueError where the strategy
    cannot compute the stage.
    """
    used = config or CellConfig()
    used.check(program, stage)
    names = clashes(stage)
    if not names:
        return used.kernel(program, stage)
    return with_names(used.kernel(*renamed(program, stage, names)), names)
