# SPDX-License-Identifier: MIT
"""Random programs whose stages may mostly be fused: what was written before is read in the cell."""
from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import count

from random_programs import ProgramCase, random_program
from random_steps import random_steps

from controllers.program.expression import Expression, Read
from controllers.program.fusion import fused
from controllers.program.program import Program
from controllers.program.stage import Stage
from controllers.program.stored_values import replaced


@cache
def fusable_program(number: int) -> ProgramCase:
    """Case `number`: even ones are random steps, odd ones random programs, in some of whose stages
    reads are moved to the cell itself, and all of which declare the same offsets."""
    case = random_program(number // 2) if number % 2 else random_steps(number // 2)
    return replace(case, program=_near(case.program))


@cache
def fused_number(position: int) -> int:
    """The number of a case some of whose stages go into one sweep: of all those, from 0 on."""
    first = fused_number(position - 1) + 1 if position else 0
    programs = ((number, fusable_program(number).program) for number in count(first))
    return next(number for number, one in programs if len(fused(one).stages) < len(one.stages))


def _near(program: Program) -> Program:
    written: set[str] = set()
    made: list[Stage] = []
    hull = tuple(
        (min(0, *(low for low, _ in axis)), max(0, *(high for _, high in axis)))
        for axis in zip(*(stage.offsets for stage in program.stages))
    )
    for stage in program.stages:
        here: dict[Expression, Expression] = {
            read: Read(read.field, (0,) * program.n_axes)
            for read in stage.reads if read.field in written
        }  # fmt: skip
        values = replaced(stage.updates.values(), here)
        made.append(replace(stage, updates=dict(zip(stage.updates, values)), offsets=hull))
        written |= {*stage.updates}
    return replace(program, stages=tuple(made))
