# SPDX-License-Identifier: MIT
"""Functions that have devices of their own: so many, told by name, and used by nobody else."""
from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import HANGS_S, run_ranks
from shared import held as held_of

import controllers as ct
from controllers.arbiter import Arbiter, Want
from controllers.device import reference_device
from controllers.device.device import Device
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case
from controllers.pool.budget import Budget, Claim
from controllers.pool.forecast import Forecast
from controllers.pool.job import Job
from controllers.pool.lane import Lane
from controllers.pool.memories import Memories
from controllers.pool.share import Share
from controllers.pool.side.host_side import HostSide
from controllers.pool.way import Way
from controllers.pool.ways import Ways
from hitmap.comm import SerialCommunicator

MEAN = ct.Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)


@pytest.fixture(autouse=True)
def arbiter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Arbiter]:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    with Arbiter() as made:
        yield made


def gpus(n: int) -> list[Device]:
    """Devices that nobody computes with."""
    return [replace(reference_device(), kind="gpu", name=f"GPU {k}") for k in range(n)]


def lanes_of(devices: list[Device]) -> list[Lane]:
    side = HostSide(Memories())
    return [
        Lane(0, "the host", None, side),
        *(Lane(k + 1, x.name, x, side, unit=x.name) for k, x in enumerate(devices)),
    ]


def way_of(lanes: list[Lane], devices: Any, on: str | None = None) -> Way:
    """A function with devices in the lane of the host."""
    task = ct.Task("flow", ())
    task.variant(lambda *, devices: devices, devices=devices, on=on)
    return Ways(lanes).of(task, [], has_futures=False)[0]


def test_a_task_runs_a_computation_on_devices_of_its_own() -> None:
    start = np.arange(40, dtype=np.float32) % 7

    @ct.task(roles={"u": "updating"}, devices=(1, 2))
    def flow(u: Any, n_steps: int, *, devices: tuple[str, ...]) -> tuple[str, ...]:
        with ct.Computation(MEAN, u, devices=devices, comm=SerialCommunicator()) as run:
            assert len(run.report().devices) == len(devices)
            run.run(n_steps)
            u[:] = run.gather()
        return devices

    with ct.tasks("cpu/1,1", cores=2) as pool:
        arrays = [start.copy(), start.copy()]
        told = [pool.submit(flow, u, 5).result() for u in arrays]
        report = pool.report()
    for u in arrays:
        assert np.array_equal(u, ct.reference_run(MEAN.program("float32"), start, 5, (False,)))
    for names in told:
        assert set(names) <= {"cpu/1,1:0", "cpu/1,1:1"} and len(names) == len({*names}) > 0
    assert "(1 of " in report.explain() and " with " in str(report)


def test_functions_have_unlike_parts_at_the_same_time() -> None:
    met = threading.Barrier(2)

    @ct.task(devices=1, on="cpu")
    def both(*, devices: tuple[str, ...], cores: int) -> tuple[str, int]:
        met.wait(HANGS_S)
        return devices[0], cores

    with ct.tasks("cpu/1,1", cores=2) as pool:
        found = [future.result() for future in [pool.submit(both), pool.submit(both)]]
    assert sorted(found) == [("cpu/1,1:0", 1), ("cpu/1,1:1", 1)]


def test_kernels_wait_for_the_device_of_a_function() -> None:
    order: list[str] = []
    begun = threading.Event()

    @ct.task(devices=1)
    def long(*, devices: tuple[str, ...]) -> None:
        begun.set()
        time.sleep(0.02)
        order.append("function")

    kernel = ct.Task("put", ("y",), roles={"y": "writing"})
    kernel.variant(ct.Kernel.of("put", """
        __kernel void put(__global float *y, TILE(y), BOX) { CELL; HERE(y) = 1; }"""))
    y = np.zeros(3, np.float32)
    with ct.tasks("cpu/1", cores=2) as pool:    # cores are left
        pool.submit(long)
        begun.wait(HANGS_S)
        done = pool.submit(kernel, y)
        done.add_done_callback(lambda _: order.append("kernel"))
    assert order == ["function", "kernel"] and y.tolist() == [1] * 3


