# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from controllers.language.weights import Stencil
from controllers.program.expression import Expression, evaluate


def as_text(expression: Expression) -> str:
    return evaluate(
        expression,
        lambda r: f"u{list(r.offset)}",
        lambda c: f"{c:.9g}",
        lambda s, *n: f"({n[0]} {s} {n[1]})" if len(n) == 2 else f"{s}({n[0]})",
    )


def text_of(stencil: Stencil, dtype: str = "float32") -> str:
    return as_text(stencil.program(dtype).stages[0].expression)


def test_terms_are_in_c_order_without_zeros_and_without_products_by_one() -> None:
    stencil = Stencil.of("s", [(-1, 0), (0, 1)], [[2, 0], [1, -1]], 4)
    assert text_of(stencil) == "((((2 * u[-1, 0]) + u[0, 0]) + (-1 * u[0, 1])) / 4)"


def test_a_factor_of_one_makes_no_division() -> None:
    assert text_of(Stencil.of("s", [(-1, 1)], [1, 0, 1], 1)) == "(u[-1] + u[1])"
    assert text_of(Stencil.of("s", [(0, 0)], [1], 1.0)) == "u[0]"
    assert text_of(Stencil.of("s", [(0, 0)], [1], -1)) == "(u[0] / -1)"


def test_weights_and_factor_are_rounded_once_to_the_dtype() -> None:
    stencil = Stencil.of("s", [(0, 2)], [0.1, 1 + 1e-12, 1e-60], 1 / 3)
    assert text_of(stencil) == "(((0.100000001 * u[0]) + u[1]) / 0.333333343)"
    assert text_of(stencil, "float64").count("*") == 3


def test_flat_nested_and_array_patterns_are_the_same_stencil() -> None:
    shape = [(-1, 0), (0, 2)]
    flat = Stencil.of("s", shape, [1, 2, 3, 4, 5, 6], 21)
    assert flat == Stencil.of("s", shape, [[1, 2, 3], (4, 5, 6)], 21)
    assert flat == Stencil.of("s", shape, np.arange(1, 7).reshape(2, 3), np.float32(21))
    assert flat.weights == (1, 2, 3, 4, 5, 6) and flat.n_axes == 2


def test_the_declared_shape_is_kept_where_outer_weights_are_zero() -> None:
    program = Stencil.of("s", [(-2, 2)], [0, 0, 1, 0, 0], 1).program("float32")
    assert program.stages[0].offsets == ((-2, 2),)
    assert program.reach == ((0, 0),)


@pytest.mark.parametrize(
    "arguments, match",
    [
        (("2d4", [(0, 0)], [1], 1), "'2d4'"),
        (("while", [(0, 0)], [1], 1), "'while'"),
        (("s", [], [1], 1), "1 to 4 axes"),
        (("s", [(0, 0)] * 5, [1], 1), "1 to 4 axes"),
        (("s", [(1, 0)], [1], 1), "swap"),
        (("s", [(0, 0, 0)], [1], 1), r"pair .*\(0, 0, 0\)"),
        (("s", [0], [1], 1), "pair .*got 0"),
        (("s", [(0, 0.5)], [1], 1), "whole numbers"),
        (("s", [(-1, 1)], [1, 2], 1), "3 offsets .* 2 weights"),
        (("s", [(-1, 1)] * 2, [[1, 2, 3]] * 2, 1), "axis 0 .* needs 3 entries, got 2"),
        (("s", [(-1, 1)] * 2, [[1, 2]] * 3, 1), "axis 1 .* needs 3 entries, got 2"),
        (("s", [(-1, 1)] * 2, [[1, 2, 3], 4, 5], 1), "axis 1 .* got 4"),
        (("s", [(0, 1)], [[[1]], 2], 1), "got \\[\\[1\\]\\]"),
        (("s", [(0, 1)], [1, float("nan")], 1), "finite, got nan"),
        (("s", [(0, 1)], [1, 10**400], 1), "range of float64"),
        (("s", [(0, 1)], [1, "2"], 1), "numbers, got '2'"),
        (("s", [(0, 1)], [1, True], 1), "numbers, got True"),
        (("s", [(0, 1)], "12", 1), "list or tuple"),
        (("s", [(0, 1)], 7, 1), "list or tuple"),
        (("s", [(0, 1)], [1, 1], 0), "cannot be 0"),
        (("s", [(0, 1)], [1, 1], float("inf")), "finite"),
        (("s", [(0, 1)], [1, 1], None), "numbers, got None"),
        (("s", [(0, 1)], [0, 0], 1), "all weights are 0"),
        (("s", [(0, 10**9)], [1], 1), "at most 65536"),
        (("s", [(0, 2**31)], [1], 1), "2147483647"),
    ],
)
def test_bad_stencils_are_refused_at_the_door(arguments: tuple[Any, ...], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        Stencil.of(*arguments)


@pytest.mark.parametrize(
    "weight, factor, match",
    [
        (1e39, 1, "beyond the range of float32"),
        (1, 1e39, "beyond the range"),
        (1, 1e-60, "factor rounds to 0"),
        (1e-60, 1, "weights round to 0"),
    ],
)
def test_numbers_that_do_not_fit_the_dtype_are_refused(
    weight: float, factor: float, match: str
) -> None:
    stencil = Stencil.of("s", [(0, 0)], [weight], factor)
    with pytest.raises(ValueError, match=match):
        stencil.program("float32")
    stencil.program("float64")


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(ValueError, match="uint16"):
        Stencil.of("s", [(0, 0)], [1], 1).program("uint16")


def test_integer_fields_need_whole_weights_and_factor() -> None:
    whole = Stencil.of("s", [(0, 1)], [1.0, 2**53 + 1], 300)
    assert text_of(whole, "int16") == (
        "((widened(u[0]) + (9.00719925e+15 * widened(u[1]))) quotient 300)"
    )
    assert text_of(whole, "uint8") == f"uint8({text_of(whole, 'int16')})", "of another kind"
    assert whole.program("int64").stages[0].expression.left.right.left.value == 2**53 + 1  # type: ignore[union-attr]
    with pytest.raises(ValueError, match=r"weight 0\.5 .*int32.*float64"):
        Stencil.of("s", [(0, 1)], [1, 0.5], 1).program("int32")
    with pytest.raises(ValueError, match=r"factor 2\.5 .*scale"):
        Stencil.of("s", [(0, 1)], [1, 1], 2.5).program("uint8")
    with pytest.raises(ValueError, match="weight 9223372036854775808 .*64 bits"):
        Stencil.of("s", [(0, 1)], [1, 2**63], 1).program("int64")


def test_a_pattern_of_2401_weights_makes_a_program() -> None:
    program = Stencil.of("s", [(-3, 3)] * 4, np.arange(1, 2402), 7).program("float64")
    assert program.flops_per_cell == 2400 + 2400 + 1
    assert program.reach == ((3, 3),) * 4
    assert repr(program) and hash(program)
