# SPDX-License-Identifier: MIT
"""Random graphs of tasks give what their tasks give one after another, on any schedule."""
from __future__ import annotations

import numpy as np
import pytest
from mpi_jobs import helpers_path, run_ranks
from random_tasks import SOON_S, Graph, any_schedule
from sample import sample

import controllers as ct
from controllers.device import Device
from controllers.device.assignment import open_parts
from controllers.device.listing import devices
from controllers.pool.side import opening


def compare(seed: int, selector: str | tuple[()], *, zero_copy: bool) -> None:
    graph = Graph(seed)
    with any_schedule(seed), ct.tasks(selector, cores=2, zero_copy=zero_copy) as pool:
        arrays, futures = graph.submitted(pool)
        results = [future.result(SOON_S) for future in futures[seed % 2 :: 2]]
        pool.wait(SOON_S)
    right, returned = graph.one_after_another()
    assert results == returned[seed % 2 :: 2]
    for array, expected in zip(arrays, right, strict=True):
        assert np.array_equal(array, expected)


def three_devices(*_: object) -> list[Device]:
    """The CPU, and both of its halves again."""
    cpu = next(one for one in devices() if one.kind == "cpu")
    return [cpu, *open_parts([cpu.divided((1, 1), part) for part in range(2)])]


@pytest.mark.parametrize("seed", sample(range(75), 30))
def test_a_random_graph_on_one_rank(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    n_devices = seed % 4
    if n_devices == 3:
        monkeypatch.setattr(opening, "assigned_devices", three_devices)
    compare(seed, ((), "cpu", "cpu/1,1", "cpu")[n_devices], zero_copy=seed % 3 == 0)


JOB = """
import sys
import numpy as np
from random_tasks import Graph, any_schedule
import controllers as ct
from hitmap import default_communicator
comm = default_communicator()

def tasks(seed):
    return ct.tasks("cpu" if seed % 5 else (), zero_copy=seed % 2 == 0)

for seed in range(int(sys.argv[1]), int(sys.argv[2])):
    graph = Graph(seed)
    with any_schedule(seed + comm.rank), tasks(seed) as pool:
        arrays, futures = graph.submitted(pool)
        results = [future.result(120) for future in futures]
        pool.wait(120)
    right, returned = graph.one_after_another()
    assert results == returned, seed
    assert all(map(np.array_equal, arrays, right)), seed

def total_of_all(x):        # a library that calls MPI by itself, on its own communicator
    total = np.zeros(1)
    OWN.Allreduce(np.array([x.sum()]), total)
    return total[0]

OWN = comm.Dup()
a = np.full(5, 1.0 + comm.rank)
with ct.tasks("cpu") as pool:
    totals = []
    for n in range(10):
        totals.append(pool.submit(total_of_all, a))
        pool.submit(np.add, a, 1, ct.writing(a))
        comm.Allreduce(np.array([float(n)]), found := np.zeros(1))     # in the main thread
        assert found[0] == n * comm.size
    assert [one.result(120) for one in totals] == [15.0 + 10 * n for n in range(10)]
print("same")
"""


SEEDS = [(100, 101), *((first, first + 3) for first in range(101, 126, 3))]


@pytest.mark.parametrize(("first", "last"), sample(SEEDS, 10))
def test_random_graphs_and_a_library_that_calls_mpi_on_two_ranks(first: int, last: int) -> None:
    text = JOB.replace("sys.argv[1]", str(first)).replace("sys.argv[2]", str(last))
    done = run_ranks(2, text, env=helpers_path())
    assert done.returncode == 0 and done.stdout.count("same") == 2, done.stderr