@pytest.mark.parametrize(
    ("devices", "error", "words"),
    [
        (0, ValueError, "'flow': devices, the least.* 0"),
        ((2, 1), ValueError, "'flow': devices, the most.* 1"),
        ((1, 2, 3), ValueError, r"a least and a most number, got \(1, 2, 3\).*devices=\(1, 2\)"),
        ("gpu", TypeError, "'flow': devices.*'gpu'.*devices=2"),
        (1.5, TypeError, "'flow': devices.*1.5.*devices=2"),
    ],
)
def test_numbers_of_devices_are_checked(devices: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ct.Task("flow", ()).variant(int, devices=devices)


def test_what_devices_are_of_is_checked() -> None:
    task = ct.Task("flow", ())
    kernel = ct.Kernel.of("k", "__kernel void k(BOX) { CELL; }")
    with pytest.raises(ValueError, match="a kernel uses one whole device, got devices=2"):
        task.variant(kernel, devices=2)
    with pytest.raises(ValueError, match="devices=, got on='host'"):
        task.variant(int, devices=2, on="host")
    with pytest.raises(ValueError, match="got on='gpu'"):
        task.variant(int, on="gpu")
    task.variant(lambda *, devices: devices, devices=(3, 4), on="cpu")
    with ct.tasks("cpu/1,1", cores=2) as pool:
        with pytest.raises(ValueError, match="host with 3 to 4 of cpu.*none can be done"):
            pool.submit(task)
        with pytest.raises(TypeError, match="unexpected keyword argument 'devices'"):
            pool.submit(task, devices=())
        mine = ct.task(lambda *, devices: devices)      # a parameter as any other
        assert pool.submit(mine, devices="those").result() == "those"


def test_as_many_devices_as_others_leave_are_given(arbiter: Arbiter) -> None:
    devices = gpus(3)
    lanes = lanes_of(devices)
    pool = Share(2, lanes, SerialCommunicator(), None)
    way = way_of(lanes, (1, 2))
    other = arbiter.acquire([[Want((devices[0].name,))]])
    with held_of(pool, way, lanes[1:3], "flow") as (cores, found):
        assert (cores, found) == (1, (lanes[2], lanes[3]))   # the first one is not free
        held = {unit for one in arbiter.holders() for unit in one.units}
        assert {one.name for one in devices} <= held
        with pool._budget.held(Claim(0, 0, tuple(lanes[1:]), 1, 3)) as rest:
            assert rest.lanes == (lanes[1],)
    other.release()
    with held_of(pool, way, (lanes[2],), "flow") as (_, found):
        assert found == (lanes[2], lanes[1])    # what is foreseen first
    pool.close()


def test_what_another_process_takes_meanwhile_is_given_back(arbiter: Arbiter) -> None:
    """Between the look and the lease: the lanes without one are free for this pool's tasks."""
    devices = gpus(2)
    lanes = lanes_of(devices)
    pool = Share(1, lanes, SerialCommunicator(), None)
    held = arbiter.acquire([[Want((devices[0].name,))]])
    pool._ordered = lambda claim, foreseen: claim   # type: ignore[method-assign]
    with held_of(pool, way_of(lanes, (1, 2)), (), "flow") as (_, found):
        assert found == (lanes[2],)
        with pool._budget.held(Claim(0, 0, (lanes[1],), 1, 1)) as got:
            assert got.lanes == (lanes[1],)
    held.release()
    with held_of(pool, way_of(lanes, (2, 2)), (), "flow") as (_, found):
        assert found == (lanes[1], lanes[2])
    pool.close()


class Foreseen:
    """A forecast for the host and two GPUs, of a task that takes 4 s on one and 3 s on two."""

    def __init__(self) -> None:
        self.lanes = lanes_of(gpus(2))
        self.way = way_of(self.lanes, (1, 2))
        estimates = Estimates(None)
        for _ in range(3):
            estimates.add(self.way.key, Case(8, 1), 4.0)
            estimates.add(self.way.key, Case(8, 2), 3.0)
        self.forecast = Forecast(estimates, 2, self.lanes, Memories())
        self.n = 0

    def placed(self) -> tuple[str, float]:
        self.n += 1
        job = Job(self.n, ct.Task("flow", ()), [], {}, [], None)   # type: ignore[arg-type]
        job.size, job.may_run = 8.0, [self.way]
        self.forecast.place(job, [])
        return self.forecast.decisions[-1].way, job.end_s


def test_the_forecast_knows_how_many_devices_are_used() -> None:
    host = "host on the host with"
    seen = Foreseen()
    assert seen.placed() == (f"{host} GPU 0, GPU 1", 3)
    assert seen.placed() == (f"{host} GPU 0, GPU 1", 6)
    again = Foreseen()
    again.forecast._free_s[again.lanes[1]] = 9.0    # busy with kernels
    assert again.placed() == (f"{host} GPU 1", 4)
    ends = dict(again.forecast.decisions[-1].ends_s)
    assert ends == {f"{host} GPU 1": 4, f"{host} GPU 1, GPU 0": 12}
    assert again.way.units(1, 2) == 2 and "GPU 0, GPU 1" in again.way.key.device


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(n, marks=pytest.mark.whole) for n in range(1, 30))]
)
def test_no_device_is_given_twice_and_nobody_waits_for_ever(seed: int) -> None:
    draw = random.Random(seed)
    lanes = tuple(Lane(k, f"lane {k}", None, HostSide(Memories()), cores=draw.choice([0, 0, 1, 2]))
                  for k in range(3))  # fmt: skip
    budget = Budget(3, lanes)
    lock, used, n_used = threading.Lock(), set[Lane](), [0]

    def claim(draws: random.Random) -> Claim:
        among = tuple(draws.sample(lanes, draws.randint(0, 3)))
        least = draws.randint(1, len(among)) if among else 0
        cores = draws.randint(0 if among else 1, 4)
        return Claim(cores, draws.randint(cores, 4), among, least, draws.randint(least, 3))

    def work(number: int) -> None:
        draws = random.Random(f"{seed} {number}")
        for _ in range(20):
            wanted = claim(draws)
            with budget.held(wanted) as got:
                with lock:
                    assert not used & {*got.lanes} and {*got.lanes} <= {*wanted.among}
                    used.update(got.lanes)
                    n_used[0] += got.cores
                    assert n_used[0] <= 3
                    own = sum(lane.cores for lane in got.lanes)
                    assert got.cores >= min(3, max(own, wanted.least))
                    assert len(got.lanes) >= wanted.least_devices
                time.sleep(draws.random() * 1e-4)
                with lock:
                    used.difference_update(got.lanes)
                    n_used[0] -= got.cores

    failed: list[BaseException] = []

    def guarded(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(n,), daemon=True) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANGS_S)
        assert not thread.is_alive()
    assert not failed
    assert budget.take(Claim(3, 3, lanes, 3, 3)).cores == 3


RANKS = """
import sys
import numpy as np
import controllers as ct
from mpi4py import MPI
from hitmap.comm import SerialCommunicator

mean = ct.Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2)
start = np.arange(40, dtype=np.float32) % 7

@ct.task(devices=1)
def flow(u, *, devices):
    with ct.Computation(mean, u, devices=devices, comm=SerialCommunicator()) as run:
        run.run(4)
        return devices, run.gather()

with ct.tasks("cpu/1,1", cores=1) as pool:
    names, found = pool.submit(flow, start).result()
assert np.array_equal(found, ct.reference_run(mean.program("float32"), start, 4, (False,)))
everyone = MPI.COMM_WORLD.gather(names)
if everyone:
    print(everyone)
"""


@pytest.mark.whole
def test_ranks_have_devices_of_their_own() -> None:
    done = run_ranks(2, RANKS)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[('cpu/1,1:0',), ('cpu/1,1:1',)]"
