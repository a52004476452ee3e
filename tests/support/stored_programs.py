# SPDX-License-Identifier: MIT
"""Random programs with rules at the ends of axes whose stages read stored values at neighbours."""
from __future__ import annotations

import random
from dataclasses import replace

from random_boundaries import bounded
from random_programs import MAX_REACH, ProgramCase, random_program

from controllers.program.expression import (
    Application,
    Constant,
    Expression,
    Index,
    Read,
    reads,
    where,
)
from controllers.program.functions import STORED
from controllers.program.neighbour import shifted
from controllers.program.node import ordered
from controllers.program.program import Program
from controllers.program.stage import Stage


def stored_program(number: int) -> ProgramCase:
    """Random program `number`, in whose stages parts are stored: some in others, some in several.

    `formulas` say nothing of them.
    """
    case, rng = random_program(number), random.Random(f"stored {number}")
    stages = tuple(_with_stored(case.program, stage, rng) for stage in case.program.stages)
    return bounded(replace(case, program=replace(case.program, stages=stages)), number)


def _with_stored(program: Program, stage: Stage, rng: random.Random) -> Stage:
    values = [node for node in ordered(*stage.updates.values()) if _can_be_stored(node)]
    if not values:
        values = [Read(field.name, (0,) * program.n_axes) * 3 for field in program.fields]
    parts = [_part(values, program.n_axes, rng) for _ in range(rng.randint(1, 2))]
    updates: dict[str, Expression] = {}
    for field, value in stage.updates.items():
        if rng.random() < 0.85 or not updates:
            part = Application(STORED, rng.choice(parts))
            low, high, other = (_moved(part, program.n_axes, rng) for _ in range(3))
            value = where(low > high, value, other.astype(program.dtypes[field]))
        updates[field] = value
    read = [one.offset for one in reads(*updates.values())]
    offsets = tuple(
        (min(first, *axis), max(last, *axis))
        for (first, last), axis in zip(stage.offsets, zip(*read))
    )
    return Stage(stage.name, updates, offsets)


def _part(values: list[Expression], n_axes: int, rng: random.Random) -> Expression:
    """What is stored: of values that are stored themselves, or that differ from cell to cell."""
    value = rng.choice(values)
    if rng.random() < 0.4:
        inner = Application(STORED, rng.choice(values))
        value = where(inner < _moved(inner, n_axes, rng), value, Constant(1))
    if rng.random() < 0.3:
        axis = rng.randrange(n_axes)
        value = where(Index(axis, rng.randint(-1, 1)) > 2, value, Constant(0))
    return value


def _can_be_stored(node: Expression) -> bool:
    return isinstance(node, Application) and not node.is_condition and bool(reads(node))


def _moved(node: Expression, n_axes: int, rng: random.Random) -> Expression:
    most = MAX_REACH[n_axes]
    return shifted(node, tuple(rng.randint(-most, most) for _ in range(n_axes)))
