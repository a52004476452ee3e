# SPDX-License-Identifier: MIT
"""Random programs whose stages may mostly be fused, and that fold; later ones use what was folded.
"""
from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, get_args

from fusable_programs import fusable_program
from random_programs import ProgramCase

from controllers.program.expression import Expression, Read, Scalar, walk
from controllers.program.fold import CONDITIONS, Fold, FoldKind
from controllers.program.program import FLOATS, Program
from controllers.program.reference import ReferenceState, reference_steps
from controllers.program.stage import Stage

KINDS: tuple[FoldKind, ...] = get_args(FoldKind)
OF_NONE = ("sum", "any", "all")     # which have a result where no cell takes part


@dataclass(frozen=True)
class FoldCase:
    """A program that folds, and what there is after its steps, by the reference."""

    case: ProgramCase
    right: ReferenceState


@cache
def fold_case(number: int) -> FoldCase:
    """Case `number`, the same every time."""
    base = fusable_program(number)
    base = replace(base, n_steps=max(1, base.n_steps))
    rng = random.Random(f"folds {number}")
    for kinds in (KINDS, OF_NONE):
        program = _folding(base.program, rng, kinds)
        case = replace(base, program=program)
        try:
            (*_, right) = reference_steps(
                program, case.arrays, case.periodic, n_steps=case.n_steps
            )
        except ValueError as error:     # a stage that computes nothing
            assert "no cells" in str(error), error
            continue
        return FoldCase(case, right)
    raise AssertionError(f"case {number} has no results")


def _folding(program: Program, rng: random.Random, kinds: tuple[FoldKind, ...]) -> Program:
    names: list[str] = []
    stages = []
    for stage in program.stages:
        folds = {}
        if rng.random() < 0.7:
            for _ in range(rng.randint(1, 3)):
                folds[f"number_{len(names) + len(folds)}"] = _fold(stage, rng, kinds)
        updates = {
            field: _moved(program, field, value, names, rng)
            for field, value in stage.updates.items()
        }
        if folds and rng.random() < 0.3:    # a stage of its own before
            first = next(iter(folds))
            like = "" if _reads(folds[first]) else stage.home
            alone = {first: folds.pop(first)}
            stages.append(Stage(f"{stage.name[:40]}_alone", {}, stage.offsets, alone, like))
            names.append(first)
        stages.append(replace(stage, updates=updates, folds=folds))
        names += folds
    return replace(program, stages=tuple(stages), results=None)


def _reads(fold: Fold) -> bool:
    return any(isinstance(node, Read) for node in walk(*fold.expressions))


def _fold(stage: Stage, rng: random.Random, kinds: tuple[FoldKind, ...]) -> Fold:
    kind = rng.choice(kinds)
    values: list[Any] = [*stage.updates.values(), *stage.reads]
    value, other = rng.choice(values), rng.choice(values)
    if kind in CONDITIONS:
        value = value > other if rng.random() < 0.5 else value <= other
    over = other > rng.choice([0, 1]) if kind in OF_NONE and rng.random() < 0.4 else None
    return Fold(kind, value, over)


def _moved(
    program: Program, field: str, value: Expression, names: list[str], rng: random.Random
) -> Any:
    """What a field gets, and a little of what was folded before."""
    if names and program.dtypes[field] in FLOATS and rng.random() < 0.5:
        return value + Scalar(rng.choice(names)) / 1024
    return value
