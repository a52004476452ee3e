# SPDX-License-Identifier: MIT
"""Random programs whose fields have rules at the ends of axes, of every kind."""
from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from random_programs import ProgramCase, random_program

from controllers.program.boundary import KEEP, PERIODIC, Boundary, Inside, Side, Value
from controllers.program.program import INTEGERS
from controllers.program.rule import Custom, Extrapolate, Fixed, Mirror, Rule


def half(inside: Inside, distance: int) -> Value:
    """A rule of a user: two cells inside, weighted."""
    value: Value = (inside(distance - 1) + 3 * inside(0)) / 4
    return value


def whole_half(inside: Inside, distance: int) -> Value:
    """The same of integers, rounded down."""
    value: Value = (inside(distance - 1) // 4 + 3 * (inside(0) // 4)).astype("uint8")
    return value


def bounded_program(number: int) -> ProgramCase:
    """Random program `number` with rules on its axes that are not periodic."""
    return bounded(random_program(number), number)


def bounded(case: ProgramCase, number: int) -> ProgramCase:
    """A case with random rules, which follow from a number, on its axes that are not periodic."""
    for trial in range(50):
        rng = random.Random(f"{number} {trial}")
        ruled = replace(case, program=case.program.with_boundaries(_boundaries(case, rng)))
        try:
            assert ruled.expected
        except ValueError as error:     # a domain too short for the rules
            assert "larger domain" in str(error), error
            continue
        return ruled
    raise AssertionError("no rules suit the domain")


def same(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> bool:
    """Whether all bits agree, but for those that say which NaN it is."""
    if one.dtype.kind != "f":
        return np.array_equal(one, other)
    ones, others = (a.view(f"u{a.itemsize}") for a in map(np.ascontiguousarray, (one, other)))
    return bool(((ones == others) | (np.isnan(one) & np.isnan(other))).all())


def _boundaries(case: ProgramCase, rng: random.Random) -> dict[str, Boundary]:
    renames, names = case.program.renames, [field.name for field in case.program.fields]
    shared = {*renames, *renames.values()}
    together, found = _boundary(case, min(shared, default=names[0]), rng), {}
    for name in names:
        found[name] = together if name in shared else _boundary(case, name, rng)
    return found


def _boundary(case: ProgramCase, field: str, rng: random.Random) -> Boundary:
    dtype, steady = case.program.dtypes[field], rng.random() < 0.25
    axes: list[Side] = []
    for wraps, length in zip(case.periodic, case.extent):
        if wraps:
            axes.append((PERIODIC, PERIODIC))
        else:
            sides = [_rule(dtype, length, rng, steady) for _ in range(2)]
            axes.append((sides[0], sides[0] if rng.random() < 0.4 else sides[1]))
    return Boundary(tuple(axes))


def _rule(dtype: str, length: int, rng: random.Random, steady: bool) -> Rule:
    value = rng.choice([0, 3, 7] if dtype in INTEGERS else [0.0, 0.1, -1.5])
    if steady:
        return Fixed(value)
    return rng.choice([
        KEEP, Fixed(value), Mirror(), Mirror(1 if dtype == "uint8" else -1),
        Custom(whole_half if dtype in INTEGERS else half),
        Extrapolate(rng.randrange(min(3, length))),
    ])  # fmt: skip
