# SPDX-License-Identifier: MIT
"""Several steps per launch between mirrors, and with scalars: the bits of the reference."""
from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sample import cases, sample

from controllers import (
    Boundary,
    Computation,
    Field,
    Kernel,
    Parameter,
    Program,
    Read,
    Scalar,
    Stage,
    fixed,
    mirror,
    reference_run,
)
from controllers.program.expression import Expression
from controllers.program.rule import Rule
from hitmap import SerialCommunicator

Arrays = dict[str, npt.NDArray[Any]]
N_STEPS = 7

TWICE = """
__kernel void line(__global const VALUE *restrict u, __global VALUE *restrict u_new, TILE(u), BOX,
                   const long computed_first_0, const long computed_last_0)
{
    CELL;
    NEW(u) = (NEAR(u, -2) + 2 * NEAR(u, 0) + NEAR(u, 2)) / 4;
}
"""


def random_case(number: int) -> tuple[Program, Arrays]:
    """One stage, of unlike weights, of a field between mirrors and other ends; random values."""
    rng = random.Random(number)
    n_axes, reach, dtype = 1 + number % 3, rng.randint(1, 2), rng.choice(["float32", "float64"])
    dtype = "int32" if number % 5 == 4 else dtype
    names = ["u", "k"][: rng.randint(1, 2)]
    ends = [
        tuple(side if axis == at else 0 for axis in range(n_axes))
        for at in range(n_axes) for side in (-reach, reach)
    ]  # fmt: skip
    others = [tuple(rng.randint(-reach, reach) for _ in range(n_axes)) for _ in range(3)]
    reads = [Read("u", offset) for offset in ends] + [Read(rng.choice(names), o) for o in others]
    value: Expression = sum((rng.choice([1, 2, 3]) * read for read in reads[1:]), reads[0])
    scalars = {}
    if dtype == "int32":
        value = (value // 5).astype("int32")
    else:
        value = value / 15
        if rng.random() < 0.6:      # numbers of a run are arguments of its kernels
            value, scalars = value * Scalar("a") + Scalar("b"), {"a": 0.9, "b": 0.125}
    rules = [_rules(rng, at == number % n_axes) for at in range(n_axes)]
    rings = ["periodic" if rule == "periodic" else ("extrapolate", "mirror") for rule in rules]
    fields = (
        Field("u", dtype, Boundary.of(rules, n_axes)), Field("k", dtype, Boundary.of(rings, n_axes))
    )[: 1 + ("k" in {read.field for read in reads})]  # fmt: skip
    stage = Stage("step", {"u": value}, ((-reach, reach),) * n_axes)
    program = Program("p", fields, (stage,),
                      scalars={name: Parameter(usual) for name, usual in scalars.items()})
    extent = [(rng.randint(40, 150),), (rng.randint(9, 30), rng.randint(20, 70)),
              (9, rng.randint(8, 12), rng.randint(18, 40))][n_axes - 1]  # fmt: skip
    values = np.random.default_rng(number)
    start = {field.name: (values.standard_normal(extent) * 40).astype(dtype) for field in fields}
    return program, start


def _rules(rng: random.Random, has_mirror: bool) -> Any:
    if not has_mirror and rng.random() < 0.25:
        return "periodic"
    rules: list[Rule | str] = [mirror(), mirror(-1), fixed(2), "keep"]
    pair = [rng.choice(rules), rng.choice(rules[:2] if has_mirror else rules)]
    return tuple(rng.sample(pair, 2))


def check(program: Program, start: Arrays, n_places: int, n_at_once: int, devices: str) -> None:
    right = reference_run(program, start, N_STEPS)["u"]
    with Computation(
        program, start["u"].shape, steps_per_launch=n_at_once, devices=devices,
        places_per_controller=n_places, partition=["bands", "blocks"][n_places % 2],
        comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        assert run.plan.steps_per_launch == n_at_once
        for name, values in start.items():
            run[name].scatter(values)
        run.run(N_STEPS)    # the last launch is of fewer steps
        got = run["u"].gather()
    assert got is not None and got.tobytes() == right.tobytes(), program.boundaries


@pytest.mark.parametrize("number", cases(1, 60))
def test_launches_of_several_steps_copy_what_lies_behind_mirrors(number: int) -> None:
    program, start = random_case(number)
    for n_places, n_at_once in ((1, 4), (2, 3), (3, 2), (5, 3)):
        check(program, start, n_places, n_at_once, "reference")


@pytest.mark.whole
@pytest.mark.parametrize("number", sample(range(1, 61), 60))
def test_kernels_of_several_steps_copy_what_lies_behind_mirrors(number: int) -> None:
    program, start = random_case(number)
    n_places, n_at_once = [(2, 2), (1, 4), (3, 2), (5, 3), (1, 3)][number % 5]
    try:
        check(program, start, n_places, n_at_once, "cpu:0")
    except ValueError as error:     # the place at an end may be as narrow as that
        assert "no kernel computes" in str(error)


def test_what_a_launch_cannot_copy_is_refused_with_the_reason() -> None:
    u = [Read("u", (step,)) for step in (-1, 0, 1)]
    field = Field("u", "float32", Boundary.of("mirror", 1))
    upwind = Program("upwind", (field,), (Stage("s", {"u": (u[0] + u[1]) / 2}, ((-1, 0),)),))
    wide = Stage("s", {"u": (Read("u", (-3,)) + Read("u", (3,))) / 2}, ((-3, 3),))
    for program, reason in (
        (upwind, "its stage reads 1 cells below and 0 above, where a mirror is on axis 0"),
        (Program("wide", (field,), (wide,)), "a mirror on axis 0 shows more cells than there are"),
    ):
        with Computation(program, (2,), devices="reference") as run:
            assert run.plan.steps_per_launch == 1
        with pytest.raises(ValueError, match=f"needs 1 step per launch: {reason}"):
            Computation(program, (2,), devices="reference", steps_per_launch=2)
    own = Kernel.of("line", TWICE, steps_per_launch=2)
    mean = Program("mean", (field,), (Stage("s", {"u": (u[0] + u[2]) / 2}, ((-1, 1),)),))
    with pytest.raises(ValueError, match="'line' would compute 2 steps.*a mirror of 'u'"):
        Computation(mean, (9,), devices="cpu", kernel=own)


@pytest.mark.parametrize("devices", sample(["reference", "cpu:0"], 2))
def test_scalars_of_a_run_are_arguments_of_launches_of_several_steps(devices: str) -> None:
    u = [Read("u", (step,)) for step in (-1, 0, 1)]
    stage = Stage("s", {"u": u[1] + Scalar("a") * (u[0] - u[2]) + Scalar("middle")}, ((-1, 1),))
    program = Program("p", (Field("u", "float32", Boundary.of("mirror", 1)),), (stage,),
                      scalars={"a": Parameter(0.25), "middle": Scalar("a") / 2})  # fmt: skip
    start = np.random.default_rng(1).random(90).astype(np.float32)
    right = reference_run(program, start, 5)
    right = reference_run(program, right, 6, scalars={"a": 0.125})
    with Computation(program, start, devices=devices, steps_per_launch=4,
                     comm=SerialCommunicator()) as run:  # fmt: skip
        run.run(5)
        run.run(6, a=0.125)
        got = run.gather()
    assert got is not None and got.tobytes() == right.tobytes()
