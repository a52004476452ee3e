# SPDX-License-Identifier: MIT
"""Random programs of one stage, of which launches compute several steps, and how places do so."""
from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
from random_programs import ProgramCase

from controllers.program.boundary import Boundary
from controllers.program.expression import Expression, Read
from controllers.program.program import Field, Program
from controllers.program.stage import Stage
from hitmap import Layout, Shape

MOST_PLACES = 4
MOST_LENGTH = 5         # steps of a launch
MOST_WIDTH = 12
MOST_CELLS = {1: 60, 2: 400, 3: 900}
SPELLINGS: dict[str, Any] = {
    "keep": "keep", "periodic": "periodic", "fixed": "fixed:0.25", "mirror": "mirror"
}  # fmt: skip
RULES = tuple(SPELLINGS)


@dataclass(frozen=True)
class PacedCase:
    """A program on places, the launch length of each, and runs with the width of each run."""

    case: ProgramCase
    layout: Layout
    lengths: tuple[int, ...]
    widest: int
    runs: tuple[tuple[int, int], ...]   # width, steps


def random_paces(number: int) -> PacedCase:
    """Case `number`, the same every time."""
    rng = random.Random(number)
    n_axes = rng.randint(1, 3)
    first = number % len(RULES)
    rules = [RULES[first], *(rng.choice(RULES) for _ in range(n_axes - 1))]
    program = _program(rng, rules)
    if number % 3 == 1:
        program = _with_time_levels(program)
    side = round(MOST_CELLS[n_axes] ** (1 / n_axes))
    extent = tuple(rng.randint(max(3, side // 2), side) for _ in range(n_axes))
    generator = np.random.default_rng(number)
    arrays = {
        field.name: (generator.random(extent) - 0.5).astype(field.dtype)
        for field in program.fields
    }
    n_places = rng.randint(2, MOST_PLACES)
    domain = Shape.of_extent(extent)
    layout = rng.choice([
        Layout.bands(domain, n_places), Layout.blocks(domain, n_places),
        Layout.weighted(domain, [rng.choice([1, 4, 9]) for _ in range(n_places)]),
    ])  # fmt: skip
    lengths = tuple(rng.randint(1, MOST_LENGTH) for _ in range(n_places - 1))
    lengths = (*lengths, rng.choice([n for n in range(2, MOST_LENGTH + 1) if n != lengths[0]]))
    widest = rng.randint(max(lengths), MOST_WIDTH)
    runs = tuple(
        (rng.choice([widest, rng.randint(1, widest)]), rng.choice([1, 2, rng.randint(1, 20)]))
        for _ in range(rng.randint(2, 5))
    )
    n_steps = sum(count for _, count in runs)
    rings = tuple(rule == "periodic" for rule in rules)
    case = ProgramCase(program, (), arrays, rings, n_steps)
    return PacedCase(case, layout, lengths, widest, runs)


def _with_time_levels(program: Program) -> Program:
    """The same, of which the state before the last one is used, too."""
    (stage,), own = program.stages, program.fields[0]
    value = stage.expression - 0.25 * Read("before", (0,) * program.n_axes)
    return replace(
        program, fields=(*program.fields, replace(own, name="before")),
        stages=(replace(stage, updates={"u": value}),), renames={"before": "u"},
    )  # fmt: skip


def _program(rng: random.Random, rules: Sequence[str]) -> Program:
    """Some of the cells around with weights, of a field and perhaps of one that is only read."""
    n_axes = len(rules)
    reach = [rng.randint(1, 2 if n_axes < 3 else 1) for _ in rules]
    ends = tuple((-n, n) for n in reach)
    dtype = rng.choice(["float32", "float64"])
    terms: list[Expression] = [Read("u", (0,) * n_axes) * 0.5]
    for axis, n in enumerate(reach):    # as far to both sides, as mirrors ask for
        for step in (-n, n):
            terms.append(Read("u", tuple(step * (at == axis) for at in range(n_axes))) * 0.05)
    names = ["u", "k"] if rng.random() < 0.4 else ["u"]
    for _ in range(rng.randint(1, 3)):
        offset = tuple(rng.randint(*axis) for axis in ends)
        terms.append(Read(rng.choice(names), offset) * rng.choice([0.1, -0.15]))
    stage = Stage("random", {"u": reduce(add, terms)}, ends)
    spelling = {axis: SPELLINGS[rule] for axis, rule in enumerate(rules)}
    return Program("random", tuple(Field(name, dtype) for name in names), (stage,)).with_boundaries(
        {name: Boundary.of(spelling, n_axes) for name in names}
    )
