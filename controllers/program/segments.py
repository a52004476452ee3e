# SPDX-License-Identifier: MIT
"""Programs that repeat stages, divided: each repeat, and what is between, as a program of its own.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from controllers.program.program import Program
from controllers.program.repeat import Repeat


def segments(program: Program) -> Iterator[tuple[Program, Repeat | None]]:
    """Some stages in a row, and what repeats them: one after another they are the step."""
    end = 0
    for repeat in program.repeats:
        if repeat.first > end:
            yield _segment(program, end, repeat.first), None
        yield _segment(program, repeat.first, repeat.end), repeat
        end = repeat.end
    if end < len(program.stages):
        yield _segment(program, end, len(program.stages)), None


def _segment(program: Program, first: int, end: int) -> Program:
    """These stages, on the fields that they use."""
    stages = program.stages[first:end]
    used = {name for s in stages for name in (*s.fields_read, *s.updates, s.home)}
    return replace(
        program,
        stages=stages,
        fields=tuple(field for field in program.fields if field.name in used),
        temporaries=tuple(field for field in program.temporaries if field.name in used),
        repeats=(),
        results=(),
    )
