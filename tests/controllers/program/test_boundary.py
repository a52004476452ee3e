# SPDX-License-Identifier: MIT
"""Rules, how users spell them, and what the reference makes of them: NumPy's own padding."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from controllers import Boundary, Field, Program, Read, Stage, custom, extrapolate, fixed, mirror
from controllers.program.boundary import KEEP, PERIODIC, Inside, Rule, Value
from controllers.program.expression import Scalar
from controllers.program.reference import reference_run
from controllers.program.reference_step import extended
from controllers.program.structure import described

FIELD = np.random.default_rng(5).random((4, 5, 3))
WIDTHS = ((2, 3), (6, 1), (0, 4))
ENDS = tuple((-low, high) for low, high in WIDTHS)


@pytest.mark.parametrize(("rule", "mode", "options"), [
    (mirror(), "symmetric", {}),
    (extrapolate(0), "edge", {}),
    (fixed(2.5), "constant", {"constant_values": 2.5}),
])  # fmt: skip
def test_rules_are_those_of_numpy(rule: Rule, mode: str, options: dict[str, Any]) -> None:
    wide, first = extended(FIELD, "u", Boundary.of(rule, 3), ENDS)
    right = np.pad(FIELD, WIDTHS, mode, **options)  # type: ignore[call-overload]
    assert first == tuple(low for low, _ in WIDTHS)
    assert np.array_equal(wide, right)


def test_a_mirror_may_change_the_sign_each_time_that_it_is_looked_into() -> None:
    line = np.array([1, 2, 3])
    wide, _ = extended(line, "u", Boundary.of(mirror(-1), 1), ((-7, 4),))
    assert wide.tolist() == [-1, 1, 2, 3, -3, -2, -1, 1, 2, 3, -3, -2, -1, 1]


def test_a_line_and_a_parabola_go_on() -> None:
    x = np.arange(-3.0, 9.0)
    for order, values in ((1, 2 * x - 1), (2, x * x - 3 * x)):
        wide, _ = extended(values[3:9], "u", Boundary.of(extrapolate(order), 1), ((-3, 3),))
        assert np.array_equal(wide, values)


def test_the_last_axis_decides_corners() -> None:
    rules = Boundary.of([(fixed(1), "keep"), (fixed(2), mirror())], 2)
    wide, _ = extended(np.zeros((2, 2)), "u", rules, ((-1, 1), (-1, 1)))
    assert wide.tolist() == [[2, 1, 1, 1], [2, 0, 0, 0], [2, 0, 0, 0]]


@pytest.mark.parametrize(("spelling", "axes", "text"), [
    ("fixed", 2, "keep, keep"),
    ("periodic", ["y", "x"], "periodic, periodic"),
    (mirror(-1), 1, "mirror(-1)"),
    ({"x": mirror()}, ["y", "x"], "keep, mirror()"),
    ({1: (fixed(0), "keep"), "y": "periodic"}, ["y", "x"], "periodic, (fixed(0), keep)"),
    (["mirror:-1", "extrapolate:1"], 2, "mirror(-1), extrapolate(1)"),
    ((fixed(0), fixed(1)), 1, "(fixed(0), fixed(1))"),
    (["fixed:0.5"], 3, "fixed(0.5), fixed(0.5), fixed(0.5)"),
    (Boundary(), 2, "keep"),
])  # fmt: skip
def test_a_boundary_is_spelled_in_many_ways(spelling: Any, axes: Any, text: str) -> None:
    assert str(Boundary.of(spelling, axes)) == text


@pytest.mark.parametrize(("error", "match", "make"), [
    (ValueError, "no axis 'z'.*'y', 'x'", lambda: Boundary.of({"z": "keep"}, ["y", "x"])),
    (ValueError, "no axis 2", lambda: Boundary.of({2: "keep"}, 2)),
    (ValueError, "by name and by number", lambda: Boundary.of({"x": KEEP, 1: KEEP}, ["y", "x"])),
    (ValueError, "ring has no ends", lambda: Boundary.of({0: (PERIODIC, KEEP)}, 2)),
    (ValueError, "pair .lower, upper.", lambda: Boundary.of({0: ["keep"] * 3}, 2)),
    (ValueError, "2 axes need one boundary.*got 3", lambda: Boundary.of(["keep"] * 3, 2)),
    (ValueError, "1 or -1, got 2", lambda: mirror(2)),
    (ValueError, "finite", lambda: fixed(np.inf)),
    (ValueError, "at most 8", lambda: extrapolate(9)),
    (TypeError, "custom: a function", lambda: custom(3)),  # type: ignore[arg-type]
    (ValueError, "boundary of 2 axes", lambda: program(Boundary.of("mirror", 2))),
    (ValueError, "no negative numbers", lambda: program(Boundary.of(mirror(-1), 1), "uint8")),
    (ValueError, "of another kind", lambda: program(Boundary.of(fixed(0.5), 1), "int32")),
    (ValueError, "none or all convert", lambda: program(Boundary.of((
        fixed(Scalar("t")), custom(lambda u, n: u(0).astype("float64") / 3)), 1), "float32")),
    (ValueError, "beyond the range", lambda: program(Boundary.of(fixed(1e60), 1), "float32")),
    (ValueError, "no components", lambda: program(Boundary.of(mirror(my=-1), 1))),
    (ValueError, "at least 0", lambda: program(Boundary.of(custom(lambda u, n: u(-1)), 1))),
    (TypeError, "a number is expected", lambda: program(Boundary.of(custom(lambda u, n: None), 1))),
    (TypeError, "where", lambda: program(Boundary.of(custom(lambda u, n: u(0) > 0), 1))),
    (ValueError, "axis 0 is periodic for u alone", lambda: Program(
        "p", (Field("u", "int32", Boundary.of("periodic", 1)), Field("v", "int32")), (near(),))),
    (ValueError, "whose boundaries differ", lambda: Program(
        "p", (Field("u", "int32", Boundary.of("mirror", 1)), Field("v", "int32")), (near(),),
        renames={"v": "u"})),
    (ValueError, "leave out one of the two",
     lambda: reference_run(program(Boundary.of("mirror", 1)), np.zeros(4), 1, (True,))),
    (ValueError, "mirror.* needs cells.*larger domain",
     lambda: reference_run(program(Boundary.of(("mirror", "keep"), 1)), np.zeros(1), 1)),
    (ValueError, "extrapolate.* needs cells.*larger domain",
     lambda: reference_run(program(Boundary.of(extrapolate(2), 1)), np.zeros(2), 1)),
])  # fmt: skip
def test_contradictions_are_refused(
    error: type[Exception], match: str, make: Callable[[], object]
) -> None:
    with pytest.raises(error, match=match):
        make()


def near() -> Stage:
    return Stage("near", {"u": Read("u", (-2,)) + Read("u", (1,))}, ((-2, 1),))


def program(boundary: Boundary, dtype: str = "float64") -> Program:
    return Program("p", (Field("u", dtype, boundary),), (near(),))


class Average(Rule):
    """A rule that nobody has foreseen: the mean of the two last cells."""

    def outside(self, inside: Inside, distance: int) -> Value:
        return (inside(0) + inside(1)) / 2


def test_a_new_rule_is_one_class() -> None:
    walls = program(Boundary.of((Average(), "keep"), 1))
    start = np.array([1.0, 3.0, 5.0, 7.0])
    assert reference_run(walls, start, 1).tolist() == [5.0, 7.0, 8.0, 7.0]


@pytest.mark.parametrize(("u", "v", "lowest", "highest"), [
    ("keep", "keep", 1, 7), ("mirror", "keep", 0, 7), ("keep", "mirror", 1, 8),
    ("mirror", "mirror", 0, 8),
])  # fmt: skip
def test_a_stage_computes_the_cells_whose_reads_exist(
    u: str, v: str, lowest: int, highest: int
) -> None:
    both = Stage("both", {"u": Read("u", (-1,)) + Read("v", (1,))}, ((-1, 1),))
    fields = (Field("u", "int32", Boundary.of(u, 1)), Field("v", "int32", Boundary.of(v, 1)))
    arrays = {name: np.full(8, n, np.int32) for n, name in enumerate("uv", 1)}
    after = reference_run(Program("p", fields, (both,)), arrays, 1)["u"]
    assert np.flatnonzero(after == 3).tolist() == [*range(lowest, highest)]


def test_programs_differ_where_their_boundaries_do() -> None:
    rules = ("keep", "mirror", mirror(-1), fixed(0), fixed(1), custom(lambda u, n: u(0)),
             custom(lambda u, n: u(n - 1)))  # fmt: skip
    texts = [described(program(Boundary.of(rule, 1))) for rule in rules]
    assert len({*texts}) == len(rules)
    again = custom(lambda u, n: u(0))       # another function, as on another rank
    assert described(program(Boundary.of(again, 1))) == texts[5]
