# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

from controllers.language.weights import Stencil
from controllers.program.expression import Read
from controllers.program.program import Field, Program, Stage
from controllers.program.reference import apply_stage, reference_run

ASYMMETRIC = Stencil.of("s", [(-1, 2), (0, 1)], [[1, 0], [0.3, -2], [0, 7], [1, 1e-3]], 3)


@pytest.mark.parametrize("periodic", list(itertools.product((False, True), repeat=2)))
def test_a_step_equals_a_loop_over_cells(periodic: tuple[bool, bool]) -> None:
    array = np.random.default_rng(1).standard_normal((6, 5)).astype(np.float32)
    expected = array.copy()
    f = np.float32
    wrapped = np.pad(array, ((1, 2), (0, 1)), mode="wrap")  # cell (i, j) stands at (i + 1, j)
    for i, j in np.ndindex(6, 5):
        if (1 <= i < 4 or periodic[0]) and (j < 4 or periodic[1]):
            (a, _), (b, b1), (_, c1), (d, d1) = wrapped[i : i + 4, j : j + 2]
            total = a + f(0.3) * b + f(-2) * b1 + f(7) * c1 + d + f(1e-3) * d1
            expected[i, j] = total / f(3)
    result = reference_run(ASYMMETRIC.program("float32"), array, 1, periodic)
    assert result.dtype == np.float32
    assert result.tobytes() == expected.tobytes()


def test_steps_follow_one_another_and_the_input_stays() -> None:
    array = np.random.default_rng(2).standard_normal((7, 9))
    before = array.copy()
    program = ASYMMETRIC.program("float64")
    once = reference_run(program, array, 1, (True, False))
    assert np.array_equal(
        reference_run(program, array, 3, (True, False)),
        reference_run(program, once, 2, (True, False)),
    )
    assert np.array_equal(array, before)
    assert np.array_equal(reference_run(program, array, 0, (True, False)), array)


def test_the_arithmetic_is_rounded_to_float32_after_every_operation() -> None:
    program = Stencil.of("s", [(0, 2)], [1, 1, 1], 1).program("float32")
    array = np.array([1.0, 2.0**-24, 2.0**-24], np.float32)
    assert (
        reference_run(program, array, 1, (False,))[0] == 1
    )  # in float64, or right to left, it would be more


def test_a_reach_beyond_the_domain_wraps_more_than_once() -> None:
    program = Stencil.of("s", [(-7, 0)], [1, 0, 0, 0, 0, 0, 0, 0], 1).program("float64")
    array = np.array([1.0, 2.0, 3.0])
    assert reference_run(program, array, 1, (True,)).tolist() == [3, 1, 2]
    assert reference_run(program, array, 1, (False,)).tolist() == [1, 2, 3]


def test_overflow_and_division_by_zero_make_no_warnings() -> None:
    u = Read("u", (0,))
    stage = Stage("s", {"u": (u * 1e38) / (u - u)}, ((0, 0),))
    program = Program("s", (Field("u", "float32"),), (stage,))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = reference_run(program, np.array([1e30, 0.0], np.float32), 1, (False,))
    assert np.isinf(result[0]) and np.isnan(result[1])


def test_apply_stage_asks_for_each_read() -> None:
    stage = ASYMMETRIC.program("float64").stages[0]
    result = apply_stage(stage, lambda read: np.full((2, 2), float(read.offset[0])), "float64")
    assert np.allclose(result, (-1 + 7 + 2 + 2e-3) / 3)


def test_a_wrong_dtype_and_a_negative_count_are_refused() -> None:
    program = ASYMMETRIC.program("float32")
    with pytest.raises(ValueError, match="float64.*convert"):
        reference_run(program, np.zeros((5, 5)), 1, (False, False))
    with pytest.raises(ValueError, match="-1"):
        reference_run(program, np.zeros((5, 5), np.float32), -1, (False, False))
