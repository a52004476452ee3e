# SPDX-License-Identifier: MIT
"""Sums and counts by labels are the exact ones, wherever rows and labels lie."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sample import sample

import controllers as ct
from controllers.array import local_rows
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()
N_ROWS, N_LABELS = 203, 5


def given(dtype: str, seed: int = 0) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    random = np.random.default_rng(seed)
    labels = random.integers(0, N_LABELS - 1, N_ROWS).astype(np.int32)      # the last has no row
    if dtype[0] != "f":
        return random.integers(0, 99, (N_ROWS, 3)).astype(dtype), labels
    values = random.normal(size=(N_ROWS, 3)) * 10.0 ** random.integers(-25, 25, (N_ROWS, 3))
    return values.astype(dtype), labels


def exact(values: npt.NDArray[Any], labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.array([
        [math.fsum(values[labels == label, column].tolist()) for column in range(3)]
        for label in range(N_LABELS)
    ])  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8"])
@pytest.mark.parametrize(
    "device, more", sample([("reference", {}), ("cpu", {"zero_copy": False})], 3)
)
def test_sums_are_exact_wherever_the_rows_lie(
    dtype: str, device: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_rows, "CHUNK_CELLS", 100)     # many parts
    values, labels = given(dtype)
    right = exact(values, labels)
    assert np.array_equal(ct.sum_by(values, labels, N_LABELS), right)
    for n_places in (1, 4):
        with ct.workspace(
            devices=device, places_per_controller=n_places, comm=SERIAL, **more
        ) as on:
            x, its = on.array(values), on.array(labels)
            for pair in ((x, its), (x, labels), (values, its), (x, its + 0), (x[:], its[:])):
                assert np.array_equal(ct.sum_by(*pair, N_LABELS), right)
            half = exact(values[::2], labels[::2])
            assert np.array_equal(ct.sum_by(x[::2], its[::2], N_LABELS), half)
            line = ct.sum_by(x[:, 1], its, N_LABELS)
            assert np.array_equal(line, right[:, 1])


def test_counts_are_those_of_numpy_and_weights_are_summed_exactly() -> None:
    values, labels = given("float64", 1)
    right = exact(values, labels)
    with ct.workspace(devices="reference", places_per_controller=3, comm=SERIAL) as on:
        x, its = on.array(values), on.array(labels)
        for least in (0, 3, 9):
            found = np.bincount(its, minlength=least)
            assert np.array_equal(found, np.bincount(labels, minlength=least))
            assert found.dtype == np.intp
        assert np.array_equal(np.bincount(its, weights=x[:, 2]), right[:4, 2])
        empty = np.bincount(its[:0], minlength=2)
        assert empty.tolist() == [0, 0]
    with ct.Computation([], (N_ROWS,), dtype="int32", k=labels, comm=SERIAL) as run:
        assert np.array_equal(np.bincount(run.k), np.bincount(labels))      # of a field, too


def test_values_that_are_no_numbers_make_sums_that_are_none() -> None:
    values = np.array([[1.0], [np.inf], [np.nan], [-np.inf], [np.inf], [2.0]])
    found = ct.sum_by(values, np.array([0, 1, 2, 3, 3, 0]), 4)
    assert np.array_equal(found, [[3], [np.inf], [np.nan], [np.nan]], equal_nan=True)


def test_labels_that_do_not_fit_are_refused() -> None:
    values = np.zeros((4, 2))
    with ct.workspace(devices="reference", comm=SERIAL) as on:
        x = on.array(values)
        for labels, error, said in (
            (np.array([0, 1, 2, 3]), ValueError, "from 0 to 2, got 3"),
            (np.array([0, -1, 2, 0]), ValueError, "got -1"),
            (np.array([0, 1]), ValueError, "a line of labels"),
            (np.zeros((4, 1), int), ValueError, "a line of labels"),
            (np.zeros(4), TypeError, "astype"),
        ):
            for given in (labels, on.array(labels)):
                for rows in (x, values):
                    with pytest.raises(error, match=said):
                        ct.sum_by(rows, given, 3)
        with pytest.raises(ValueError, match="use fewer"):
            ct.sum_by(x, on.array(np.zeros(4, int)), 1 << 24)
