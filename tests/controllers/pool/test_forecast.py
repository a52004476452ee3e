# SPDX-License-Identifier: MIT
"""Where jobs are sent: by estimates alone, the same every time, and where they end first."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import controllers as ct
from controllers.device.listing import devices
from controllers.estimates.device_rates import (
    CORE_BYTES_PER_S,
    CORE_OPERATIONS_PER_S,
    START_S,
)
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case, TaskKey, Work
from controllers.pool.data import Data
from controllers.pool.forecast import Forecast
from controllers.pool.job import Job
from controllers.pool.lane import Lane
from controllers.pool.memories import Memories
from controllers.pool.pool import Pool
from controllers.pool.side.host_side import HostSide
from controllers.pool.way import Way
from hitmap.comm import SerialCommunicator

N_CORES = 4
CPU = next(one for one in devices() if one.kind == "cpu")


class Owner:
    """Of futures that nobody asks."""

    def cancel(self, job: Job) -> bool:
        raise AssertionError

    bring_home = note_end = cancel     # type: ignore[assignment]


class Simulated:
    """A forecast for the host and one device, with known times in seconds."""

    def __init__(self, host_s: float | None, device_s: float | None, most: int = 1) -> None:
        memories = Memories()
        side = HostSide(memories)
        self.lanes = [Lane(0, "the host", None, side), Lane(1, "it", CPU, side, cores=0)]
        self.task = ct.Task("work", ())
        self.task.variant(int, least=1, most=most)
        self.task.variant(ct.Kernel.of("work", "__kernel void work(BOX) { CELL; }"))
        self.ways = [Way("work", v, lane) for v, lane in zip(self.task.variants, self.lanes)]
        estimates = Estimates(None)
        for way, seconds in zip(self.ways, (host_s, device_s)):
            for n in range(1, (1 if way is self.ways[1] else most) + 1):
                if seconds is not None:
                    for _ in range(3):
                        estimates.add(way.key, Case(8, n), seconds / n)
        self.forecast = Forecast(estimates, N_CORES, self.lanes, memories)
        self.n = 0

    def place(self, befores: Sequence[Job] = ()) -> Job:
        job = Job(self.n, self.task, [], {}, [], Owner())
        self.n += 1
        job.may_run, job.size, job.before = self.ways, 8.0, list(befores)
        self.forecast.place(job, befores)
        return job


def where(jobs: Sequence[Job]) -> str:
    return "".join("h" if job.placed.lane.device is None else "d" for job in jobs if job.placed)


def test_each_job_goes_where_it_ends_first() -> None:
    simulated = Simulated(4.0, 1.0)
    jobs = [simulated.place() for _ in range(10)]
    assert where(jobs) == "dddhhhhddd", "4 cores, and a device that is 4 times as fast as one"
    assert [job.end_s for job in jobs] == [1, 2, 3, 4, 4, 4, 4, 4, 5, 6]


def test_a_chain_is_as_fast_as_its_device() -> None:
    simulated = Simulated(4.0, 1.0)
    jobs = [simulated.place()]
    for _ in range(5):
        jobs.append(simulated.place(jobs[-1:]))
    assert where(jobs) == "d" * 6 and jobs[-1].end_s == 6
    assert jobs[0].rank_s == 6 and jobs[-1].rank_s == 1, "the first one is the most urgent"


def test_the_clock_goes_on_where_the_program_waits() -> None:
    simulated = Simulated(4.0, 1.0)
    for _ in range(8):
        job = simulated.place()
        simulated.forecast.go_on(job.end_s)
        assert where([job]) == "d", "it is idle again"


def test_cores_are_shared_where_that_pays() -> None:
    simulated = Simulated(4.0, 9.0, most=4)
    assert [simulated.place().cores for _ in range(2)] == [4, 4]


def test_what_nobody_has_seen_is_tried_once() -> None:
    simulated = Simulated(None, None)
    assert where([simulated.place() for _ in range(2)]) == "hd"
    known = Simulated(None, 1e-3)
    assert where([known.place() for _ in range(6)]) == "hhhhdh", "then as if like what is known"


def test_a_kernel_that_nobody_has_seen_takes_what_its_bytes_take() -> None:
    simulated, data = Simulated(None, None), Data()
    kernel = simulated.ways[1]
    times = []
    for n in (10**6, 3 * 10**6):
        touches = [data.touch("x", np.zeros(n), "in"), data.touch("y", np.zeros(n), "inout")]
        job = Job(0, simulated.task, touches, {}, touches, Owner())
        job.size = float(n)
        times.append(simulated.forecast.seconds(kernel, job, 1))
    right = [START_S + 24 * n / CORE_BYTES_PER_S for n in (10**6, 3 * 10**6)]   # 8 in, 8 in and out
    assert [one.seconds for one in times] == pytest.approx(right)
    assert {one.source for one in times} == {"class"}


def test_what_kernels_have_moved_says_how_long_others_take() -> None:
    simulated, data = Simulated(None, None), Data()
    kernel = simulated.ways[1]

    def job_of(n: int) -> Job:
        touches = [data.touch("x", np.zeros(n), "in")]
        job = Job(0, simulated.task, touches, {}, touches, Owner())
        job.size, job.cores = float(n), 1
        return job

    for n in (1000, 2000, 3000, 4000, 5000) * 3:
        simulated.forecast.ended(job_of(n), kernel, 1e-3 + 1e-7 * 8 * n)
    other = Way("other", kernel.variant, kernel.lane)
    found = simulated.forecast.seconds(other, job_of(4000), 1)
    assert found.source == "rates" and found.seconds == pytest.approx(1e-3 + 3.2e-3, rel=1e-3)


def powers(x: ct.Row, every: ct.All) -> dict:  # type: ignore[type-arg]
    return {"y": ((every - x) ** 2).sum(axis=1).max() + x}


def test_a_function_of_items_that_nobody_has_seen_takes_what_it_computes() -> None:
    simulated, data = Simulated(None, None), Data()
    task = ct.Task("powers", ("y", "x", "every"), roles={"y": "writing"})
    task.variant(ct.each(powers))
    way = Way("powers", task.variants[0], simulated.lanes[1])
    x, every, y = np.zeros((10, 3)), np.zeros((50, 3)), np.zeros((10, 3))
    given = [("y", y, "out"), ("x", x, "in"), ("every", every, "in")]
    touches = [data.touch(*one) for one in given]
    job = Job(0, task, touches, {}, touches, Owner())
    job.size = 1.0
    # of each of 10 items: a difference, a square and a part of a sum 50 x 3 times; a largest one of
    # 50, and three sums in the end
    flops = 10 * (3 * 150 + 50 + 3)
    work = way.work(touches)
    assert work == Work(8.0 * (30 + 30 + 150), float(flops))
    found = simulated.forecast.seconds(way, job, 1)
    right = START_S + work.nbytes / CORE_BYTES_PER_S + flops / CORE_OPERATIONS_PER_S
    assert found.seconds == pytest.approx(right) and found.source == "class"


def test_what_cannot_be_traced_is_foreseen_by_its_bytes() -> None:
    simulated, data = Simulated(None, None), Data()
    task = ct.Task("powers", ("y", "x", "every"), roles={"y": "writing"})
    task.variant(ct.each(powers))
    given = [("x", np.zeros((10, 3)), "in"), ("every", np.zeros((9, 2)), "in")]
    touches = [data.touch(*one) for one in given]
    assert Way("powers", task.variants[0], simulated.lanes[1]).work(touches) == Work(8.0 * 48)


def test_decisions_are_the_same_every_time() -> None:
    told = []
    for _ in range(2):
        simulated, jobs = Simulated(2.5, 1.0), []
        draw = np.random.default_rng(3)
        for _ in range(40):
            jobs.append(simulated.place([job for job in jobs[-6:] if draw.random() < 0.3]))
        told.append([str(one) for one in simulated.forecast.decisions])
    assert told[0] == told[1] and len(told[0]) == 40


@pytest.fixture(name="pool")
def _pool() -> Iterator[Pool]:
    with Pool("cpu", 2, True, None, False, Estimates(None), SerialCommunicator()) as pool:
        yield pool


def test_a_lane_without_work_takes_over_what_is_late(pool: Pool) -> None:
    pool._lanes[1].cores = 0    # it is a device of its own, for once
    kernel = ct.Kernel.of("put", """
        __kernel void put(__global float *y, TILE(y), BOX) { CELL; HERE(y) = 1; }""")
    both = ct.Task("both", ("y",), roles={"y": "writing"})
    both.variant(kernel)
    open_, begun = threading.Event(), threading.Event()

    @both.variant
    def on_host(y: Any) -> None:
        begun.set()
        assert open_.wait(60)   # much later than foreseen
        y[...] = 1

    arrays = [np.zeros(8, np.float32) for _ in range(30)]
    key = TaskKey("both", "host", *_host_key(pool))
    for _ in range(3):
        pool._forecast._estimates.add(key, Case(32), 1e-6)
        for_device = TaskKey.of("both", "opencl", CPU)
        pool._forecast._estimates.add(for_device, Case(32, 1), 2e-6)
    futures = [pool.submit(both, array) for array in arrays]
    assert begun.wait(60)
    until = time.monotonic() + 60
    while pool.report().n_stolen == 0 and time.monotonic() < until:
        time.sleep(0.01)
    open_.set()
    pool.wait(60)
    assert all(future.exception() is None for future in futures)
    assert all(array.all() for array in arrays)


def _host_key(pool: Pool) -> tuple[str, str]:
    key = Way("x", ct.task(int).variants[0], pool._lanes[0]).key
    return key.device, key.driver


def pausing(pool: Pool) -> Callable[[float], ct.TaskFuture]:
    """Has a task wait so many seconds, of which nothing says how long it takes."""
    def pause(seconds: float) -> None:
        time.sleep(seconds)

    task = ct.Task("pause", ("seconds",), size=lambda seconds: 1.0)
    task.variant(pause)
    return lambda seconds: pool.submit(task, seconds)


@pytest.fixture
def one_core() -> Iterator[Pool]:
    with Pool((), 1, True, None, False, Estimates(None), SerialCommunicator()) as pool:
        yield pool


@pytest.mark.parametrize("all_tasks", [False, True])
def test_what_has_ended_is_learnt_while_somebody_waits(
    one_core: Pool, all_tasks: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pause, was_over, refresh = pausing(one_core), list[bool](), Forecast.refresh

    def noted(forecast: Forecast) -> None:
        was_over.append(future.done())
        refresh(forecast)

    monkeypatch.setattr(Forecast, "refresh", noted)
    for seconds in (*[1e-4] * 10, *[1e-2] * 20):
        future = pause(seconds)
        one_core.wait() if all_tasks else future.result()
    assert future.job.seconds > 5e-3, "foreseen by the newest ones"
    assert was_over and not all(was_over), "learnt when the task was on its way"


def test_what_has_ended_is_learnt_although_nobody_waits(one_core: Pool) -> None:
    """For so long that twice as many executions have ended."""
    pause = pausing(one_core)
    for seconds in (*[1e-4] * 10, *[1e-2] * 40):
        future = pause(seconds)
        assert future.exception(60) is None     # which does not learn
    assert future.job.seconds > 5e-3
