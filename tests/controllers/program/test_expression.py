# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import gc
import math
import operator
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from controllers.program.expression import (
    Application,
    Constant,
    Expression,
    Read,
    count,
    evaluate,
    evaluate_all,
    reads,
    walk,
    where,
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
    for _ in range(5_000):
        left, right = left + V, V + right
    for deep in (left, right):
        assert {*reads(deep)} == {U, V} and count(deep) == {"+": 5_000}
        value = evaluate(deep, lambda read: 1.0, float, lambda s, a, b: a + b)
        assert value == 5_001
        assert hash(deep) and repr(deep) and pickle.loads(pickle.dumps(deep)) is deep


def test_operands_are_evaluated_left_before_right() -> None:
    seen: list[str] = []
    evaluate(
        (U + V) * (V - U), lambda read: seen.append(read.field), lambda c: None, lambda *_: None
    )
    assert seen == ["u", "v"], "each once"


def test_reads_are_distinct_and_in_order_of_first_use() -> None:
    first, second = reads(V + U * V + Read("v", (0, 1)))
    assert first is V and second is U


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_constant_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Constant(value)


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(ValueError, match=r"%"):
        Application("%", U, V)  # type: ignore[arg-type]


@pytest.mark.parametrize("combine", [operator.add, operator.truediv, operator.eq])
@pytest.mark.parametrize("operand", ["2", None, True, 2j])
def test_an_operand_that_is_no_number_is_refused(
    combine: Callable[[object, object], object], operand: object
) -> None:
    with pytest.raises(TypeError, match="operand"):
        combine(U, operand)


def same(one: object, other: object) -> bool:
    return one is other


def test_equal_nodes_are_one_object() -> None:
    assert same(Read("u", (0, 1)), Read("u", (0, 1)))
    assert same((U + V) * 2, (Read("u", (0, 0)) + V) * 2) and not same(U + V, V + U)
    assert same(copy.deepcopy([U / V])[0], U / V) and same(copy.copy(U), U)
    sum_ = U + V
    one, other = pickle.loads(pickle.dumps((sum_ * sum_, where(sum_ < 0.5, U, -V))))
    assert same(one, sum_ * sum_) and same(other, where(sum_ < 0.5, U, -V))


def test_constants_keep_their_exact_value_and_type() -> None:
    values = [0.0, -0.0, 0, 1, 1.0, 2**63 + 1, float(2**63), 10**400]
    nodes = [Constant(value) for value in values]
    assert len({id(node) for node in nodes}) == len(values)
    assert [repr(node.value) for node in nodes] == list(map(repr, values))
    assert all(map(same, nodes, map(Constant, values)))
    assert same(Constant(np.float64(0.1)), Constant(0.1)) and same(U * np.int64(3), U * 3)


def test_nodes_that_nobody_holds_are_forgotten() -> None:
    def known() -> int:
        gc.collect()
        return len(Application._known) + len(Constant._known)

    before = known()
    tree: Expression = U
    for number in range(500):
        tree = tree * (number + 0.125)
    assert known() == before + 1000
    del tree
    assert known() == before


def test_threads_get_the_same_nodes() -> None:
    def built(seed: int) -> list[Expression]:
        return [(U + number) * (V - number) for number in range(300)]

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(built, range(16))
    assert all(same(a, b) for other in others for a, b in zip(first, other))


def test_nodes_do_not_change() -> None:
    for node, name in ((U, "field"), (Constant(1), "value"), (U + V, "operands")):
        with pytest.raises(AttributeError, match=name):
            setattr(node, name, 2)
    total = before = U + V
    total += 1
    assert same(before, U + V) and same(total, U + V + 1)


@pytest.mark.parametrize(
    ("built", "text"),
    [
        (np.sqrt(U), "sqrt(Read)"),
        (abs(U), "abs(Read)"),
        (-U, "-Read"),
        (np.maximum(U, 2), "maximum(Read, Constant)"),
        (np.float32(2) * U, "Constant * Read"),
        (np.float64(2) - U, "Constant - Read"),
        (U > 2, "Read > Constant"),
        (U == V, "Read == Read"),
        ((U != V) & ~(U <= 1), "Condition & Condition"),
        (np.where(U > V, U, 0), "where(Condition, Read, Constant)"),
        (where(U > V, 1, 0), "where(Condition, Constant, Constant)"),
    ],
)
def test_operators_and_the_functions_of_numpy_build_nodes(built: Application, text: str) -> None:
    assert repr(built) == f"<{text}>"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: U + np.ones(3), "array of shape .3,.*field"),
        (lambda: np.ones(3) * U, "array of shape .3,.*field"),
        (lambda: np.add(U, V, out=U), "operands alone, got out"),
        (lambda: np.add.reduce(U), "operands alone, got reduce"),
        (lambda: np.heaviside(U, V), "np.heaviside is no function of expressions.*sqrt"),
        (lambda: np.median(U), "np.median is no function.*minimum"),
        (lambda: np.clip(U, 0, 1, out=U), "operands alone, got out"),
        (lambda: np.where(U, V, 0), "takes a condition, got the value Read.*u != 0"),
        (lambda: (U < V) + 1, "takes values, got the condition <Read < Read>.*where"),
        (lambda: (U < 0) & V, "takes a condition"),
        (lambda: np.where(U < V), "takes 3 operands, got 1"),
        (lambda: Application("+", U, 2), "is a node, got one of"),
    ],
)
def test_what_builds_no_node_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        build()


@pytest.mark.parametrize(
    "ask", [bool, lambda n: U < n < V, lambda n: n and U, lambda n: V in (n, U), lambda n: not n]
)
def test_an_expression_has_no_truth_value(ask: Callable[[Expression], object]) -> None:
    with pytest.raises(TypeError, match="no truth value.*where.condition, a, b.*`is`"):
        ask(U + 1)


def test_what_is_shared_is_visited_counted_and_computed_once() -> None:
    tree: Expression = U
    for _ in range(60):
        tree = tree + tree
    assert count(tree) == {"+": 60} and len([*walk(tree)]) == 61 and len(reads(tree)) == 1
    assert evaluate(tree, lambda read: 1, int, lambda s, a, b: a + b) == 2**60
    assert same(pickle.loads(pickle.dumps(tree)), tree)
    seen: list[str] = []
    texts = evaluate_all(
        (U * V + 1, U * V - 1), lambda read: read.field, str,
        lambda s, a, b: f"{a}{s}{b}", lambda text: seen.append(text) or "t",
    )  # fmt: skip
    assert texts == ["t+1", "t-1"] and seen == ["u*v"]
