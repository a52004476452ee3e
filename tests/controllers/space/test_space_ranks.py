# SPDX-License-Identifier: MIT
"""Workspaces on several ranks: what one rank finds, on all of them."""
from __future__ import annotations

import pytest
from mpi_jobs import helpers_path, run_ranks

JOB = """
import os, tempfile
import numpy as np
from body_steps import bodies, moved, nearest
from random_arrays import Writer, initial
import controllers as ct
from hitmap import default_communicator
comm = default_communicator()
folder = comm.bcast(tempfile.mkdtemp() if comm.rank == 0 else None)
for seed in range(2):
    random = np.random.default_rng(seed)
    values = initial(random, (11, 13))
    right = {name: array.copy() for name, array in values.items()}
    writer = Writer(random, (11, 13))
    with ct.workspace(devices="reference", places_per_controller=1 + seed) as on:
        arrays = {name: on.array(array) for name, array in values.items()}
        for _ in range(5):
            statement = writer.statement()
            with np.errstate(all="ignore"):
                statement(right)
            statement(arrays)
            for name, array in right.items():
                assert np.array_equal(arrays[name], array, equal_nan=True), (seed, name)
places, speeds, masses = bodies(19)
with ct.workspace(devices="reference", weights=[1 + n for n in range(comm.size)]) as on:
    mine = places if comm.rank == 0 else places * 0         # those of rank 0 count
    x, v, mass = on.array(mine), on.array(speeds), on.array(masses, split=None)
    moved(x, v, mass, 3)
    moved(places, speeds, masses, 3)
    assert np.array_equal(x, places) and np.array_equal(v, speeds)
    label = nearest(x, places[:4])
    assert np.array_equal(label, nearest(places, places[:4]))
    assert np.array_equal(np.bincount(label, minlength=6), np.bincount(np.asarray(label), None, 6))
    sums = ct.sum_by(x, label, 4)
    assert np.array_equal(sums, ct.sum_by(places, np.asarray(label), 4))
    path = os.path.join(folder, "x.npy")
    x.save(path)
    y = on.open(path)
    assert np.array_equal(y, places) and np.array_equal(y[::3][:2], places[::3][:2])
    far = label + 9
    for wrong, said in (
        (lambda: ct.sum_by(x, far, 4), "labels are from 0 to 3"),
        (lambda: ct.sum_by(x, label if comm.rank == 0 else far, 4), "argument"),
        (lambda: nearest(x if comm.rank == 0 else v, places[:4]), "argument x"),
        (lambda: on.array(np.zeros(3 + comm.rank)), "shape"),
        (lambda: on.open(path if comm.rank == 0 else "/nowhere"), "path"),
    ):
        try:
            wrong()
            raise AssertionError(said)
        except ValueError as error:
            assert said in str(error), error
    assert np.array_equal(x, places)
"""


@pytest.mark.parametrize("n_ranks", [2, pytest.param(3, marks=pytest.mark.whole)])
def test_arrays_and_functions_on_ranks(n_ranks: int) -> None:
    done = run_ranks(n_ranks, JOB, env=helpers_path())
    assert done.returncode == 0, done.stderr
