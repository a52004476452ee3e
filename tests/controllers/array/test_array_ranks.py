# SPDX-License-Identifier: MIT
"""Array programs on several ranks do what they do on NumPy's arrays, bit for bit."""
from __future__ import annotations

import pytest
from mpi_jobs import helpers_path, run_ranks

JOB = """
import numpy as np
from random_arrays import DTYPES, Writer, initial
import controllers as ct
for seed in range(4):
    random = np.random.default_rng(seed)
    values = initial(random, (11, 13))
    right = {name: array.copy() for name, array in values.items()}
    writer = Writer(random, (11, 13))
    with ct.Computation(
        [], (11, 13), dtype=DTYPES, init=values, devices="reference",
        places_per_controller=1 + seed % 2,
    ) as run:
        for _ in range(5):
            statement = writer.statement()
            with np.errstate(all="ignore"):
                statement(right)
            statement(run)
            w = run.u * run.k
            for name, array in right.items():
                assert np.array_equal(run[name], array, equal_nan=True), (seed, name)
                assert np.array_equal(run[name].max(), array.max(), equal_nan=True)
                assert run[name].argmin() == array.argmin()
        run.redistribute(weights=[*range(1, 1 + run.layout.n_places)])
        assert np.array_equal(w, right["u"] * right["k"], equal_nan=True)
        run.u[2:] = w[2:] + w[:-2]
        right["u"][2:] = right["u"][2:] * right["k"][2:] + right["u"][:-2] * right["k"][:-2]
        assert np.array_equal(run.u, right["u"], equal_nan=True)
"""


@pytest.mark.whole
@pytest.mark.parametrize("n_ranks", [2, 3])
def test_random_programs_do_what_numpy_does_on_ranks(n_ranks: int) -> None:
    done = run_ranks(n_ranks, JOB, env=helpers_path())
    assert done.returncode == 0, done.stderr
