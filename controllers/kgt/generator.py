# SPDX-License-Identifier: MIT
"""A program's stage becomes OpenCL C, by one of the strategies."""
from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import lru_cache

from controllers.kgt.kernel import StageKernel
from controllers.kgt.naming import clashes, renamed, with_names
from controllers.kgt.strategies.cell import CellConfig
from controllers.kgt.strategies.config import Config
from controllers.kgt.text.fold_values import with_values
from controllers.program.program import Field, Math, Program, Stage


def generate(
    program: Program, stage: Stage, config: Config | None = None, *, digests: bool = False
) -> StageKernel:
    """The kernel of one stage of `program`; the same arguments give the same text.

    Without a configuration it computes one cell per work-item.  ValueError where the strategy
    cannot compute the stage.
    digests: the one that takes them, too, of a strategy that can.
    """
    program, stage = with_values(program, stage)
    config = config or CellConfig()
    return _generated(_Asked(stage, program.fields, program.math, config, digests, program))


@dataclass(frozen=True)
class _Asked:
    """What a text depends on, and a program that has it."""

    stage: Stage
    fields: tuple[Field, ...]
    math: Math
    config: Config
    digests: bool
    program: Program = dataclass_field(compare=False)


@lru_cache(maxsize=64)      # of a plan, most launches are alike
def _generated(asked: _Asked) -> StageKernel:
    program, stage, config = asked.program, asked.stage, asked.config
    config.check(program, stage)
    kernel = config.digesting if asked.digests else config.kernel
    names = clashes(stage)
    if not names:
        return kernel(program, stage)
    return with_names(kernel(*renamed(program, stage, names)), names)
