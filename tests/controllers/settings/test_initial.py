# SPDX-License-Identifier: MIT
"""Initial values of every kind reach the cells, and what is none is refused by name."""
from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import controllers as ct
from controllers import Computation, Field, Program, Read, Stage, Stencil
from controllers.settings.initial import Place, initials
from hitmap import SerialCommunicator, Shape

SERIAL = SerialCommunicator()
MEAN = Stencil.of("mean", [(-1, 1), (0, 0)], [1, 0, 1], 2)
GRID = ct.Grid(y=4, x=5, lower=(0, 10), spacing=(1, 2))
Y, X = np.ix_([0.5, 1.5, 2.5, 3.5], [11.0, 13.0, 15.0, 17.0, 19.0])
GAS = ("rho", "m")


def program(*names: str, dtype: str = "float64") -> Program:
    stage = Stage("stay", {names[0]: Read(names[0], (0, 0)) * 1}, ((0, 0), (0, 0)))
    return Program("p", tuple(Field(name, dtype) for name in names), (stage,))


def begun(described: Any, sizes: Any = GRID, **keywords: Any) -> Computation:
    return Computation(
        described, sizes, comm=SERIAL, devices="reference", places_per_controller=3, **keywords
    )


class Named:
    """An array with named axes, as xarray's DataArray is."""

    def __init__(self, values: Any, dims: tuple[str, ...], coords: dict[str, Any]) -> None:
        self.values, self.dims, self.coords = np.asarray(values), dims, coords
        self.shape, self.dtype = self.values.shape, self.values.dtype

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return self.values


@pytest.mark.parametrize("given, right", [
    (3, 3), (np.float32(0.5), 0.5), (np.array(2), 2), (Y + X, Y + X), ((Y + X).tolist(), Y + X),
    (np.arange(20).reshape(4, 5), np.arange(20).reshape(4, 5)),
    (lambda y, x: y + x, Y + X), (lambda x, y: y - x, Y - X), (lambda x: x, X),
    (lambda y, x, by=2: by * y, 2 * Y), (np.hypot, np.hypot(Y, X)), (lambda *at: at[1], X),
    (partial(lambda a, y, x: a * y, 2), 2 * Y), (lambda i, j: i - j, Y - X),
    (Named((Y + X).T, ("x", "y"), {"x": X[0]}), Y + X),
])  # fmt: skip
def test_each_kind_of_value_reaches_the_cells(given: Any, right: Any) -> None:
    with begun(MEAN, u=given, dtype="float64") as run:
        assert np.array_equal(run.u, np.broadcast_to(right, (4, 5)))


def test_a_file_is_read_by_parts(tmp_path: Path) -> None:
    np.save(tmp_path / "u.npy", (Y + X).astype("f4"))
    for name in (tmp_path / "u.npy", str(tmp_path / "u.npy")):
        with begun(MEAN, u=name) as run:
            assert run.u.dtype == np.float32 and np.array_equal(run.u, Y + X)
    with pytest.raises(ValueError, match=r"u.npy: has \(4, 5\) cells, the field \(3, 5\)"):
        begun(MEAN, (3, 5), u=tmp_path / "u.npy")
    with pytest.raises(ValueError, match="none.npy: No such file"):
        begun(MEAN, u=tmp_path / "none.npy")


def test_the_dtype_is_that_of_the_values_where_none_is_given() -> None:
    ones = [[1.0] * 5] * 4
    for given, dtype in ((np.zeros((4, 5), "i2"), "int16"), (1, "float64"), (ones, "float64")):
        with begun(MEAN, u=given) as run:
            assert run.u.dtype == dtype
    with begun(MEAN, u=np.zeros((4, 5)), dtype="f4") as run:
        assert run.u.dtype == np.float32


def test_without_a_grid_cell_i_goes_from_i_to_i_plus_1() -> None:
    with begun(MEAN, (2, 3), u=lambda y, x: 10 * y + x) as run:
        assert np.array_equal(run.u, [[5.5, 6.5, 7.5], [15.5, 16.5, 17.5]])
    named = Named(Y + X, ("y", "x"), {"x": X[0], "y": Y[:, 0]})
    with begun(MEAN, named) as run:
        assert run.u.coords["x"].tolist() == X[0].tolist() and np.array_equal(run.u, Y + X)


