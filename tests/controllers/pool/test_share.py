# SPDX-License-Identifier: MIT
"""Tasks of several processes take turns on the cores and devices of their node."""
from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from mpi_jobs import HANGS_S, run_ranks
from shared import held

import controllers as ct
from controllers.arbiter import Arbiter, Want, node_cores, unit_of
from controllers.device import reference_device
from controllers.pool import crew, share
from controllers.pool.budget import Got
from controllers.pool.lane import Lane
from controllers.pool.memories import Memories
from controllers.pool.side.host_side import HostSide
from controllers.pool.way import Way
from hitmap.comm import SerialCommunicator

ALL = len(node_cores())
TASKS = """
import os, sys, time
from pathlib import Path
import controllers as ct
from controllers.arbiter import node_cores

folder, n_all = Path(sys.argv[1]), len(node_cores())

@ct.task(least=n_all, most=n_all)
def alone(number, *, cores):
    assert cores == n_all
    os.close(os.open(folder / "alone", os.O_CREAT | os.O_EXCL))
    time.sleep(0.002)
    (folder / "alone").unlink()
    return number

with ct.tasks((), exclusive="exclusive" in sys.argv) as pool:
    assert list(pool.map(alone, range(20))) == [*range(20)]
"""


@pytest.fixture
def arbiter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Arbiter:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    return Arbiter()


@pytest.mark.whole
@pytest.mark.parametrize(
    "words", [("", ""), pytest.param(("", "", "exclusive"), marks=pytest.mark.whole)]
)
def test_tasks_of_processes_take_turns(
    words: tuple[str, ...], arbiter: Arbiter, tmp_path: Path
) -> None:
    """Each wants all cores; one of them owns the node while it is there."""
    jobs = [
        subprocess.Popen([sys.executable, "-c", TASKS, str(tmp_path), word]) for word in words
    ]
    assert [job.wait(HANGS_S) for job in jobs] == [0] * len(words)
    with arbiter.acquire_node(0):
        pass


def test_an_exclusive_pool_owns_the_node(arbiter: Arbiter) -> None:
    with ct.tasks((), exclusive=True) as pool:
        waiting = arbiter.request([[Want(node_cores(), 1, 1)]])
        assert waiting.poll() is None
        assert pool.submit(len, (1, 2)).result() == 2
    assert waiting.poll() is not None


def test_a_task_gets_the_cores_that_no_other_process_has(arbiter: Arbiter) -> None:
    @ct.task(least=1, most=64)
    def counted(*, cores: int) -> int:
        return cores

    with ct.tasks(()) as pool:
        assert pool.submit(counted).result() == ALL
        with arbiter.acquire([[Want(node_cores(), ALL, ALL)]], HANGS_S) as lease:
            waiting = pool.submit(counted)
            with pytest.raises(TimeoutError):
                waiting.result(0.05)
            lease.release()
            assert waiting.result(HANGS_S) == ALL
    assert arbiter.holders() == []


def test_an_idle_pool_holds_nothing(arbiter: Arbiter) -> None:
    with ct.tasks(()) as pool:
        pool.submit(len, ()).result()
        arbiter.acquire([[Want(node_cores(), ALL, ALL)]], HANGS_S).release()
        with pytest.raises(ct.TaskError, match="zero"):
            pool.submit(lambda: 1 / 0).result()
        arbiter.acquire([[Want(node_cores(), ALL, ALL)]], HANGS_S).release()


@pytest.mark.skipif(ALL < 2, reason="one core is idle while another one is not")
def test_a_pool_with_work_keeps_its_cores_until_others_wait(arbiter: Arbiter) -> None:
    started, go_on = threading.Event(), threading.Event()

    def stay() -> None:
        started.set()
        go_on.wait(HANGS_S)

    with ct.tasks((), cores=2) as pool:
        busy = pool.submit(stay)
        assert started.wait(HANGS_S), "else one core may do both, one after the other"
        pool.submit(len, ()).result()
        time.sleep(5 * crew.LOOK_S)
        taken = arbiter.taken(node_cores())
        arbiter.acquire([[Want(node_cores(), ALL - 1, ALL - 1)]], HANGS_S).release()
        assert not busy.done()
        go_on.set()
    assert len(taken) == 2


