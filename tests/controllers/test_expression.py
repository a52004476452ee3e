# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
import operator
from collections.abc import Callable

import pytest

from controllers.program.expression import (
    Constant,
    Expression,
    Operation,
    Read,
    count,
    evaluate,
    reads,
)

U, V = Read("u", (0, 0)), Read("v", (0, 1))


def as_text(expression: Expression) -> str:
    return evaluate(expression, lambda r: r.field, str, lambda s, a, b: f"({a}{s}{b})")


@pytest.mark.parametrize(
    "tree, text",
    [
        (U + V, "(u+v)"),
        (U - 2, "(u-2)"),
        (2 - U, "(2-u)"),
        (2 + U, "(2+u)"),
        (3 * U, "(3*u)"),
        (U * 3, "(u*3)"),
        (1 / U, "(1/u)"),
        (U / V, "(u/v)"),
        (U + V * 2 - V / U, "((u+(v*2))-(v/u))"),
    ],
)
def test_operators_build_the_tree_as_written(tree: Expression, text: str) -> None:
    assert as_text(tree) == text


def test_a_sum_of_many_terms_is_walked_without_recursion() -> None:
    left: Expression = U
    right: Expression = U
    for _ in range(20_000):
        left, right = left + V, V + right
    for deep in (left, right):
        assert reads(deep)[0] in (U, V) and len(reads(deep)) == 2
        assert count(deep) == {"+": 20_000}
        value = evaluate(deep, lambda read: 1.0, float, lambda s, a, b: a + b)
        assert value == 20_001
        assert deep == deep and hash(deep) and repr(deep)


def test_operands_are_evaluated_left_before_right() -> None:
    seen: list[str] = []
    evaluate(
        (U + V) * (V - U), lambda read: seen.append(read.field), lambda c: None, lambda *_: None
    )
    assert seen == ["u", "v", "v", "u"]


def test_reads_are_distinct_and_in_order_of_first_use() -> None:
    assert reads(V + U * V + Read("v", (0, 1))) == (V, U)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_constant_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Constant(value)


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(ValueError, match=r"%"):
        Operation("%", U, V)  # type: ignore[arg-type]


@pytest.mark.parametrize("combine", [operator.add, operator.truediv])
@pytest.mark.parametrize("operand", ["2", None, True])
def test_an_operand_that_is_no_number_is_refused(
    combine: Callable[[object, object], object], operand: object
) -> None:
    with pytest.raises(TypeError, match="operand"):
        combine(U, operand)
