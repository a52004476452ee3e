# SPDX-License-Identifier: MIT
"""Random programs with folds: those of `random_steps` that fold parts of what they compute.

A case follows from its number alone.  Folds lie in stages that update and in stages of their own,
with and without a condition; what later stages compute depends on some of them.
"""
from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import count
from typing import Any

from random_boundaries import bounded_program
from random_programs import ProgramCase, random_program
from random_steps import random_steps

from controllers.program.expression import Expression, Read, Scalar, walk, where
from controllers.program.fold import CONDITIONS, Fold, FoldKind
from controllers.program.program import Program
from controllers.program.segments import segments, with_formers
from controllers.program.stage import Stage

N_CASES = 60
NUMBERS: tuple[FoldKind, ...] = ("sum", "sum", "min", "max", "argmin", "argmax")


@cache
def random_folds(number: int) -> ProgramCase:
    """Case `number`, the same every time."""
    for trial in range(30):
        try:
            case = _with_folds(random_steps(number), random.Random(f"folds {number} {trial}"))
            if not case.results:
                continue
        except ValueError as error:     # a condition that holds nowhere
            assert "of no cells" in str(error), error
            continue
        return case
    return _with_folds(random_steps(number), random.Random(number), extremes=False)


@cache
def late_reads(number: int) -> ProgramCase:
    """Case `number`: fields that are renamed are read after folds, after what they become is made.
    """
    for trial in count(1):
        rng = random.Random(f"late {number} {trial}")
        made = bounded_program if number % 2 else random_program
        case = made(number + 1000 * trial)
        if len(case.program.stages) == 1 or not case.program.renames:
            continue
        case = replace(case, n_steps=2 + case.n_steps % 3)
        try:
            case = _with_folds(case, rng)
            if case.results and _reads_late(case.program):
                return case
        except ValueError as error:     # a condition that holds nowhere
            assert "of no cells" in str(error), error
    raise AssertionError("trials do not end")


def _reads_late(program: Program) -> bool:
    """Whether segments read a field under another name."""
    divided = (one for one, _ in segments(with_formers(program), at_folds=True))
    reads = [stage.fields_read for one in divided for stage in one.stages]
    return reads != [stage.fields_read for stage in program.stages]


def _with_folds(case: ProgramCase, rng: random.Random, extremes: bool = True) -> ProgramCase:
    stages: list[Stage] = []
    for stage in case.program.stages:
        made = _drawn(stage, rng, len(stages), extremes)
        if made and rng.random() < 0.5:     # a stage of folds alone, which the next one uses
            alone = f"{stage.name}_look"
            stages.append(Stage(alone, {}, stage.offsets, made, like=stage.home))
            field, value = rng.choice([*stage.updates.items()])
            own = Read(field, (0,) * len(stage.offsets))
            limit = rng.choice([-0.5, 0.0, 3])
            chosen = where(Scalar(rng.choice([*made])) > limit, value, own)
            around = tuple((min(0, low), max(0, high)) for low, high in stage.offsets)
            stage = replace(stage, updates={**stage.updates, field: chosen}, offsets=around)
            made = _drawn(stage, rng, len(stages), extremes)
        stages.append(replace(stage, folds=made))
    return replace(case, program=_of(case, stages), formulas=())


def _of(case: ProgramCase, stages: list[Stage]) -> Any:
    return replace(case.program, stages=tuple(stages), results=None)  # type: ignore[arg-type]


def _drawn(stage: Stage, rng: random.Random, position: int, extremes: bool) -> dict[str, Fold]:
    """Some folds of parts of what a stage computes."""
    parts = [node for node in stage.nodes if _reads(node)]
    values = [node for node in parts if not node.is_condition]
    conditions: list[Expression] = [node for node in parts if node.is_condition]
    if values:
        conditions.append(values[0] > 0)
    found: dict[str, Fold] = {}
    for kind in _kinds(rng, extremes):
        operands = conditions if kind in CONDITIONS else values
        if operands:
            over = rng.choice(conditions) if conditions and rng.random() < 0.3 else None
            found[f"f_{position}_{len(found)}"] = Fold(kind, rng.choice(operands), over)
    return found


def _kinds(rng: random.Random, extremes: bool) -> Iterator[FoldKind]:
    for _ in range(rng.randint(0, 3)):
        kinds: list[Any] = [*NUMBERS, *CONDITIONS] if extremes else ["sum", *CONDITIONS]
        yield rng.choice(kinds)


def _reads(node: Expression) -> bool:
    return any(isinstance(one, Read) for one in walk(node))
