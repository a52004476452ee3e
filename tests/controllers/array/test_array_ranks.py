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


LET_GO = """
import numpy as np
import controllers as ct
with ct.Computation([], (6, 5), u=1, v=2, devices="reference") as run:
    first, other = run.u + 1, run.u * 3
    if run.comm.rank == 1:
        del other
    for _ in range(2):
        run.u[...] = run.u + run.v
    assert (np.asarray(first) == 2).all() and (np.asarray(run.u) == 5).all()
    lost = [other] if run.comm.rank == 0 else []
    last = run.u * 2
    if run.comm.rank == 0:
        assert (run.u[1:3] * 2).shape == (2, 5)     # the other rank does not make it
    later = run.u * 4
    run.u[...] = run.v
    for one in (*lost, later):
        try:
            one.max()
        except RuntimeError as error:
            assert "on all ranks alike" in str(error)
            print("lost")
    assert (np.asarray(run.u) == 2).all()
"""


@pytest.mark.whole
def test_what_one_rank_has_let_go_of_is_lost_on_the_others() -> None:
    done = run_ranks(2, LET_GO, env=helpers_path())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["lost"] * 3
