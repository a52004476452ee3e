# SPDX-License-Identifier: MIT
"""What a step in OpenCL C cannot do is said with the line of its text, and what to write."""
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sample import sample

import controllers as ct
from controllers.device import find_simulator
from controllers.language.element_text import ElementText
from controllers.language.neighbourhood import offsets_of
from controllers.language.traced import program_of
from hitmap import Shape

GRID = ct.Grid(y=40, x=9, boundary="periodic")
HERE = Path(__file__)


def line_of(text: str) -> int:
    """The line of this file that a text begins in."""
    return 1 + HERE.read_text().partition(text)[0].count("\n")


def step(text: str, **how: Any) -> ct.Step:
    given: dict[str, Any] = {"reads": dict(u=1), "writes": "u", "name": "made", **how}
    return ct.opencl_c(text, **given)


def refused(text: str, *words: str, grid: ct.Grid = GRID, **how: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as error:
        program_of(step(text, **how), grid)
    for word in words:
        assert word in str(error.value), error.value
    return str(error.value)


def test_offsets_are_compared_with_what_is_declared() -> None:
    text = """
        const VALUE near = u(0, 1);
        u_new = near + u(-1,
            2);
    """
    first = line_of(text)
    words = f"test_opencl_c_errors.py:{first}, in step 'made'", f"line {2 + first}: "
    refused(text, *words, "u(-1, 2) is not declared to be read", "(-1, -1), (-1, 0)", "declare it")
    refused("u_new = u(1);", "u(1) has 1 and not 2 offsets; write one for each axis")
    refused("u_new = u(f(1, 2), 1, (3));", "u(f(1, 2), 1, (3)) has 3 and not 2 offsets")
    refused("u_new = u(0, 9);", "reads= has 49 within -3..3 x -3..3", reads=dict(u=3))
    refused("u_new = v(0, 0);", "v(0, 0) reads 'v', which reads= does not name", writes=["u", "v"])
    program_of(step("/* u(7, 7) */ u_new = u(i, 0); // u(8, 8)"), GRID)    # the checked mode looks


def test_what_is_set_is_compared_with_what_is_declared() -> None:
    refused("return u(0, 0);", "it never sets u_new, though writes= names 'u'; set it")
    refused("u_new = 1;\nv_new = 2;", "v_new is set, and writes= does not name 'v'",
            reads=dict(u=1, v=0))  # fmt: skip


def test_a_boundary_is_needed_where_something_is_declared_to_be_read() -> None:
    message = refused("u_new = u(0, 1);", "reads 'u' at (-1, -1), which is beyond the grid",
                      grid=ct.Grid(y=8, x=9))  # fmt: skip
    assert "give a boundary, such as boundary=dict(u=ct.fixed(0))" in message
    kept = program_of(step("u_new = u(0);", reads=dict(u=2)), ct.Grid(x=9), boundary=ct.keep())
    assert kept.program.updated(Shape((0,), (9,)), (False,)) == Shape((2,), (7,))


def test_declarations_are_understood_or_refused() -> None:
    axes = ("y", "x")
    assert offsets_of(0, axes, "u") == ((0, 0),)
    assert offsets_of(((0, 0), (-1, 0)), axes, "u") == ((0, -1), (0, 0))
    assert offsets_of({"y": 1}, axes, "u") == ((-1, 0), (0, 0), (1, 0))
    assert offsets_of([(0, 3), (0, 3)], axes, "u") == ((0, 3),)
    assert offsets_of((-1, 1), ("x",), "u") == offsets_of([-1, 0, 1], ("x",), "u")
    for given, words in (
        (-1, "at least 0"), (1.5, "whole number"), ((1, 2, 3), "a pair for each of the axes y, x"),
        ({"z": 1}, "no axis 'z'"), ([(1,)], "a list of offsets of 2 numbers"),
        (((1, 0), (0, 0)), "the first offset is not above the last"), (10**6, "the limit is"),
        (["no"], "a list of offsets"), ("no", "whole number"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=words):
            offsets_of(given, axes, "u")
    good = "u_new = u(0, 1);"
    for how, words in (
        (dict(reads=["u"]), "reads: a dict of fields is expected"),
        (dict(writes=()), "writes no field"),
        (dict(writes=3), "writes: names of fields is expected"),
        (dict(scalars="F"), "scalars: a dict of names"),
        (dict(scalars={"F": "x"}), "'F': a number"),
        (dict(scalars=["u_new"]), "'u_new' has a meaning already"),
        (dict(scalars=["u"]), "'u' has a meaning already"), (dict(name="half"), "cannot be 'half'"),
        (dict(scalars=["INDEX"]), "'INDEX' has a meaning already"),
        (dict(reads={"q.m": 0}, writes="q"), "there is no 'q.m'"),
        (dict(reference=lambda w: dict(u=w)), "its reference takes 'w'"),
        (dict(reference=lambda u: dict(w=u)), "gives w, but not 'u'"),
        (dict(reference=lambda u: u), "new values by the names of fields"),
        (dict(reference=lambda u: dict(u=u > 0)), "a condition is no value"),
        (dict(reference=lambda u: dict(u=u[0, 2])), "reads 'u' at (0, 2), which is not declared"),
        (dict(reference=lambda u: dict(u=u.astype("float32"))), "convert them, as x.astype"),
    ):  # fmt: skip
        refused(good, words, **how)
    for source, error in (("", ValueError), (3, TypeError), ("missing.cl", OSError)):
        with pytest.raises(error):
            ct.opencl_c(source, reads={}, writes="u")  # type: ignore[arg-type]


def test_what_is_no_code_is_no_use_of_a_field() -> None:
    text = ElementText('printf("u(9)"); /* u(1,\n2) */ u_new = u(+1, - 1) // v_new\n;', "", 1)
    text.check({"u": ((1, -1),)}, ["u"], ["u", "v"], 2)
    assert not text.indexed and text.code.count("\n") == 2


def test_the_compiler_shows_the_line_and_what_may_be_named(tmp_path: Path) -> None:
    text = """
        u_new = u(0, 0)
            * rate;
    """
    with pytest.raises(ct.BuildError) as error:
        ct.Computation(step(text, scalars=dict(F=1)), GRID, devices="cpu:0", u=1)
    number = 2 + line_of(text)
    message = str(error.value)
    assert f"errors.py:{number}:15: use of undeclared identifier 'rate'" in message
    assert f"{number} |             * rate;" in message
    assert "made may use the fields that reads= names: u(0, 0)" in message
    assert "what scalars= names: F; INDEX(axis) and VALUE" in message
    own = "VALUE f(VALUE a) { return a; }\nELEMENT { u_new = f(w(0, 0)); }"
    (tmp_path / "own.cl").write_text(own)
    with pytest.raises(ct.BuildError, match=r"own\.cl:2:\d+: implicit declaration of function 'w'"):
        ct.Computation(step(str(tmp_path / "own.cl")), GRID, devices="cpu:0", u=1)


FAULTS = (
    ("const int n = INDEX(0) == 30 ? 2 : 1;\nu_new = u(0, n);", "undeclared",
     r"'made \(.*:\d+\)' reads u at the offset \(0, 2\) of cell \(30, .*not declared, in line 2$"),
    ("if (INDEX(0) != 30) u_new = u(0, 1);", "unset", r"does not set cell \(30, 0\) of u_new"),
    ("if (INDEX(0) != 30) u_new = 0; u_new += 1;", "undeclared", r"cell \(30, 0\) of u_new"),
    ("u_new = 2; *(__global VALUE *)&u(0, 0) = 3;", "read-only", r"writes cell \(0, 0\) of u"),
    ("u_new = u(0, 0) / 0 * 0;", "nan", r"NaN"),
    ("u_new = u(0, 0) * (INDEX(0) == 5 ? 3 : 2);", "bits", r"u at \(5, 0\) another value"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "words"), sample(FAULTS, len(FAULTS)))
def test_the_checked_mode_finds_what_reading_the_text_does_not(
    text: str, kind: str, words: str
) -> None:
    reference = (lambda u: dict(u=2 * u)) if kind == "bits" else None
    made = step("".join(text), reference=reference)
    start = np.ones(GRID.shape)
    with (
        ct.Computation(made, GRID, devices="cpu:0", check=True, u=start) as run,
        pytest.raises(ct.CheckError) as error,
    ):
        run.run(2)
    assert error.value.kind == kind and error.value.field == "u"
    assert re.search(words, str(error.value)), error.value


@pytest.mark.whole
@pytest.mark.skipif(find_simulator() is None, reason="Oclgrind is not installed")
def test_a_simulator_looks_at_offsets_too_and_at_what_is_never_set() -> None:
    """Nor does it take for a race that two work-groups compute a cell."""
    for text, kind in (FAULTS[0][:2], (FAULTS[1][0], "uninitialised"), ("u_new = u(0, 1);", "")):
        with ct.Computation(step("".join(text)), GRID, check="oclgrind", u=1) as run:
            found = ""
            try:
                run.run(1)
            except ct.CheckError as error:
                found = error.kind
        assert found == kind
