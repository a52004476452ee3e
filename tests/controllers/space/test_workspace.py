# SPDX-License-Identifier: MIT
"""Arrays of a workspace do what NumPy's do, bit for bit, on any places."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from random_arrays import DTYPES, Writer, initial
from sample import cases

import controllers as ct
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()


def on(n_places: int = 1, device: str = "reference", **more: Any) -> Any:
    return ct.workspace(devices=[device], places_per_controller=n_places, comm=SERIAL, **more)


@pytest.mark.parametrize("device", ["reference", pytest.param("cpu", marks=pytest.mark.whole)])
@pytest.mark.parametrize("n_places", [1, 2, 5])
@pytest.mark.parametrize("seed", cases(1, 10))
def test_random_programs_do_what_numpy_does_with_their_arrays(
    seed: int, n_places: int, device: str
) -> None:
    random = np.random.default_rng([seed, n_places])
    values = initial(random, (11, 13))
    right = {name: array.copy() for name, array in values.items()}
    weights = {} if n_places == 1 else {"weights": [*random.uniform(1, 5, n_places)]}
    writer = Writer(random, (11, 13))
    with on(n_places, device, **weights) as space:
        arrays = {name: space.array(array) for name, array in values.items()}
        for _ in range(5):
            statement = writer.statement()
            with np.errstate(all="ignore"):
                statement(right)
            statement(arrays)
            for name in right:
                assert arrays[name].dtype == DTYPES[name]
                assert np.array_equal(arrays[name], right[name], equal_nan=True)
                assert np.array_equal(arrays[name].max(), right[name].max(), equal_nan=True)


@pytest.mark.whole
def test_operators_of_arrays_of_1_to_3_axes_on_a_device_with_memory_of_its_own() -> None:
    random = np.random.default_rng(3)
    for shape in ((17,), (9, 3), (5, 3, 9)):
        a, b = random.normal(size=(2, *shape))
        right, other = a.copy(), b.astype(np.float32)
        for device, more in (("cpu", {"zero_copy": False}), ("reference", {})):
            a, b = right.copy(), other.copy()
            with on(3, device, **more) as space:
                x, y = space.array(a), space.array(b)
                for _ in range(3):
                    x += 0.5 * y
                    y *= np.where(x > 0, np.float32(2), y)
                    a += 0.5 * b
                    b *= np.where(a > 0, np.float32(2), b)
                assert np.array_equal(x, a) and np.array_equal(y, b)
                assert len(x) == shape[0] and x.shape == shape and x.nbytes == a.nbytes
                assert np.array_equal(x[1:] - x[:-1], a[1:] - a[:-1])
                x[2] = x[::2][1] + 1
                a[2] = a[::2][1] + 1
                assert np.array_equal(x, a)


def test_sums_have_the_same_bits_on_any_places() -> None:
    values = np.random.default_rng(1).normal(size=(101, 3)).astype(np.float32) * 1e5
    found = set()
    for n_places, device in ((1, "cpu"), (4, "cpu"), (3, "reference")):
        with on(n_places, device) as space:
            x = space.array(values)
            found.add(((x * x).sum(), x.mean(), x.max(), float(np.vdot(x[:, 1], x[:, 1]))))
    assert len(found) == 1


def test_small_and_whole_arrays_are_repeated_as_numpy_repeats_them() -> None:
    values, row = np.arange(1.0, 13).reshape(4, 3), np.array([1.0, 2.0, 4.0])
    with on(3) as space:
        x, whole = space.array(values), space.array(row, split=None)
        assert np.array_equal(x * row, values * row)
        assert np.array_equal(x * whole + whole, values * row + row)
        assert np.array_equal(whole * x, row * values)
        assert np.array_equal(x / values[:, :1], values / values[:, :1])
        with pytest.raises(ValueError, match="read-only"):
            whole += 1      # places have copies of it


def test_values_that_an_expression_reads_are_those_of_when_it_was_written() -> None:
    with on(2) as space:
        x = space.array(np.arange(6.0))
        later, view = x * 2, x[1:3]
        x += 10
        assert np.array_equal(later, np.arange(6.0) * 2)
        assert np.array_equal(view, [11, 12])
        del x
        assert np.array_equal(later + 1, np.arange(6.0) * 2 + 1)


def test_arrays_that_nobody_has_give_their_memory_to_others() -> None:
    with on(2) as space:
        for n in range(20):
            x = space.array(np.full((8, 3), float(n)))
            y = space.array(x * 2 + 1)
            assert (np.asarray(y) == 2 * n + 1).all()
        assert space.home((8, 3)).arrays.store._n_made <= 4


def test_dtypes_are_those_of_the_values_unless_something_else_is_said() -> None:
    with on(dtype="float32") as space:
        assert space.array([1.5]).dtype == np.float32
        assert space.array([1]).dtype == np.int64
        assert space.array([1.5], dtype="float64").dtype == np.float64
        assert space.array([1.5], split=None).dtype == np.float32
        x = space.array([1.5, 2.5])
        assert (x * 2).dtype == np.float32 and (x > 2).dtype == np.bool_
        x[...] = space.array([1.0, 3.0], dtype="float64")
        assert np.array_equal(x, [1, 3])


def test_files_are_read_and_written_by_rows(tmp_path: Path) -> None:
    values = np.random.default_rng(2).normal(size=(7, 4))
    np.save(tmp_path / "values.npy", values)
    for order in (values, np.asfortranarray(values)):
        np.save(tmp_path / "values.npy", order)
        with on(3, "cpu", zero_copy=False) as space:
            x = space.open(tmp_path / "values.npy")
            assert np.array_equal(x, values)
            (-x).astype("float32")
            y = space.array(-x, dtype="float32")
            y.save(tmp_path / "other.npy")
            assert np.array_equal(np.load(tmp_path / "other.npy"), -values.astype(np.float32))
            whole = space.open(tmp_path / "other.npy", split=None)
            assert np.array_equal(whole, np.asarray(y)) and whole.dtype == np.float32


def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    with on() as space:
        for wrong, said in (
            (dict(values=np.float64(1)), "1 to 3 axes.*reshape"),
            (dict(values=np.zeros((1, 1, 1, 1))), "1 to 3 axes.*reshape"),
            (dict(values=np.zeros(3), split=1), "split=0 or split=None"),
        ):
            with pytest.raises(ValueError, match=said):
                space.array(**wrong)
        with pytest.raises(TypeError, match="complex128.*convert"):
            space.array(np.zeros(3, complex))
        with pytest.raises(ValueError, match="nothing.npy: No such file"):
            space.open(tmp_path / "nothing.npy")
        x = space.array(np.zeros((3, 2), np.float32))
        with pytest.raises(ValueError, match="do not fit"):
            x[1] = np.zeros(3)
        with pytest.raises(ValueError, match="wider"):
            x[...] = 1e300
        with pytest.raises(IndexError):
            x[3]
        assert (np.asarray(x) == 0).all()
    with pytest.raises(RuntimeError, match="make a new workspace"):
        space.array([1])
    with pytest.raises(RuntimeError, match="make a new workspace"):
        np.asarray(x)
    with pytest.raises(ValueError, match="weights"):
        on(2, weights=[1, 2, 3])
    with pytest.raises(ValueError, match="name the devices"):
        on(device="auto")
