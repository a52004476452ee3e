# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from controllers.program.coordinates import Coordinates
from controllers.program.expression import (
    Application,
    Constant,
    Coordinate,
    Expression,
    Index,
    Node,
    Read,
    Scalar,
    where,
)
from controllers.program.formula import expression_text
from controllers.program.program import Field, Program, Stage
from controllers.program.reference import reference_run
from controllers.program.scalars import Parameter, ScalarRules
from controllers.program.structure import structure

U = Read("u", (0, 0))
A, T, DT = Scalar("a"), Scalar("t"), Scalar("dt")


def program(expression: Any, dtype: str = "float32", **more: Any) -> Program:
    stage = Stage("step", {"u": expression}, ((-1, 1), (-1, 1)))
    return Program("p", (Field("u", dtype),), (stage,), **more)


@pytest.mark.parametrize(
    "node", [Scalar("F"), Index(1), Index(0, -2), Coordinate(0), Coordinate(1, True, 3)]
)
def test_what_is_given_is_interned_printed_and_pickled(node: Expression) -> None:
    again = eval(repr(node))
    assert again is node and copy.deepcopy(node) is node
    assert pickle.loads(pickle.dumps(where(node < U, node, 2))) is where(node < U, node, 2)
    with pytest.raises(AttributeError):
        node.name = "other"  # type: ignore[union-attr]


def test_unlike_values_that_are_given_are_unlike_nodes() -> None:
    nodes = [Index(0), Index(1), Index(0, 1), Coordinate(0), Coordinate(0, True), Scalar("i")]
    assert len({id(node) for node in nodes}) == len(nodes)


