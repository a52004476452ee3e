# SPDX-License-Identifier: MIT
"""Reductions of distributed arrays give what NumPy gives, sums what fsum gives, on any layout."""
from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import controllers as ct
from hitmap import SerialCommunicator

EXTENT = (11, 13)
NAMES = ("min", "max", "argmin", "argmax", "any", "all")


@ct.step
def nothing(u: Any, v: Any, a: Any, k: Any) -> dict[str, Any]:
    return dict(u=u + v[0, 1] * 0)


def values() -> dict[str, Any]:
    random = np.random.default_rng(3)
    return {
        "u": random.normal(size=EXTENT) * 10.0 ** random.integers(-9, 9, EXTENT),
        "v": random.normal(size=EXTENT), "a": random.normal(size=EXTENT).astype("f4"),
        "k": random.integers(-99, 99, EXTENT).astype("int32"),
    }  # fmt: skip


def total(array: Any) -> float:
    return math.fsum(np.asarray(array, "f8").ravel())


def check(run: Any, right: dict[str, Any]) -> None:
    """All reductions, of fields, slices, expressions and masks."""
    for take in (
        lambda of: of["u"], lambda of: of["a"], lambda of: of["k"],
        lambda of: of["u"][2:, 1:-1], lambda of: of["u"][4], lambda of: of["u"][::-2],
        lambda of: of["u"][2:] - of["v"][:-2], lambda of: abs(of["a"]) > 0.1,
    ):  # fmt: skip
        array, expected = take(run), take(right)
        for name in NAMES:
            assert getattr(array, name)() == getattr(expected, name)(), name
            assert getattr(np, name)(array) == getattr(expected, name)(), name
        assert array.sum() == total(expected) and array.mean() == total(expected) / expected.size
    u, v = right["u"], right["v"]
    assert np.vdot(run["u"], run["v"]) == total(u * v)
    assert np.dot(run["u"][3], run["v"][4]) == run["u"][3] @ run["v"][4] == total(u[3] * v[4])
    assert np.linalg.norm(run["v"]) == math.sqrt(total(v * v))
    assert np.shape(run["u"][2:]) == u[2:].shape and np.size(run["v"] * 2, axis=0) == len(v)
    chosen = run["u"][run["v"] > 0.3]
    assert chosen.sum() == total(u[v > 0.3]) and chosen.argmax() == u[v > 0.3].argmax()
    assert chosen.max() == u[v > 0.3].max() and len(chosen) == (v > 0.3).sum()
    assert np.array_equal(chosen, u[v > 0.3])
    assert np.array_equal(run["u"].sum(axis=0), u.sum(axis=0))


@pytest.mark.parametrize(
    "device, n_places",
    [("reference", 1), ("reference", 4), *(pytest.param("cpu", n, marks=pytest.mark.whole)
                                           for n in (1, 3, 7))],
)  # fmt: skip
def test_reductions_are_those_of_numpy(device: str, n_places: int) -> None:
    right = values()
    with ct.Computation(
        nothing, EXTENT, dtype=dict(u="f8", v="f8", a="f4", k="i4"), init=right,
        boundary="periodic", devices=[device], places_per_controller=n_places,
        comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        check(run, right)
        with pytest.raises(ValueError, match="max of no cells"):
            run.u[run.u > 1e99].max()
        with pytest.raises(ValueError, match="min of no cells"):
            run.u[3:3].min()
        with pytest.raises(ValueError, match="mean of no cells.*some"):
            run.u[3:3].mean()
        assert run.u[3:3].sum() == 0 and run.u[3:3].all() and not run.u[3:3].any()
        run.v[2, 3] = np.nan
        assert np.isnan(run.v.max()) and run.v.argmin() == 2 * EXTENT[1] + 3
        assert np.isnan(run.v.sum())


def test_numbers_of_one_cell_are_numbers_and_others_are_not() -> None:
    with ct.Computation(
        nothing, EXTENT, dtype=dict(k="i4"), init=values(), boundary="periodic",
        devices=["reference"], comm=SerialCommunicator(),
    ) as run:  # fmt: skip
        assert float(run.u[2:3, 4:5] * 2) == 2 * values()["u"][2, 4]
        assert int(run.k[2:3, 4:5]) == values()["k"][2, 4]
        with pytest.raises(ValueError, match="143 cells is neither one number.*any"):
            bool(run.u > 0)
