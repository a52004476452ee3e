# SPDX-License-Identifier: MIT
"""Functions of items on arrays of a workspace give what they give on NumPy's."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from body_steps import bodies, halves, moved, nearest, pull
from sample import sample

import controllers as ct
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()
WAYS = [
    ("reference", 1, {}), ("reference", 3, {"weights": [1, 0, 3]}), ("cpu", 1, {}), ("cpu", 3, {}),
    ("cpu", 2, {"zero_copy": False}),
]  # fmt: skip


@ct.each
def turned(x: ct.Row, every: ct.All) -> ct.Row:
    return every[0].T @ x + every.max()


def on(device: str, n_places: int, more: dict[str, Any]) -> Any:
    return ct.workspace(devices=[device], places_per_controller=n_places, comm=SERIAL, **more)


@pytest.mark.parametrize("device, n_places, more", sample(WAYS[::-1], 4))
def test_bodies_pull_each_other(device: str, n_places: int, more: dict[str, Any]) -> None:
    places, speeds, masses = bodies(23)
    with on(device, n_places, more) as space:
        x, v, mass = space.array(places), space.array(speeds), space.array(masses, split=None)
        moved(x, v, mass, 4)
        moved(places, speeds, masses, 4)
        assert np.array_equal(x, places) and np.array_equal(v, speeds)


@pytest.mark.parametrize("device, n_places, more", sample(WAYS[::-1], 4))
def test_arguments_of_all_kinds(device: str, n_places: int, more: dict[str, Any]) -> None:
    random = np.random.default_rng(5)
    points, other = random.normal(size=(2, 31, 2))
    with on(device, n_places, more) as space:
        p, q = space.array(points), space.array(other)
        for given, right in (
            ((p, other[:4]), (points, other[:4])),              # NumPy's as a whole
            ((p, q[2:5]), (points, other[2:5])),                # a slice
            ((p * 2 + q, q), (points * 2 + other, other)),      # an expression
            ((p, q - p), (points, other - points)),
            ((points, q), (points, other)),                     # NumPy's, split first
            ((p[3:9], q), (points[3:9], other)),
            ((p, space.array(other, split=None)), (points, other)),
        ):
            for _ in range(2):      # copies are valid the second time
                label = nearest(*given)
                assert np.array_equal(label, nearest(*right)) and label.dtype == np.int32
        found, right = halves(p, q), halves(points, other)
        assert [*found] == ["mean", "far"]
        assert all(np.array_equal(found[name], right[name]) for name in right)


@ct.each
def lines(column: ct.Column, x: ct.Near(-2, 1), y: ct.Row) -> ct.Row:   # type: ignore[valid-type]
    return dict(found=column.sum(axis=0) + x[-1] - x[0] * y, total=ct.accumulate(x.max()))


@pytest.mark.parametrize("device, n_places, more", sample(WAYS[::-1], 4))
def test_columns_and_rows_around_are_those_of_now_whoever_has_copies(
    device: str, n_places: int, more: dict[str, Any]
) -> None:
    random = np.random.default_rng(7)
    x, table = random.normal(size=(11, 3)), random.normal(size=(5, 11, 3))
    with on(device, n_places, more) as space:
        p, t = space.array(x), space.array(table)
        whole = space.array(table, split=None)
        for _ in range(2):
            for columns, around in ((t, p), (whole, x), (table, p)):
                found, right = lines(columns, around, p), lines(table, x, x)
                assert all(np.array_equal(found[name], right[name]) for name in right)
            p += 1
            x += 1
        nearest(p[:, :2], p[:, :2])
        label, right = halved(p, p, t), halved(x, x, table)     # the first call copies all of p
        assert np.array_equal(label, right)
        assert np.array_equal(halved(p, p, t), right)


@ct.each
def halved(x: ct.Near(0, 1), every: ct.All, column: ct.Column) -> ct.Row:  # type: ignore[valid-type]
    return (x[1] - every.sum(axis=0)) / 2 + column[0]


def test_copies_of_the_whole_are_those_of_now() -> None:
    points = np.random.default_rng(6).normal(size=(12, 2))
    with on("cpu", 3, {}) as space:
        p, centres = space.array(points), space.array(points[:3])
        for index, value in ((0, 7.0), (slice(1, 3), 0.25), (..., 1.0)):
            assert np.array_equal(nearest(p, centres), nearest(points, np.asarray(centres)))
            centres[index] = value
        centres[...] = centres * 2 - p[:3]
        assert np.array_equal(nearest(p, centres), nearest(points, np.asarray(centres)))


def test_memory_of_results_and_copies_is_used_again() -> None:
    places, speeds, masses = bodies(9)
    with on("cpu", 2, {}) as space:
        x, v, mass = space.array(places), space.array(speeds), space.array(masses, split=None)
        moved(x, v, mass, 12)
        assert len(space._apply._bound) <= 2
        assert space.home((9, 3)).arrays.store._n_made <= 4


@pytest.mark.parametrize("device, n_places, more", sample(WAYS[::-1], 4))
def test_rows_of_two_axes(device: str, n_places: int, more: dict[str, Any]) -> None:
    values = np.random.default_rng(9).normal(size=(7, 3, 8))
    with on(device, n_places, more) as space:
        found, right = halves(space.array(values), space.array(-values)), halves(values, -values)
        assert all(np.array_equal(found[name], right[name]) for name in right)
        odd = space.array(values[:, :, :5])
        right = values[:, :, :5]
        assert np.array_equal(halves(odd, odd)["mean"], right)
        odd += odd[::-1] * 2
        right = right + right[::-1] * 2
        assert np.array_equal(odd, right) and np.array_equal(odd[1:, 1:, 2:4], right[1:, 1:, 2:4])
        assert odd.argmax() == right.argmax()
        assert np.array_equal(turned(odd, odd), turned(right, right))


def test_arrays_of_another_workspace_are_brought_by_the_host() -> None:
    points, few = np.random.default_rng(8).normal(size=(9, 2)), np.arange(6.0).reshape(3, 2)
    with on("cpu", 2, {}) as space, on("reference", 3, {}) as other:
        p, whole, split = space.array(points), other.array(few, split=None), other.array(few)
        nearest(other.array(points), whole)     # which has copies there now
        for centres in (whole, split, whole + 0, split * 1):
            assert np.array_equal(nearest(p, centres), nearest(points, few))
        assert np.array_equal(p + other.array(points), points + points)


def test_what_is_wrong_with_a_call_is_said() -> None:
    with on("reference", 2, {}) as space:
        x = space.array(np.zeros((4, 3), np.float32))
        with pytest.raises(ValueError, match="unlike numbers of rows"):
            halves(x, np.zeros((5, 3), np.float32))
        with pytest.raises(TypeError, match="missing"):
            pull(x, x)
        assert np.array_equal(x, np.zeros((4, 3)))
    with (
        ct.Computation([], (4, 3), u=0, comm=SERIAL, devices="reference") as run,
        pytest.raises(TypeError, match="np.asarray"),
    ):
        nearest(run.u, run.u)