@pytest.mark.parametrize(
    "make, error, says",
    [
        (lambda: Scalar("float4"), ValueError, "OpenCL"),
        (lambda: Scalar(3), TypeError, "quotes"),  # type: ignore[arg-type]
        (lambda: Index(4), ValueError, "axis 4"),
        (lambda: Index(0, 2**31), ValueError, "2147483648"),
        (lambda: Index(0.5), TypeError, "whole number"),  # type: ignore[arg-type]
        (lambda: Coordinate(0, 1), TypeError, "True"),  # type: ignore[arg-type]
    ],
)
def test_what_cannot_be_given_is_refused(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()


def test_people_read_names_indices_and_places() -> None:
    text = expression_text(A * Coordinate(1, False, 1) + where(Index(0) == 3, U, 0))
    assert text == "a * center(j+1) + where(i == 3, u[i, j], 0)"


def test_arithmetic_among_scalars_is_taken_out_of_stages() -> None:
    shared = np.exp(-A * T)
    made = program((U * shared + (A + 1) * U) * 2 + shared, scalars={"a": Parameter(1.0)})
    left = made.stages[0].expression
    assert expression_text(left) == "(u[i, j] * scalar_0 + scalar_1 * u[i, j]) * 2 + scalar_0"
    assert made.scalars["scalar_0"] is shared and made.scalars["dt"] == Parameter()
    again = replace(made, math="fast")
    assert again.stages == made.stages and again.scalars == made.scalars


def test_a_condition_on_scalars_is_computed_on_the_host() -> None:
    made = program(where((T < 3) & (U > 0), U, -U), scalars={})
    assert expression_text(made.stages[0].expression) == (
        "where((scalar_0 != 0) & (u[i, j] > 0), u[i, j], -u[i, j])"
    )
    assert isinstance(made.scalars, ScalarRules)
    assert made.scalars.at({"dt": 1.0}, 2.0)["scalar_0"] == 1.0
    assert made.scalars.at({"dt": 1.0}, 3.0)["scalar_0"] == 0.0


def test_constants_alone_stay_in_the_stage() -> None:
    both = Application("+", Constant(1), Constant(2))
    assert program(U * both + A, scalars={"a": Parameter()}).stages[0].expression is U * both + A


def test_scalars_are_computed_in_float64_in_any_order() -> None:
    rules = ScalarRules({
        "c": np.sqrt(Scalar("b")), "b": A / 3 + T, "a": Parameter(), "z": 1 / (A - A),
    })  # fmt: skip
    found = rules.at({"a": 0.1, "dt": 1.0}, 0.2)
    assert found["b"] == 0.1 / 3 + 0.2 and found["c"] == math.sqrt(found["b"])
    assert found["z"] == math.inf
    assert rules.changing(["a", "z", "b", "c", "t"]) == ("b", "c", "t")
    assert rules.parameters == {"a": None, "dt": None}


def test_programs_are_equal_and_pickled_with_their_scalars() -> None:
    one, same = (program(U * (A + DT), scalars={"a": Parameter(2.0)}) for _ in range(2))
    assert one == same == pickle.loads(pickle.dumps(one)) and hash(one) == hash(same)
    assert one != program(U * (A + DT), scalars={"a": Parameter(3.0)})
    other = program(U * (A - DT), scalars={"a": Parameter(2.0)})
    assert one != other


def test_stages_of_other_scalars_differ_in_structure() -> None:
    texts = {
        structure(made, made.stages[0])
        for made in (
            program(U * leaf, scalars={"a": Parameter(), "b": Parameter()}, grid=GRID)
            for leaf in (A, Scalar("b"), Coordinate(0), Coordinate(0, True), Coordinate(0, True, 1))
        )
    }
    assert len(texts) == 5


GRID = Coordinates(("y", "x"), (0.0, 0.0), (1.0, 1.0))


@pytest.mark.parametrize(
    "expression, more, says",
    [
        (U * A, {}, "'a' is used, and the program has none"),
        (U * A, {"scalars": {"b": T}}, "'a' is used, and the program has b, dt, t"),
        (U, {"scalars": {"t": Parameter()}}, "leave its rule out"),
        (U, {"scalars": {"progress": Parameter()}}, "what `run` takes"),
        (U, {"scalars": {"dt": A, "a": Parameter()}}, "'dt' is made of no fold.*Parameter"),
        (U, {"scalars": {"a": U}}, "a value of each cell"),
        (U, {"scalars": {"a": DT < 1}}, "where"),
        (U, {"scalars": {"a": Scalar("b") + 1, "b": A + 1}}, "in a circle, . of . of ."),
        (U, {"scalars": {"u": Parameter()}}, "rename"),
        (U, {"scalars": {"a": DT + 10**400}}, "beyond float64"),
        (U * Coordinate(0), {}, "grid="),
        (U * Coordinate(2), {"grid": GRID}, "2 axes"),
        (where(Index(2) == 0, U, 0), {}, "2 axes"),
        (U * Index(0), {}, "whole numbers"),
        (where(Index(0) == 1.0, U, 0), {}, "3.0"),
        (where(Index(0) / 2 == 1, U, 0), {}, "no function of indices"),
        (Index(0) + 0, {}, "holds floats"),
    ],
)
def test_what_a_program_cannot_compute_is_refused(
    expression: Any, more: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        program(expression, **more)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("wraps", [False, True])
def test_the_reference_does_what_numpy_does_by_hand(dtype: str, wraps: bool) -> None:
    source = where((Index(0) == 3) & (Index(1, 1) == 0), np.sin(T) * A, 0)
    drift = Coordinate(1, False, -1) * DT - Coordinate(0, True) * (A / 3)
    places = Coordinates(("y", "x"), (0.0, 1.0), (1.0, 0.3))
    made = program(U + source + drift, dtype, scalars={"a": Parameter(2.0)}, grid=places)
    start = np.linspace(0, 1, 20).astype(dtype).reshape(5, 4)
    found = reference_run(made, start, 3, (wraps, wraps), {"a": 1.7}, dt=0.1)
    kind, right = np.dtype(dtype).type, start.copy()
    row, column = np.arange(5)[:, None], np.arange(4)[None]
    after = (column + 1) % 4 if wraps else column + 1
    before = (column - 1) % 4 if wraps else column - 1
    x, y = (1.0 + (before + 0.5) * 0.3).astype(dtype), (row * 1.0).astype(dtype)
    for step in range(3):
        pulse = kind(math.sin(step * 0.1) * 1.7)
        new = right + np.where((row == 3) & (after == 0), pulse, kind(0))
        new = new + (x * kind(0.1) - y * kind(1.7 / 3))
        inside = (slice(None),) * 2 if wraps else (slice(1, -1),) * 2
        right[inside] = new[inside]
    assert found.dtype == dtype and found.tobytes() == right.tobytes()


def test_integer_fields_take_what_is_converted() -> None:
    for leaf in (A, Coordinate(0)):
        with pytest.raises(ValueError, match="another kind; convert"):
            program(U + leaf, "int32", scalars={"a": Parameter()}, grid=GRID)
        whole = (U + leaf).astype("int32")
        assert program(whole, "int32", scalars={"a": Parameter()}, grid=GRID).stages
    assert program(U + Index(0), "int32").stages


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_parameter_is_finite(value: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        Parameter(value)


def test_a_rule_is_a_parameter_or_an_expression() -> None:
    with pytest.raises(TypeError, match="Parameter or an expression"):
        program(U, scalars={"a": 3.0})
    with pytest.raises(TypeError, match="mapping"):
        program(U, scalars=[3.0])
    assert isinstance(A, Node)