def test_more_cores_than_there_are_are_not_leased(arbiter: Arbiter) -> None:
    met = threading.Barrier(ALL + 1)
    with ct.tasks((), cores=ALL + 1) as pool:
        futures = [pool.submit(met.wait, HANGS_S) for _ in range(ALL + 1)]
        assert sorted(future.result() for future in futures) == [*range(ALL + 1)]
        assert arbiter.holders() == []


def test_kernels_on_a_cpu_lease_its_cores(arbiter: Arbiter) -> None:
    @ct.each
    def doubled(x: ct.Row) -> dict:
        return {"out": 2 * x}

    task = ct.Task("doubled", ("out", "x"), roles={"out": "writing"})
    task.variant(doubled)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    out = np.zeros_like(x)
    with ct.tasks("cpu") as pool:
        with arbiter.acquire([[Want(node_cores(), ALL, ALL)]], HANGS_S):
            future = pool.submit(task, out, x)
            with pytest.raises(TimeoutError):
                future.result(0.05)
        future.result(HANGS_S)
    assert (out == 2 * x).all()


def test_an_accelerator_is_leased_to_one_task_at_a_time(arbiter: Arbiter) -> None:
    gpu = replace(reference_device(), kind="gpu", name="GPU 9")
    lane = Lane(1, "GPU 9", gpu, HostSide(Memories()), unit=unit_of(gpu))
    task = ct.Task("product", ())
    task.variant(ct.Kernel.of("product", "__kernel void product(BOX) { CELL; }"))
    way = Way("product", task.variants[0], lane)
    shares = [share.Share(1, [lane], SerialCommunicator(), None) for _ in range(2)]
    with held(shares[0], way, (), "a product") as got:
        assert got == Got(0)
        assert [(h.units, h.what) for h in arbiter.holders()] == [((unit_of(gpu),), "a product")]
        waiting = arbiter.request([[Want((unit_of(gpu),))]])
        assert waiting.poll() is None
    shares[0].rest()
    assert waiting.poll() is not None
    waiting.cancel()
    with held(shares[1], way, (), "another"):
        assert [h.what for h in arbiter.holders()] == ["another"]
    for one in shares:
        one.close()


def test_a_folder_that_cannot_be_used_is_warned_of(arbiter: Arbiter, tmp_path: Path) -> None:
    arbiter.holders()
    (tmp_path / "arbiter").chmod(0o777)
    with pytest.warns(RuntimeWarning, match="CONTROLLERS_ARBITER"), ct.tasks(()) as pool:
        assert pool.submit(os.getpid).result() == os.getpid()


RANKS = """
import logging, os, sys
import controllers as ct
from controllers.arbiter import Arbiter, Want, node_cores, unit_of
from controllers.device import reference_device
from controllers.pool import crew, share
from controllers.pool.side.host_side import HostSide
from controllers.pool.lane import Lane
from controllers.pool.memories import Memories
from hitmap.comm import SerialCommunicator
from mpi4py import MPI

share.PATIENCE_S = 0.05
comm = MPI.COMM_WORLD
names = node_cores()
if comm.rank == 0:
    lease = Arbiter().acquire([[Want(names, len(names), len(names))]])
comm.Barrier()
with ct.tasks((), cores=1) as pool:
    seen = pool.submit(comm.allgather, comm.rank).result()
sys.stdout.write(f"{seen}{os.linesep}")
"""


def test_tasks_of_ranks_that_wait_for_each_other_do_not_hang(
    arbiter: Arbiter,
) -> None:
    done = run_ranks(2, RANKS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["[0, 1]"] * 2
    assert share.PATIENCE_S == 10
