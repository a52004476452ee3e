# SPDX-License-Identifier: MIT
"""Array programs on distributed fields do what they do on NumPy's arrays, bit for bit."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_arrays import DTYPES, Writer, initial
from sample import cases

import controllers as ct
from hitmap import SerialCommunicator

SERIAL = SerialCommunicator()
EXTENT = (11, 13)


@ct.step
def smooth(u: Any, v: Any, a: Any, k: Any, b: Any) -> dict[str, Any]:
    return dict(u=u + (v[0, 1] - u[-1, 0]) / 4, b=b + 1, a=(a[1, 0] + a[0, -1]) / 2)


def started(n_places: int, values: dict[str, Any], device: str = "cpu", **more: Any) -> Any:
    return ct.Computation(
        smooth, values["u"].shape, dtype=DTYPES, init=values, comm=SERIAL, devices=[device],
        boundary="periodic", places_per_controller=n_places, **more,
    )  # fmt: skip


def same(run: Any, arrays: dict[str, Any]) -> bool:
    return all(np.array_equal(run[name], arrays[name], equal_nan=True) for name in arrays)


@pytest.mark.whole
def test_an_assignment_is_one_sweep_on_the_tiles() -> None:
    values = initial(np.random.default_rng(0), EXTENT)
    for n_places, device in ((1, "cpu"), (3, "reference")):
        right = {name: array.copy() for name, array in values.items()}
        with started(n_places, values, device) as run:
            for number in (2.0, 3.5):
                run.u[...] = number * np.sqrt(abs(run.v)) + run.a
                right["u"][...] = number * np.sqrt(abs(right["v"])) + right["a"]
            assert same(run, right)
            assert len(run._expressions._bound._known) == 1, "numbers are arguments"
            run.v[1:-1] = run.u[2:] - run.u[:-2]
            right["v"][1:-1] = right["u"][2:] - right["u"][:-2]
            assert same(run, right)


@pytest.mark.parametrize("device", ["reference", pytest.param("cpu", marks=pytest.mark.whole)])
@pytest.mark.parametrize("n_places", [1, 2, 3, 5])
@pytest.mark.parametrize("seed", cases(1, 10))
def test_random_programs_do_what_numpy_does(seed: int, n_places: int, device: str) -> None:
    random = np.random.default_rng([seed, n_places])
    values = initial(random, EXTENT)
    right = {name: array.copy() for name, array in values.items()}
    weights = {} if n_places == 1 else {"weights": [*random.uniform(1, 5, n_places)]}
    writer = Writer(random, EXTENT)
    with started(n_places, values, device, **weights) as run:
        for _ in range(5):
            statement = writer.statement()
            with np.errstate(all="ignore"):
                statement(right)
            statement(run)
            assert same(run, right)
