# SPDX-License-Identifier: MIT
"""Scalars, indices and coordinates in whole runs: the bits of the reference, and no builds."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sample import cases

from controllers import Computation, Field, Program, Read, Stage, reference_run
from controllers.program.coordinates import Coordinates
from controllers.program.expression import Coordinate, Expression, Index, Scalar, where
from controllers.program.scalars import Parameter

Array = npt.NDArray[Any]
U, V = Read("u", (0, 0)), Read("v", (0, 0))
T, DT, A, B = Scalar("t"), Scalar("dt"), Scalar("a"), Scalar("b")
SCALARS = {"a": Parameter(0.75), "b": Parameter(), "c": np.sqrt(A) * B, "d": np.cos(T) + A}
GRID = Coordinates(("y", "x"), (-1.0, 3.0), (0.1, 0.3))


def leaf(rng: random.Random, *, steady: bool = False) -> Expression:
    """A number that a stage is given, or reads."""
    offset = rng.randint(-3, 3)
    axis = rng.randrange(2)
    given = [A, B, Scalar("c"), A / 3 + B, DT]
    if not steady:
        given += [T, Scalar("d"), np.exp(-T * A), Coordinate(axis, rng.random() < 0.5, offset)]
        given += [where(Index(axis, offset) == rng.randint(0, 9), A, V)]
        given += [where(Index(0) + Index(1) * 2 < rng.randint(0, 30), U, T)]
    return rng.choice(given)


def tree(rng: random.Random, n_leaves: int, **how: bool) -> Expression:
    if n_leaves == 1:
        reach = rng.randint(-1, 1), rng.randint(-1, 1)
        return Read(rng.choice("uv"), reach) if rng.random() < 0.5 else leaf(rng, **how)
    left = rng.randint(1, n_leaves - 1)
    one, other = tree(rng, left, **how), tree(rng, n_leaves - left, **how)
    return rng.choice([one + other, one - other, one * 0.5 - other, one * other])


def program(seed: int, dtype: str = "float32", **how: bool) -> Program:
    rng, shape = random.Random(seed), ((-1, 1), (-1, 1))
    stages = (
        Stage("flow", {"u": U + tree(rng, 5, **how) * 0.01}, shape),
        Stage("react", {"v": V * 0.5 + tree(rng, 4, **how) * 0.01}, shape),
    )
    fields = Field("u", dtype), Field("v", dtype)
    return Program("given", fields, stages[: rng.randint(1, 2)], scalars=SCALARS, grid=GRID)


def start(program: Program, extent: tuple[int, ...] = (23, 19)) -> dict[str, Array]:
    rng = np.random.default_rng(1)
    return {field.name: rng.random(extent).astype(program.dtype) for field in program.fields}


def fields_of(run: Computation) -> dict[str, Array]:
    return {name: run[name].gather() for name in run.fields}  # type: ignore[misc]


def check(made: Program, periodic: tuple[bool, bool], n_steps: int, **how: Any) -> Computation:
    """A run, with its parameters changed on the way, has the bits of the reference."""
    arrays = start(made)
    words = ["periodic" if wraps else "fixed" for wraps in periodic]
    with Computation(made, (23, 19), boundary=words, dt=0.125, **how) as run:
        for name, array in arrays.items():
            run[name].scatter(array)
        run.run(n_steps, b=0.3)
        right = reference_run(made, arrays, n_steps, periodic, {"b": 0.3}, dt=0.125)
        for name, array in fields_of(run).items():
            assert array.tobytes() == right[name].tobytes(), name
        assert (run.step, run.time) == (n_steps, n_steps * 0.125)
        if not made.changing:
            run.run(2, a=1.25)
            right = reference_run(made, right, 2, periodic, {"b": 0.3, "a": 1.25}, dt=0.125)
            for name, array in fields_of(run).items():
                assert array.tobytes() == right[name].tobytes(), name
    return run


@pytest.mark.parametrize("seed", cases(3, 60))
def test_random_programs_have_the_bits_of_the_reference(seed: int) -> None:
    rng = random.Random(seed)
    made = program(seed, rng.choice(["float32", "float64"]), steady=seed % 3 == 0)
    periodic = rng.random() < 0.5, rng.random() < 0.5
    devices = "reference" if seed % 3 == 1 else "cpu"
    places = rng.choice([1, 2, 3, 5])
    check(made, periodic, 3 + 40 * (seed % 3 == 1), devices=devices, places_per_controller=places)
