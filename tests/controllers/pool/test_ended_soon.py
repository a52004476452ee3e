# SPDX-License-Identifier: MIT
"""Kernels of which the end comes soon: who waits for one ends it, in place of a thread."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from idle_lanes import more, wait_until_idle
from mpi_jobs import HANGS_S

import controllers as ct
from controllers.controller.commands import Commands
from controllers.device.event import UNDER_WAY
from controllers.pool import crew
from controllers.pool.job import Job, TaskFuture
from controllers.pool.launched import Launched
from controllers.pool.pool import Pool


class Waits:
    """A pool of which who submits a kernel is the only one that knows of it, until `woken`."""

    def __init__(self, pool: Pool, patch: pytest.MonkeyPatch) -> None:
        self.pool, self.lane, self.did = pool, pool._lanes[1], list[threading.Thread]()
        self._attend, self._do = pool._crew.attend, pool._crew._do
        self.before: Callable[[], object] = lambda: None    # a job is done

        def noted(job: Job) -> None:
            self.did.append(threading.current_thread())
            self.before()
            self._do(job)

        patch.setattr(pool._crew, "_do", noted)
        patch.setattr(pool._crew, "attend", lambda lane: None)

    def begun(self, y: Any, by: float = 1) -> TaskFuture:
        """The future of a kernel that was enqueued just now."""
        wait_until_idle(self.lane)
        future = self.pool.submit(more, y, by)
        assert self.lane.begun is future.job and not future.done()
        return future

    def woken(self) -> None:
        with self.pool._lock:
            self._attend(self.lane)


@pytest.fixture(params=[True, False])
def pool(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Pool]:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    monkeypatch.setattr(crew, "REST_S", HANGS_S)    # until leases are given back
    monkeypatch.setattr(crew, "POLLED_S", HANGS_S)
    with ct.tasks("cpu/1", cores=2, zero_copy=request.param) as made:
        yield made


@pytest.fixture
def y(pool: Pool) -> Any:
    """An array for which the kernel was launched before, as often as it is 1."""
    found = np.zeros(9, np.float32)
    pool.submit(more, found, 1).exception(HANGS_S)
    return found


def test_who_waits_ends_a_kernel_that_nobody_else_has(
    pool: Pool, y: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, here = Waits(pool, monkeypatch), threading.main_thread()
    for _ in range(3):
        future = waits.begun(y)
        pool.wait_for(future)
        assert future.done() and future.exception() is None
    assert waits.did == [here] * 3 and not waits.lane.running and pool._share._budget._free == 2
    future = waits.begun(y)
    waits.woken()
    assert future.exception(HANGS_S) is None
    assert len(waits.did) == 4 and waits.did[3] is not here
    pool.wait()
    assert (y == 5).all() and pool._ends.n_over == 5


def test_it_is_left_to_a_thread_if_it_takes_longer_or_is_to_take_longer(
    pool: Pool, y: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, asked = Waits(pool, monkeypatch), list[float]()
    future = waits.begun(y)
    monkeypatch.setattr(Launched, "ends_within", lambda launched, s: asked.append(s))
    pool.wait_for(future)
    monkeypatch.setattr(crew, "POLLED_S", future.job.seconds / 2)
    pool.wait_for(future)
    was_done = future.done()
    waits.woken()
    assert future.exception(HANGS_S) is None and threading.main_thread() not in waits.did
    assert asked == [HANGS_S] and not was_done


def test_it_is_left_to_a_thread_where_other_threads_have_something_to_do(
    pool: Pool, y: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, free = Waits(pool, monkeypatch), threading.Event()
    future = waits.begun(y)
    function = pool.submit(lambda x: free.wait(HANGS_S), np.zeros(3))
    pool._crew.end_soon(future.job)
    was_done = future.done()
    free.set()
    assert function.exception(HANGS_S) is None and not was_done
    waits.woken()
    assert future.exception(HANGS_S) is None


def test_one_looks_again_and_again_until_it_has_ended_but_not_for_ever() -> None:
    class Counted:
        command_execution_status = UNDER_WAY
        n_looks = 0

        def __getattribute__(self, name: str) -> Any:
            if name == "command_execution_status":
                Counted.n_looks += 1
                return UNDER_WAY if Counted.n_looks < 9 else 0
            return super().__getattribute__(name)

    launched = Launched.__new__(Launched)
    launched._event = Counted()     # type: ignore[assignment]
    assert not launched.ends_within(0.0) and launched.ends_within(HANGS_S)
    assert Counted.n_looks == 9
    launched._event = None      # an error
    assert launched.ends_within(0.0)


def test_nobody_does_another_job_there_meanwhile_and_a_thread_does_it_after_that(
    pool: Pool, y: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, others, left = Waits(pool, monkeypatch), list[TaskFuture](), list[int]()
    future, z = waits.begun(y), np.zeros(9, np.float32)

    def submit() -> None:
        waits.before = lambda: None
        others.append(pool.submit(more, z, 2))
        waits.lane.ring()   # somebody comes, and looks
        while not waits.lane.bells and waits.lane.ready:
            time.sleep(1e-3)
        left.append(len(waits.lane.ready))

    waits.before = submit
    pool.wait_for(future)
    assert future.done() and others[0].exception(HANGS_S) is None
    assert left == [1] and len(waits.did) == 2 and waits.did[1] is not threading.main_thread()


def test_what_follows_is_begun_by_who_waits_and_ended_by_a_thread_after_that(
    pool: Pool, y: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits, others = Waits(pool, monkeypatch), list[TaskFuture]()
    future, lane = waits.begun(y), waits.lane
    begin, over = lane.side.begin_beside, list[bool]()

    def begun(job: Job, *, in_turn: bool) -> bool:
        found = begin(job, in_turn=in_turn)
        lane.ring()     # somebody comes, and looks
        pool._crew.end_soon(others[0].job)
        time.sleep(0.02)
        over.append(others[0].done())
        return found

    def submit() -> None:
        waits.before = lambda: None
        others.append(pool.submit(more, y, 1))

    waits.before = submit
    monkeypatch.setattr(lane.side, "begin_beside", begun)
    monkeypatch.setattr(pool._crew, "attend", waits._attend)
    pool.wait_for(future)
    assert future.done() and others[0].exception(HANGS_S) is None
    assert over == [False] and waits.did[0] is threading.main_thread() is not waits.did[1]
    pool.wait()
    assert (y == 3).all() and pool._share._budget._free == 2


def test_what_fails_is_told_by_whoever_ends_it(
    pool: Pool, y: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = Waits(pool, monkeypatch)

    def fail(commands: Commands, *given: Any) -> Any:
        raise RuntimeError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(Commands, "issue", fail)
        future = waits.begun(y)
    pool.wait_for(future)
    error = future.exception(0)
    assert isinstance(error, ct.TaskError) and "no room" in str(error.__cause__)
    assert waits.did == [threading.main_thread()] and not waits.lane.running


def test_ctrl_c_meanwhile_is_raised_and_the_device_does_more_after_it(
    pool: Pool, y: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = Waits(pool, monkeypatch)
    future, side = waits.begun(y), waits.lane.side

    def interrupted(*given: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(side, "run", interrupted)
        with pytest.raises(KeyboardInterrupt):
            pool.wait_for(future)
    assert isinstance(future.exception(0), ct.TaskError) and not waits.lane.running
    z = np.zeros(9, np.float32)
    assert pool.submit(more, z, 3).exception(HANGS_S) is None
    pool.wait()
    assert (z == 3).all()


def test_a_lease_that_who_waits_has_left_idle_is_given_back(
    pool: Pool, y: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though the thread that is to do that had just found nothing to give."""
    waits, rest = Waits(pool, monkeypatch), pool._share.rest
    looks, begun, gave, ended = (threading.Event() for _ in range(4))

    def at_the_wrong_time(idle: bool = True) -> bool:
        looks.set()
        assert begun.wait(HANGS_S)
        found = rest()
        gave.set()
        assert ended.wait(HANGS_S)
        return found

    monkeypatch.setattr(crew, "REST_S", 1e-3)
    with monkeypatch.context() as patch:
        patch.setattr(pool._share, "rest", at_the_wrong_time)
        patch.setattr(pool._crew, "attend", waits._attend)
        pool.submit(more, y, 1).exception(HANGS_S)      # after which its thread looks so soon
        assert looks.wait(HANGS_S)
        future = pool.submit(more, y, 1)
        assert waits.lane.begun is future.job
        begun.set()
        assert gave.wait(HANGS_S)
        pool.wait_for(future)
        assert future.done() and waits.did[-1] is threading.main_thread()
    assert any(pool._share._kept._idle.values())
    ended.set()
    until_s = time.monotonic() + HANGS_S
    while any(pool._share._kept._idle.values()):
        assert time.monotonic() < until_s
        time.sleep(1e-3)
