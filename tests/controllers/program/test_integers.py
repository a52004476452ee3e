# SPDX-License-Identifier: MIT
"""Integers of patterns: in int64, the quotient truncated, the result wrapped to the dtype."""
from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from kernel_ways import WAYS, extreme, integer_stencil, run
from sample import sample

from controllers import Computation, Stencil
from controllers.kgt import generate
from controllers.kgt.text.integer import wide_type
from controllers.program.expression import Application, Constant, Expression, Read
from controllers.program.functions import QUOTIENT, WIDENED
from controllers.program.program import INTEGERS, Field, Program, Stage
from controllers.program.reference import reference_run, values_of


def wrapped(value: int, dtype: str) -> int:
    bits = np.iinfo(dtype).bits
    value %= 2**bits
    return value - 2**bits if dtype != "uint8" and value >= 2 ** (bits - 1) else value


def by_hand(stencil: Stencil, row: list[int], at: int, dtype: str) -> int:
    """Python's integers, cut to 64 bits after each operation."""
    total = 0
    for weight, step in zip(stencil.weights, range(stencil.shape[0][0], stencil.shape[0][1] + 1)):
        total = wrapped(total + wrapped(int(weight) * row[at + step], "int64"), "int64")
    sign = 1 if (total < 0) == (stencil.factor < 0) else -1
    return wrapped(wrapped(sign * (abs(total) // abs(int(stencil.factor))), "int64"), dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_reference_computes_as_python_does_in_64_bits(dtype: str) -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        stencil = integer_stencil(rng, 1)
        field = extreme(rng, (12,), dtype)
        result = reference_run(stencil.program(dtype), field, 1, (False,)).tolist()
        (low, high), row = stencil.shape[0], field.tolist()
        for at in range(-low, 12 - high):
            assert result[at] == by_hand(stencil, row, at, dtype), (stencil, row)


@pytest.mark.parametrize(
    ("dtype", "n_axes", "way"), sample(product(INTEGERS, (1, 2, 3, 4), WAYS), 25)
)
def test_random_stencils_have_the_bits_of_the_reference(
    dtype: str, n_axes: int, way: str
) -> None:
    rng = np.random.default_rng([n_axes, INTEGERS.index(dtype)])
    stencil = integer_stencil(rng, n_axes)
    extent = tuple(int(n) for n in rng.integers(6, 12 if n_axes > 2 else 40, n_axes))
    field = extreme(rng, extent, dtype)
    ring = (n_axes + INTEGERS.index(dtype)) % 2 > 0     # in two places, then, with staging
    result = run(
        way, stencil, field, 3, ("periodic" if ring else "fixed",) * n_axes,
        devices="cpu", places_per_controller=1 + ring, zero_copy=not ring,
    )  # fmt: skip
    right = reference_run(stencil.program(dtype), field, 3, (ring,) * n_axes)
    assert result is not None and result.dtype == dtype
    assert np.array_equal(result, right), stencil


def random_tree(rng: np.random.Generator, depth: int) -> Expression:
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.3:
            return Constant([0, 1, -1, 7, -(2**63), 2**62, 2**31][int(rng.integers(7))])
        return Application(WIDENED, Read("u", (int(rng.integers(-1, 2)),)))
    symbol = ("+", "-", "*", QUOTIENT)[rng.integers(4)]
    return Application(symbol, random_tree(rng, depth - 1), random_tree(rng, depth - 1))


@pytest.mark.parametrize(("dtype", "number"), sample(product(INTEGERS, range(4)), 100))
def test_random_trees_divide_by_anything_without_a_fault(dtype: str, number: int) -> None:
    rng = np.random.default_rng([5, number])
    u, right = (Application(WIDENED, Read("u", (step,))) for step in (0, 1))
    tree = Application(dtype, random_tree(rng, 5) + Application(QUOTIENT, u, right))
    program = Program("p", (Field("u", dtype),), (Stage("tree", {"u": tree}, ((-1, 1),)),))
    field = extreme(rng, (300,), dtype)
    with Computation(program, field.shape, boundary="periodic", devices="cpu") as run:
        run.scatter(field)
        run.run(1)
        result = run.gather()
    assert result is not None
    right = reference_run(program, field, 1, (True,))
    assert np.array_equal(result, right), generate(program, program.stages[0]).source


def test_the_narrowest_type_in_which_nothing_overflows_is_used() -> None:
    u = Application(WIDENED, Read("u", (0,)))

    def divided(by: Expression | int) -> Expression:
        return Application(QUOTIENT, u, by if isinstance(by, Application) else Constant(by))

    assert wide_type([u * (2**31 // 255)], "uint8") == "int"
    assert wide_type([u * (2**31 // 255 + 1)], "uint8") == "long"
    assert wide_type([u, u * (2**31 // 255 + 1)], "uint8") == "long"
    assert wide_type([u + u], "int64") == "ulong"
    assert wide_type([divided(u)], "uint8") == "ulong", "the divisor may be 0"
    assert wide_type([divided(-1)], "int64") == "ulong"
    assert wide_type([divided(3)], "int64") == "long"


def test_a_quotient_by_zero_is_zero_and_the_most_negative_number_may_wrap() -> None:
    stage = Stage("s", {"u": Application(QUOTIENT, Read("u", (0,)), Read("u", (1,)))}, ((0, 1),))
    values = {(0,): np.array([5, -(2**63), -(2**63)]), (1,): np.array([0, -1, 1])}
    result = values_of(stage.expression, lambda read: values[read.offset], "int64")
    assert result.tolist() == [0, -(2**63), -(2**63)]
