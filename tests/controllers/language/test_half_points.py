# SPDX-License-Identifier: MIT
"""Fields at half points: beside plain NumPy, where they lie, and what is refused."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import controllers as ct
from controllers.language.traced import program_of
from controllers.run.dry_run import dry_run

Array = npt.NDArray[np.float64]
N, M, C = 5, 7, 0.25
GRID = ct.Grid(y=N, x=M, lower=(-1, 0), spacing=(0.5, 0.25))
RNG = np.random.default_rng(12)
P, VX, VY = RNG.random((N, M)), RNG.random((N, M + 1)), RNG.random((N + 1, M))
AT = dict(vx="x", vy="y")


def difference(f: Any, axis: str) -> Any:
    return f.at(axis, 1 / 2) - f.at(axis, -1 / 2)


@ct.step
def push(vx: Any, vy: Any, p: Any) -> Any:
    return dict(vx=vx - C * difference(p, "x"), vy=vy - C * difference(p, "y"))


@ct.step
def squeeze(p: Any, vx: Any, vy: Any) -> Any:
    return dict(p=p - C * (difference(vx, "x") + difference(vy, "y")))


def run(steps: Any, boundary: Any, n_steps: int, location: Any = AT, **start: Array) -> Any:
    made = program_of(steps, GRID, boundary=boundary, location=location).program
    return ct.reference_run(made, start, n_steps)


def rigid(p: Array) -> Array:
    return np.pad(p, 1, "edge")


def around(value: float) -> Callable[[Array], Array]:
    return lambda p: np.pad(p, 1, constant_values=value)


@pytest.mark.parametrize(
    ("rule", "padded"),
    [(ct.mirror(), rigid), (ct.fixed(0.5), around(0.5)), (ct.fixed(lambda x: 0 * x), around(0))],
)
def test_an_acoustic_pair_is_what_slices_say(
    rule: Any, padded: Callable[[Array], Array]
) -> None:
    p, vx, vy = P, VX, VY
    for _ in range(4):
        wide = padded(p)
        vx = vx - C * (wide[1:-1, 1:] - wide[1:-1, :-1])
        vy = vy - C * (wide[1:, 1:-1] - wide[:-1, 1:-1])
        p = p - C * ((vx[:, 1:] - vx[:, :-1]) + (vy[1:] - vy[:-1]))
    found = run([push, squeeze], dict(p=rule), 4, p=P, vx=VX, vy=VY)
    for name, right in dict(p=p, vx=vx, vy=vy).items():
        np.testing.assert_array_equal(found[name], right, err_msg=name)


def test_on_rings_there_are_as_many_points_as_cells() -> None:
    start = dict(p=P, vx=VX[:, 1:], vy=VY[1:])
    p, vx, vy = start.values()
    for _ in range(4):
        vx = vx - C * (p - np.roll(p, 1, 1))
        vy = vy - C * (p - np.roll(p, 1, 0))
        p = p - C * ((np.roll(vx, -1, 1) - vx) + (np.roll(vy, -1, 0) - vy))
    found = run([push, squeeze], "periodic", 4, **start)
    assert np.array_equal(found["p"], p) and np.array_equal(found["vx"], vx)


def test_where_cells_end_points_keep_their_values() -> None:
    found = run(push, dict(p=ct.keep()), 1, p=P, vx=VX, vy=VY)
    vx = VX.copy()
    vx[:, 1:-1] -= C * (P[:, 1:] - P[:, :-1])
    assert np.array_equal(found["vx"], vx)


def test_all_updates_of_a_step_read_what_was_before_it() -> None:
    @ct.step
    def both(p: Any, vx: Any) -> Any:
        return dict(p=p - C * difference(vx, "x"), vx=vx - C * difference(p, "x"))

    found = run(both, dict(p=ct.mirror()), 1, dict(vx="x"), p=P, vx=VX)
    assert np.array_equal(found["p"], P - C * (VX[:, 1:] - VX[:, :-1]))
    wide = np.pad(P, ((0, 0), (1, 1)), "edge")
    assert np.array_equal(found["vx"], VX - C * (wide[:, 1:] - wide[:, :-1]))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_mirror_stands_at_the_last_point_and_holds_0_there_if_it_is_odd(sign: int) -> None:
    smooth = ct.step(lambda vx: dict(vx=(vx.at("x", -2) + vx.at("x", 2) + vx.at("y", 1)) / 4))
    vx = VX
    for _ in range(3):
        if sign < 0:
            vx = np.concatenate([0 * vx[:, :1], vx[:, 1:-1], 0 * vx[:, :1]], 1)
        wide = np.pad(vx, ((0, 1), (2, 2)), "reflect" if sign > 0 else "constant")
        if sign < 0:
            wide[:, :2], wide[:, -2:] = -wide[:, 4:2:-1], -wide[:, -4:-6:-1][:, :2]
            wide[:, :2], wide[:, -2:] = -wide[:, [4, 3]], -wide[:, [-4, -5]]
        wide[-1, 2:-2] = vx[-1]         # along y it lies at cells
        vx = (wide[:-1, :-4] + wide[:-1, 4:] + wide[1:, 2:-2]) / 4
    if sign < 0:
        vx[:, 0] = vx[:, -1] = 0
    boundary = dict(vx=dict(x=ct.mirror(sign), y=ct.mirror()))
    np.testing.assert_array_equal(run(smooth, boundary, 3, vx=VX, location=dict(vx="x"))["vx"], vx)


def test_other_rules_go_on_from_the_last_point() -> None:
    shift = ct.step(lambda vx: dict(vx=vx.at("x", -1) + vx.at("x", 1)))
    half = ct.custom(lambda inside, distance: inside(0) / 2)
    found = run(shift, dict(vx=dict(x=(ct.extrapolate(1), half))), 1, dict(vx="x"), vx=VX)
    wide = np.column_stack([2 * VX[:, 0] - VX[:, 1], VX, VX[:, -1] / 2])
    assert np.array_equal(found["vx"], wide[:, :-2] + wide[:, 2:])


def test_coordinates_are_those_of_the_location_where_they_meet_a_field() -> None:
    @ct.step
    def where(p: Any, vx: Any, q: Any, *, x: Any, y: Any) -> Any:
        ahead = (10 * x).at("x", 1 / 2)     # lies nowhere until it meets a field
        return dict(p=x + 0 * p, vx=ahead + y, q=0 * q + ahead - 10 * x.at("x", -3 / 2))

    start = dict(p=P, vx=VX, q=RNG.random((N + 1, M + 1)))
    found = run(where, ct.mirror(), 1, dict(vx="x", q=("y", "x")), **start)
    x, y = GRID.coordinates("x"), GRID.coordinates("y")[:, None]
    assert np.array_equal(found["p"], np.broadcast_to(x, (N, M)))
    points = 0.25 * np.arange(M + 1)
    assert np.array_equal(GRID.coordinates("x", half=True), points)
    assert np.array_equal(found["vx"], 10 * (points + 0.125) + y)
    assert np.allclose(found["q"], 10 * 0.5)


def test_what_lies_outside_is_given_by_coordinates_of_points() -> None:
    beyond = ct.fixed(lambda x, y: 100 * x + y)
    shift = ct.step(lambda vx: dict(vx=vx.at("x", 1)))
    found = run(shift, dict(vx=dict(x=beyond)), 1, dict(vx="x"), vx=VX)
    assert np.array_equal(found["vx"][:, -1], 100 * 0.25 * (M + 1) + GRID.coordinates("y"))


def test_boxes_and_parities_are_of_the_points_of_each_field() -> None:
    inner = ct.step(lambda p, vx: dict(p=0 * p, vx=0 * vx), over=dict(x=slice(1, -1)))
    found = run(inner, None, 1, dict(vx="x"), p=P, vx=VX)
    assert [int((found[name] != 0).sum()) for name in ("p", "vx")] == [2 * N, 2 * N]
    red = ct.step(lambda vx: dict(vx=0 * vx), over=ct.parity(0))
    odd = np.add.outer(np.arange(N), np.arange(M + 1)) % 2
    assert np.array_equal(run(red, None, 1, dict(vx="x"), vx=VX)["vx"], odd * VX)


def test_temporary_fields_and_components_lie_where_their_fields_do() -> None:
    Flow = np.dtype([("a", "f8"), ("b", "f8")])
    rate = ct.heun(lambda q, p: dict(q=q * (p.at("x", 1 / 2) - p.at("x", -1 / 2))), dt=0.5)
    made = program_of(rate, GRID, dtype={"q": Flow}, boundary=ct.mirror(), location=dict(q="x"))
    at = {field.name: field.half for field in made.program.fields}
    assert at.pop("p") == () and {*at.values()} == {(False, True)} and len(at) == 4


REFUSED: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "operands of unlike locations": (
        lambda p, vx: dict(p=p + vx), {},
        ["test_half_points.py:", "at cells and at half points of x", 'f.at("x", 1/2)'],
    ),
    "a value for another location": (
        lambda p, vx: dict(vx=2 * p), {},
        ["gives 'vx', which lies at half points of x, a value at cells", "location=dict(...)"],
    ),
    "half a cell from a field that is not declared": (
        lambda p: dict(p=p.at("x", 1 / 2)), {"location": None},
        ["gives 'p', which lies at cells, a value at half points of x"],
    ),
    "another name for a field that lies elsewhere": (
        lambda p, vx: dict(vx=p), {}, ["which lies at half points of x, a value at cells"],
    ),
    "a quarter of a cell": (
        lambda p: dict(p=p.at("x", 0.25)), {"location": None}, ["constant whole number", "0.25"],
    ),
    "half cells in brackets": (
        lambda p: dict(p=p[0, 0.5]), {"location": None}, ['u.at("x", 1/2)'],
    ),
    "a point among half points": (
        lambda vx: dict(vx=vx + ct.point(GRID, (0, 1))), {}, ["at half points of x and at cells"],
    ),
    "cells beyond the grid without a rule": (
        lambda p, vx: dict(vx=p.at("x", 1 / 2)), {"boundary": None},
        ["reads 'p' at (0, 0), which is beyond the grid", "boundary=dict(p=ct.fixed(0))"],
    ),
    "an axis that is none": (
        lambda p, vx: dict(p=p), {"location": dict(vx="z")}, ["'vx'", "'z'", "there are y, x"],
    ),
    "a field that is none": (
        lambda p, vx: dict(p=p), {"location": dict(w="x")}, ["a location is given for 'w'"],
    ),
    "a location that is no mapping": (
        lambda p, vx: dict(p=p), {"location": "x"}, ["location", 'location=dict(vx="x")'],
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_is_refused_with_the_remedy(what: str) -> None:
    function, options, texts = REFUSED[what]
    options = {"location": dict(vx="x"), "boundary": ct.mirror(), **options}
    with pytest.raises((TypeError, ValueError, IndexError)) as caught:
        program_of(ct.step(function), GRID, **options)
    for text in texts:
        assert text in str(caught.value)


def test_a_mask_of_another_location_is_refused() -> None:
    masked = ct.step(lambda p, vx: dict(vx=0 * vx), over=lambda p: p > 0)
    with pytest.raises(ValueError, match="condition lies at cells"):
        program_of(masked, GRID, location=dict(vx="x"))


def test_a_program_says_itself_where_its_fields_lie() -> None:
    made = program_of(push, GRID, boundary=ct.mirror(), location=AT).program
    with pytest.raises(ValueError, match=r"Field\(..., half="):
        dry_run(made, GRID, 1, location=AT)
    with pytest.raises(ValueError, match="half says True or False for each of the 2 axes"):
        ct.Program("p", (ct.Field("vx", "float64", half=(True,)), *made.fields[1:]), made.stages)
    with pytest.raises(ValueError, match="one more along the axes where they lie at half points"):
        ct.reference_run(made, dict(p=P, vx=P, vy=VY), 1)
