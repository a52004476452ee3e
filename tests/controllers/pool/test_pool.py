# SPDX-License-Identifier: MIT
"""Pools: what tasks give, in which order, and what becomes of those that fail or are cancelled."""
from __future__ import annotations

import gc
import threading
import tracemalloc
import weakref
from collections import deque
from collections.abc import Iterator
from concurrent.futures import CancelledError, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import controllers as ct
from controllers.pool.job import TaskFuture
from controllers.pool.pool import Pool


@pytest.fixture(name="pool")
def _pool() -> Iterator[Pool]:
    with ct.tasks((), cores=2) as pool:
        yield pool


@ct.task(roles={"y": "updating"})
def add(y: Any, x: Any) -> float:
    y += x
    return float(y.sum())


class Gate:
    """A task that others of the test wait for."""

    def __init__(self) -> None:
        self.begun, self.open = threading.Event(), threading.Event()

    def __call__(self, *arrays: Any) -> None:
        self.begun.set()
        assert self.open.wait(60)


def test_a_future_gives_what_the_function_returns(pool: Pool) -> None:
    a = np.ones(4)
    future = pool.submit(add, a, 2)
    assert future.result() == 12 and future.done() and future.exception() is None
    assert a.tolist() == [3] * 4
    told: list[Any] = []
    future.add_done_callback(told.append)
    assert told == [future]
    assert {f.result() for f in as_completed([pool.submit(int, "7"), pool.submit(int, "8")])} == {
        7, 8
    }  # fmt: skip


def test_a_future_is_running_from_the_start_of_its_task_to_its_end(pool: Pool) -> None:
    gate, a = Gate(), np.ones(4)
    first, second = pool.submit(gate, ct.updating(a)), pool.submit(add, a, 2)
    assert gate.begun.wait(60)
    assert first.running() and not second.running() and not first.cancel()
    gate.open.set()
    assert second.result(60) == 12
    assert not first.running() and not second.running() and first.done()


@pytest.mark.parametrize("asks", [TaskFuture.result, TaskFuture.exception])
def test_who_has_asked_how_a_task_ended_finds_its_cores_idle(asks: Any, pool: Pool) -> None:
    for _ in range(3):
        future = pool.submit(lambda: None)
        asks(future)
        assert pool._forecast.clock_s == future.job.end_s > 0


def test_tasks_that_touch_the_same_cells_keep_their_order(pool: Pool) -> None:
    a, gate = np.zeros(6), Gate()
    pool.submit(gate, ct.updating(a[:3]))
    after = pool.submit(add, a[2:4], 1)
    other = pool.submit(add, a[3:], 5)      # after `after`, which has the cell 3
    free = pool.submit(add, a[5:], 1)
    beside = pool.submit(add, np.zeros(2), 1)
    assert beside.result(60) == 2
    assert gate.begun.wait(60) and not after.done() and not other.done() and not free.done()
    gate.open.set()
    pool.wait()
    assert a.tolist() == [0, 0, 1, 6, 5, 6]


def test_readers_do_not_wait_for_each_other(pool: Pool) -> None:
    a, gate = np.zeros(6), Gate()
    pool.submit(gate, a)
    assert pool.submit(np.sum, a).result(60) == 0
    written = pool.submit(add, a, 1)
    assert not written.done()
    gate.open.set()
    assert written.result(60) == 6


def test_a_future_as_an_argument_stands_for_its_result(pool: Pool) -> None:
    gate = Gate()
    pool.submit(gate, ct.updating(a := np.zeros(3)))
    total = pool.submit(add, a, pool.submit(int, "4"))
    twice = pool.submit(lambda x: 2 * x, x=total)
    gate.open.set()
    assert twice.result(60) == 24
    with ct.tasks(()) as other, pytest.raises(ValueError, match="another pool"):
        other.submit(int, twice)


def test_what_is_read_is_read_only(pool: Pool) -> None:
    a = np.zeros(3)
    error = pool.submit(lambda x: x.fill(1), a).exception(60)
    assert isinstance(error, ct.TaskError) and isinstance(error.__cause__, ValueError)
    a.flags.writeable = False
    with pytest.raises(ValueError, match="'y' is updated and can only be read"):
        pool.submit(add, a, 1)


