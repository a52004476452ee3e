# SPDX-License-Identifier: MIT
"""Partial results of folds: exact, in any order and any parts."""
import math
from fractions import Fraction

import numpy as np
import pytest
from sample import cases

from controllers.program.accumulator import KINDS, Accumulator, n_words, numbers_of
from hitmap.shape import Shape

DTYPES = ("float32", "float64", "int16", "int32", "int64", "uint8", "uint64")
HARD = [1e308, -1e308, 1e308, 5e-324, 2.0**53, 1, 2.0**-1074, -(2.0**53), 0.1, -0.0]


def operands(rng, dtype, size=400):
    """Random ones of all magnitudes."""
    if np.dtype(dtype).kind == "f":
        info = np.finfo(dtype)
        scale = rng.integers(info.minexp - info.nmant, info.maxexp - 9, size)
        return np.ldexp(rng.standard_normal(size), scale).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, size, dtype, endpoint=True)


def exact(values):
    """What a sum is."""
    if values.dtype.kind == "f":
        return math.fsum(values.astype(float))
    return float(sum(values.tolist()))


def in_parts(rng, kind, values, numbers):
    """The accumulator of random parts, merged in a random order."""
    where = rng.integers(0, 5, values.shape)
    parts = [Accumulator.of(kind, values, where == part, numbers) for part in range(6)]
    rng.shuffle(parts)
    found = Accumulator.empty(kind, values.dtype.name)
    for part in parts:
        found = found.merged(part)
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seed", cases(1, 40))
def test_parts_in_any_order_have_the_bits_of_the_whole(dtype, seed):
    rng = np.random.default_rng(seed)
    values = operands(rng, dtype).reshape(20, 20)
    numbers = numbers_of(Shape((3, 5), (23, 25)), Shape((0, 0), (30, 40)))
    for kind in KINDS:
        whole = Accumulator.of(kind, values, None, numbers)
        assert in_parts(rng, kind, values, numbers) == whole
        assert whole.words.shape == (n_words(kind, dtype),)
    assert Accumulator.of("sum", values).value == exact(values.reshape(-1))
    assert Accumulator.of("min", values).value == values.min()
    assert Accumulator.of("max", values).value.dtype == dtype
    assert Accumulator.of("argmax", values, None, numbers).value == numbers.flat[values.argmax()]


@pytest.mark.parametrize("first", [0, 1, 2, 4])
def test_sums_are_rounded_once(first):
    values = np.array(HARD[first:])
    assert Accumulator.of("sum", values).value == float(sum(map(Fraction, values.tolist())))
    assert math.copysign(1, Accumulator.of("sum", np.array([-0.0])).value) == 1


def test_sums_beyond_float64_are_infinite():
    for sign in (1, -1):
        assert Accumulator.of("sum", sign * np.full(9, 1e308)).value == sign * math.inf


def test_infinities_and_nans_are_as_numpy_has_them():
    for values in ([np.inf, 1], [-np.inf, np.inf], [np.nan, 2], [-np.inf, -np.inf, 1e38]):
        found = Accumulator.of("sum", np.float32(values)).value
        with np.errstate(invalid="ignore"):
            assert np.array_equal(found, np.sum(np.float32(values)), equal_nan=True)
    values, numbers = np.array([3, np.nan, -np.inf, np.nan]), np.arange(4)
    for kind in ("min", "max"):
        assert np.isnan(Accumulator.of(kind, values).value)
    for kind in ("argmin", "argmax"):
        assert Accumulator.of(kind, values, None, numbers).value == 1
        assert Accumulator.of(kind, values, values < 9, numbers).value == (0, 2)[kind == "argmin"]


def test_zeros_have_an_order_but_tie():
    values = np.array([0.0, -0.0, 0.0])
    assert math.copysign(1, Accumulator.of("min", values).value) == -1
    assert math.copysign(1, Accumulator.of("max", values).value) == 1
    assert Accumulator.of("argmin", values, None, np.arange(3)).value == 0


def test_conditions_are_counted_and_combined():
    values = np.array([True, False, True])
    assert Accumulator.of("sum", values).value == 2.0
    assert Accumulator.of("any", values).value is True
    assert Accumulator.of("all", values).value is False
    assert Accumulator.of("all", values, values).value is True


def test_no_cells_have_a_sum_but_no_extreme():
    assert Accumulator.empty("sum", "float64").value == 0.0
    assert Accumulator.empty("all", "bool").value is True
    for kind in ("min", "argmax"):
        with pytest.raises(ValueError, match="no cells"):
            _ = Accumulator.of(kind, np.ones(3), np.zeros(3, bool), np.arange(3)).value
