# SPDX-License-Identifier: MIT
"""Programs that repeat stages, divided: each repeat, and what is between, as a program of its own.

What other segments fold, and what is made of that alone, are parameters of a segment.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from controllers.program.program import Program
from controllers.program.repeat import Repeat
from controllers.program.scalars import Folded, Parameter, ScalarRule, ScalarRules
from controllers.program.stage import Stage


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
        scalars=_scalars(program.rules, stages),
        repeats=(),
        results=(),
    )


def _scalars(rules: ScalarRules, stages: Sequence[Stage]) -> dict[str, ScalarRule]:
    mine = {name for stage in stages for name in stage.folds}

    def is_given(name: str, rule: ScalarRule) -> bool:
        if isinstance(rule, Folded):
            return name not in mine
        needs = rules.needs([name])
        return bool(needs) and not needs & mine

    return {n: Parameter(1.0) if is_given(n, rule) else rule for n, rule in rules.items()}