def test_an_error_says_the_task_and_is_that_of_what_reads_from_it(pool: Pool) -> None:
    a, b = np.zeros(3), np.zeros(3)
    first = pool.submit(add, a, "x")
    reads = pool.submit(add, b, a)
    of_result = pool.submit(str, reads)
    writes = pool.submit(np.copyto, ct.writing(a), np.ones(3))
    assert writes.result(60) is None and a.tolist() == [1] * 3
    error = first.exception(60)
    assert isinstance(error, ct.TaskError) and (error.task, error.variant) == ("add", "host")
    assert "task 'add' (host) failed on the host" in str(error) and error.device == "the host"
    for later in (reads, of_result):
        with pytest.raises(ct.TaskError, match="was not done, as it reads .* 'add'"):
            later.result(60)
    assert pool.submit(add, b, 1).exception(60) is not None, "b is spoilt until it is written"
    assert pool.submit(np.copyto, ct.writing(b), a).exception(60) is None
    assert pool.submit(add, b, 1).result(60) == 6


def test_wait_raises_the_first_error_that_nobody_has_seen(pool: Pool) -> None:
    a = np.zeros(3)
    assert pool.submit(add, a, "x").exception(60)
    pool.wait()
    pool.submit(add, a, "y")
    with pytest.raises(ct.TaskError, match="'add'"):
        pool.wait()
    assert pool.submit(add, a, 1).result(60) == 3, "after wait nothing is spoilt"
    with pytest.raises(ct.TaskError, match="division"), ct.tasks(()) as other:
        other.submit(lambda: 1 / 0)


def test_cancelling_takes_what_reads_from_it_along(pool: Pool) -> None:
    a, gate = np.zeros(3), Gate()
    started = pool.submit(gate, ct.updating(a))
    assert gate.begun.wait(60) and not started.cancel()
    second = pool.submit(add, a, 1)
    third = pool.submit(add, a, 10)
    put = pool.submit(np.copyto, ct.writing(a), np.ones(3))
    assert second.cancel() and second.cancelled() and third.cancelled() and not put.done()
    assert second.cancel(), "once more"
    with pytest.raises(CancelledError):
        third.result()
    gate.open.set()
    pool.wait()
    assert a.tolist() == [1, 1, 1] and not put.cancel()


def test_a_ready_task_is_cancelled_too(pool: Pool) -> None:
    gates = [Gate(), Gate()]
    for gate in gates:
        pool.submit(gate)
        assert gate.begun.wait(60)
    ready = pool.submit(int, "1")
    assert ready.cancel() and ready.cancelled()
    for gate in gates:
        gate.open.set()
    assert pool.submit(int, "2").result(60) == 2


def test_timeouts_leave_the_task_alone(pool: Pool) -> None:
    gate = Gate()
    future = pool.submit(gate)
    with pytest.raises(TimeoutError):
        future.result(0.01)
    with pytest.raises(TimeoutError, match="1 tasks are not over after"):
        pool.wait(0.01)
    gate.open.set()
    future.result(60)


def test_a_task_may_submit_but_not_wait(pool: Pool) -> None:
    gate = Gate()

    def outer() -> Any:
        inner = pool.submit(gate)
        with pytest.raises(RuntimeError, match="not possible within a task"):
            inner.result()
        with pytest.raises(RuntimeError, match="not possible within a task"):
            pool.wait()
        gate.open.set()
        return inner

    assert pool.submit(outer).result(60).result(60) is None


def test_cores_are_told_and_held(pool: Pool) -> None:
    wide = ct.task(lambda *, cores: cores, name="wide", least=2, most=8)
    assert pool.submit(wide).result(60) == 2
    gate = Gate()
    pool.submit(gate)
    assert gate.begun.wait(60)
    future = pool.submit(wide)
    narrow = pool.submit(ct.task(lambda *, cores: cores, name="narrow", most=8))
    gate.open.set()
    assert future.result(60) == 2 and narrow.result(60) in (1, 2)


def test_map_keeps_the_order_and_cuts_rows(pool: Pool) -> None:
    a = np.arange(10.0).reshape(5, 2)
    assert list(pool.map(np.sum, [a[:1], a[1:3]])) == [1, 14]
    assert [len(part) for part in pool.map(np.array, a, rows=2)] == [2, 2, 1]
    list(pool.map(add, ct.updating(a), 1, rows=3))
    assert a.sum() == 55
    with pytest.raises(ValueError, match="rows=2 cuts arrays of as many rows"):
        pool.map(add, 1, 2, rows=2)