def test_components_of_structs_are_given_together() -> None:
    gas = program("q_rho", "q_m", "u")
    struct = np.zeros((4, 5), [("rho", "f8"), ("m", "f8")])
    struct["rho"], struct["m"] = Y, X
    for given, rho, m in (
        (2, 2, 2), ({"rho": 1, "m": lambda x: x}, 1, X), (struct, Y, X),
        (lambda y, x: {"m": x + y, "rho": 3}, 3, X + Y),
    ):
        with begun(gas, q=given) as run:
            assert np.array_equal(run.q_rho, np.broadcast_to(rho, (4, 5)))
            assert np.array_equal(run.q_m, np.broadcast_to(m, (4, 5)))
            assert not np.any(run.u)
    for given, kind, words in (
        ({"rho": 1}, ValueError, "q: one value for each of the components rho, m .*got 'rho'"),
        (lambda y: {"rho": y}, ValueError, "q: one value for each of the components rho, m"),
        (lambda y: y, TypeError, "q: what its function gives: a mapping of components"),
        ("q.npy", ValueError, "q: a file holds the values of one component"),
        ({"rho": 1, "m": None}, TypeError, "q.m: an array of numbers is expected, got None"),
    ):
        with pytest.raises(kind, match=words):
            begun(gas, q=given)


@pytest.mark.parametrize("given, kind, words", [
    (None, TypeError, "u: an array of numbers is expected, got None; give a number"),
    (True, TypeError, "u: a number is expected"),
    (np.zeros((4, 4)), ValueError, r"u: an array for \(4, 5\) .*got one of \(4, 4\)"),
    (np.zeros((4, 5), complex), TypeError, "u: an array of numbers"),
    ([[1, 2], [3]], ValueError, "u: "),
    ({"a": 1}, ValueError, "u: a mapping is for the components"),
    (lambda y, t: y, ValueError, r"u: a function of coordinates takes y, x.*got one of \(y, t\)"),
    (lambda a, b, c: a, ValueError, "u: a function of coordinates takes y, x"),
    (np.sin, ValueError, "u: a function of coordinates takes y, x"),
    (lambda y, x: np.zeros(3), ValueError, r"u: values of the shape \(3,\) do not fit the cells"),
    (lambda y, x: "no", TypeError, "u: what its function gives: an array of numbers"),
    (lambda x: 1e300 * x, ValueError, r"u: cell \(0, 0\) holds 1.1e.301, but float32"),
    (lambda x: 1 / 0, ZeroDivisionError, "division by zero"),
    (Named(Y + X, ("y", "z"), {}), ValueError, "u: the axes of the array are y, z, those of"),
    (Named(Y + X, ("y", "x"), {"x": Y[0] + X[0]}), ValueError, "u: the coordinates .*along 'x'"),
])  # fmt: skip
def test_what_is_no_value_is_refused(given: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        begun(MEAN, u=given, dtype="float32")


def test_names_are_of_fields_and_parameters() -> None:
    two = program("u", "v")
    for keywords, kind, words in (
        ({"w": 0}, TypeError, "no keyword 'w' .there are u, v, partition"),
        ({"vv": 0}, TypeError, "no keyword 'vv'; did you mean v"),
        ({"init": {"w": 0}}, ValueError, r"init: there is no field or parameter 'w' \(there are u"),
        ({"init": {"u": 0}, "u": 0}, ValueError, "u: init gives it, too"),
        ({"init": 3}, TypeError, "init: a mapping"),
    ):
        with pytest.raises(kind, match=words):
            begun(two, **keywords)
    with pytest.raises(ValueError, match="an array is for programs of one field.* u, v.*u=..."):
        begun(two, np.zeros((4, 5)))
    with pytest.raises(ValueError, match="an array gives the values of u, got u=... too"):
        begun(MEAN, np.zeros((4, 5)), u=0)


def test_a_field_called_like_a_keyword_is_given_by_init() -> None:
    odd = program("trace", "dtype")
    with pytest.raises(ValueError, match=r"'trace' is a keyword of Computation.*init=\{'trace'"):
        begun(odd, trace=1)
    with pytest.raises(ValueError, match=r"'dtype' is a keyword of Computation.*init=\{'dtype'"):
        begun(odd, dtype="float64")
    with begun(odd, init={"trace": 1, "dtype": 2}, dtype="float64", trace=True) as run:
        assert np.all(run.trace[...] == 1) and np.all(run["dtype"][...] == 2)


def test_a_function_is_called_for_the_cells_of_a_place() -> None:
    seen: list[tuple[int, ...]] = []

    def flat(y: np.ndarray, x: np.ndarray) -> int:
        seen.append((*y.shape, *x.shape))
        return 0

    (made,) = initials({"u": flat}, ["u"], Place((4, 5), GRID.places))
    made.at(Place((4, 5), GRID.places), Shape((1, 0), (3, 5)))
    assert seen == [(2, 1, 1, 5)]


def test_steps_need_all_their_values() -> None:
    @ct.step
    def react(u: Any, v: Any, *, F: float = 0.5) -> dict[str, Any]:
        return {"u": u + F * v, "v": v * 1}

    for given, words in (({}, "values were given for u, v; .*u=0"),
                         ({"v": 1}, "values were given for u; .*u=0")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            begun(react, **given)
    assert "stage react" in str(ct.dry_run(react, (8, 8), 2))     # which needs none
