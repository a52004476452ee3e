# SPDX-License-Identifier: MIT
"""What a plan records for folds: each place folds what its launches found, then ranks combine.

A fold that a scalar of the step is made of is done in every step.  All others are *occasional*:
they are left out of steps after which nobody looks at them, and combined together at their end.
"""
# docs/decisions/0042-folds-are-operations-of-the-plan.md
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

from controllers.plan.operation import FoldKey, Operation
from controllers.plan.outline import Outline
from controllers.plan.recorder import Recorder
from controllers.program.expression import Scalar
from controllers.program.extension import scalars_of
from controllers.program.program import Program
from controllers.program.scalars import TIME_STEP
from controllers.program.sweep import Sweep

TURN = -1           # in place of a sweep: whose turn it is, as all ranks combine in one order
NOWHERE = -1        # the place of what a rank without places does
_OF_PLACES: tuple[Literal["launches", "place"], ...] = ("place", "launches")


@lru_cache(maxsize=64)
def needed(program: Program) -> frozenset[str]:
    """The folds of which scalars are made that steps use; where `dt` is, all."""
    rules = program.rules
    if rules.time_is_folded:
        return frozenset(rules.folds)
    used = {one.name for stage in program.stages for one in stage.given if isinstance(one, Scalar)}
    for field in program.fields:
        used |= scalars_of(field.boundary, field.name, program.n_axes)
    return frozenset(rules.needs({*used, TIME_STEP}))


def is_occasional(program: Program, sweep: Sweep) -> bool:
    """Whether no fold of a sweep is needed within steps."""
    return bool(sweep.folds) and needed(program).isdisjoint(sweep.folds)


def folds_at_times(plan: Outline, operation: Operation) -> bool:
    """Whether an operation is a launch that folds in some steps, and updates fields in all."""
    return bool(operation.writes and operation.gives) and is_occasional(
        plan.program, plan.sweeps[operation.gives[0].sweep]
    )


def makers(plan: Outline, made: Sweep) -> tuple[int, ...]:
    """The sweeps whose folds make the scalars that a sweep uses."""
    names = [one.name for one in made.stage.given if isinstance(one, Scalar)]
    folds = plan.program.rules.needs(names)
    return tuple(n for n, sweep in enumerate(plan.sweeps) if not folds.isdisjoint(sweep.folds))


def known(plan: Outline, sweep: Sweep, place: int) -> tuple[FoldKey, ...]:
    """What a launch of a sweep has to know of folds at a place."""
    rank = plan.locations[place].rank
    return tuple(FoldKey(number, "ranks", rank) for number in makers(plan, sweep))


def record_folds(plan: Outline, recorder: Recorder, number: int) -> None:
    """What follows the launches of a sweep: it is folded, and combined where steps need it."""
    sweep = plan.sweeps[number]
    if not sweep.folds:
        return
    occasional = is_occasional(plan.program, sweep)
    for place in plan.places:
        if not plan.updated(sweep, place).empty:
            recorder.add(
                place, "fold", "compute", (), (), occasional=occasional,
                takes=[FoldKey(number, "launches", place)],
                gives=[FoldKey(number, "place", place)],
            )  # fmt: skip
    if not occasional:
        _combine(plan, recorder, [number])


def record_occasional(plan: Outline, recorder: Recorder) -> None:
    """What ends a step after which somebody looks at its folds."""
    numbers = [
        number for number, sweep in enumerate(plan.sweeps)
        if is_occasional(plan.program, sweep)
    ]  # fmt: skip
    if numbers:
        _combine(plan, recorder, numbers, occasional=True)


def combined(keys: Sequence[FoldKey]) -> tuple[int, ...]:
    """The sweeps whose folds are among what an operation makes known."""
    return tuple(key.sweep for key in keys if key.sweep != TURN)


def _combine(
    plan: Outline, recorder: Recorder, numbers: Sequence[int], *, occasional: bool = False
) -> None:
    """Of all places of each rank, and of all ranks, in one message; in the first place's list."""
    for rank, places in _ranks(plan):
        taken = [    # what launches left, too: they write over what has been downloaded
            FoldKey(number, of, place)
            for of in _OF_PLACES
            for number in numbers
            for place in places
            if not plan.updated(plan.sweeps[number], place).empty
        ]
        given = (FoldKey(number, "ranks", rank) for number in (*numbers, TURN))
        first = places[0] if places else NOWHERE
        recorder.add(
            first, "combine", "network", (), (), takes=taken, gives=given, occasional=occasional
        )


def _ranks(plan: Outline) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The ranks that the plan is for, with their places that hold cells."""
    ranks = {plan.locations[place].rank for place in plan.places}
    for rank in sorted(ranks) if plan.only_rank is None else [plan.only_rank]:
        yield rank, tuple(place for place in plan.places if plan.locations[place].rank == rank)