def test_map_reduce_has_one_order(pool: Pool) -> None:
    words = pool.map_reduce(str, lambda a, b: f"({a}{b})", range(5))
    assert words.result(60) == "(((01)(23))4)"
    values = np.random.default_rng(1).normal(size=1000)
    totals = {
        pool.map_reduce(np.sum, lambda a, b: a + b, values, rows=7).result(60) for _ in range(5)
    }
    assert len(totals) == 1 and abs(totals.pop() - values.sum()) < 1e-9
    with pytest.raises(ValueError, match="nothing to reduce"):
        pool.map_reduce(str, max, [])


def test_arguments_and_variants_are_checked(pool: Pool) -> None:
    a = np.zeros(3)
    with pytest.raises(TypeError, match="task 'add': missing a required argument: 'x'"):
        pool.submit(add, a)
    with pytest.raises(ValueError, match="has the variants none"):
        pool.submit(ct.Task("nothing"))
    kernel = ct.Kernel.of("k", "__kernel void k(__global float *u, TILE(u), BOX) { CELL; }")
    for_gpus = ct.Task("far", ("u",), roles={"u": "writing"})
    for_gpus.variant(kernel, on="gpu")
    with pytest.raises(ValueError, match="opencl .on gpu., of which none can be done on the host"):
        pool.submit(for_gpus, a)
    with pytest.raises(TypeError, match="does not say what it is called with"):
        ct.task(kernel)
    with pytest.raises(ValueError, match="kernels .* for devices"):
        for_gpus.variant(kernel, on="host")
    with pytest.raises(ValueError, match="one whole device, got least=2"):
        for_gpus.variant(kernel, least=2)
    with pytest.raises(ValueError, match="no parameter 'v'"):
        for_gpus.variant(kernel, over="v")
    with pytest.raises(ValueError, match="the role of 'u'.*'eating'"):
        ct.Task("t", ("u",), roles={"u": "eating"})
    with pytest.raises(TypeError, match="a task"):
        ct.task(7)  # type: ignore[call-overload]
    shared = np.lib.stride_tricks.as_strided(a, (2,), (8,))
    pool.submit(add, a, 1)
    with pytest.raises(ValueError, match="shares memory with one of"):
        pool.submit(add, shared, 1)


def test_a_pool_forgets_arrays_that_nobody_has(pool: Pool) -> None:
    a = np.zeros(3)
    gone = weakref.ref(a)
    pool.submit(add, a, 1).result(60)
    del a
    pool.submit(add, np.zeros(3), 1).result(60)
    gc.collect()
    assert gone() is None
    for _ in range(300):
        pool.submit(add, np.zeros(3), 1)
    pool.wait()
    assert len(pool._submissions.data.all()) == 0


def test_a_closed_pool_takes_nothing_and_an_error_ends_the_block() -> None:
    gate = Gate()
    with pytest.raises(KeyError), ct.tasks((), cores=1) as pool:
        started = pool.submit(gate)
        assert gate.begun.wait(60)
        waiting = pool.submit(int, "1")
        gate.open.set()
        raise KeyError
    assert started.done() and waiting.done()
    with pytest.raises(RuntimeError, match="is closed"):
        pool.submit(int, "1")
    pool.close()


def test_the_report_and_the_timeline_tell_of_tasks(pool: Pool, tmp_path: Path) -> None:
    for _ in range(3):
        pool.submit(add, np.zeros(3), 1)
    pool.wait()
    report = pool.report()
    (one,) = report.tasks
    assert (one.task, one.where, one.count, one.failed) == ("add", "the host", 3, 0)
    assert "3 jobs were done, 0 elsewhere" in str(report)
    assert "0 add: host on the host (ends at" in report.explain()
    assert report.as_dict()["n_jobs"] == 3
    pool.save_timeline(tmp_path / "tasks.json")
    assert "add (host)" in (tmp_path / "tasks.json").read_text()


@pytest.mark.whole
def test_many_small_tasks_leave_nothing_behind() -> None:
    """What Python has allocated after 10,000 is what it had after 2,000, but for 5 bytes each."""
    shared = [np.zeros(4) for _ in range(8)]
    with ct.tasks((), cores=2) as pool:

        def do(n: int) -> int:
            for number in range(n // 2):
                pool.submit(add, shared[number % 8], np.ones(4))
                pool.submit(add, np.zeros(4), shared[number % 8])
            pool.wait()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        pool._ends.newest = deque(maxlen=16)      # of which the report is made
        pool._forecast._decided = deque(maxlen=16)
        tracemalloc.start()
        try:
            before, after = do(2_000), do(8_000)
        finally:
            tracemalloc.stop()
    assert after - before < 40_000
