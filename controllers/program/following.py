# SPDX-License-Identifier: MIT
"""Fields that follow others: what a step renames, as launches of several steps make it.

`renames={"before": "u"}` gives a field what another one was as the step began, and moves nothing:
names change.  After a launch of several steps it has what the other one was as the *last* of them
began, which is in no memory yet.  So such a launch writes both fields, and renames none:

    one step        u, before  ->  u_new                before is u
    several         u, before  ->  u_new, before_new

The field that follows has the other one's values in cells that are not computed, too.
"""
# docs/decisions/0107-two-time-levels-in-one-launch.md
from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from controllers.program.expression import Read
from controllers.program.program import Program
from controllers.program.stage import Stage


def why_not_followed(program: Program) -> str:
    """Why what a program of one stage renames cannot be written by it; "" where it can."""
    (stage,) = program.stages
    if len(program.renames) > 1:
        return f"the program renames several fields, {', '.join(program.renames)}"
    for new, old in program.renames.items():
        if [*stage.updates] != [old]:
            return f"the program renames {old} to {new}, which is not all that its stage updates"
        offsets = [read.offset for read in stage.reads if read.field == new]
        if not offsets or any(map(any, offsets)):
            return f"the program renames {old} to {new}, which it does not read at the cell alone"
    return ""


def followed(program: Program) -> Program:
    """The same program, which writes what it renames; itself where it renames nothing.

    >>> u, old = Read("u", (0,)), Read("old", (0,))
    >>> stage = Stage("leap", {"u": old + Read("u", (1,))}, ((0, 1),))
    >>> from controllers.program.field import Field
    >>> fields = Field("u", "float32"), Field("old", "float32")
    >>> made = followed(Program("leap", fields, (stage,), renames={"old": "u"}))
    >>> made.written, made.renames, made.stages[0].follows
    (('u', 'old'), {}, {'old': 'u'})
    """
    if not program.renames or len(program.stages) > 1 or why_not_followed(program):
        return program
    return replace(program, stages=(following(program, program.stages[0]),), renames={})


def as_launched(program: Program, n_steps: int) -> Program:
    """The program that launches of so many steps compute."""
    return followed(program) if n_steps > 1 else program


def following(program: Program, stage: Stage) -> Stage:
    """The one stage of a program that renames, which writes that field, too, both elsewhere."""
    ((new, old),) = program.renames.items()
    updates = {**stage.updates, new: Read(old, (0,) * program.n_axes)}
    return replace(stage, updates=updates, follows={new: old}, overwrites={})


def leading(stage: Stage) -> Stage:
    """The same stage without what follows: what each of several steps computes."""
    return _leading(stage) if stage.follows else stage


@lru_cache(maxsize=64)      # stages are compared as objects by those who keep kernels
def _leading(stage: Stage) -> Stage:
    updates = {field: e for field, e in stage.updates.items() if field not in stage.follows}
    return replace(stage, updates=updates, follows={})


def leader(stage: Stage) -> str:
    """The field that each of several steps computes; ValueError where there are several."""
    return leading(stage).writes
