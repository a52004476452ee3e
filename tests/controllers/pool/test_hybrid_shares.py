# SPDX-License-Identifier: MIT
"""Shares follow from estimates: all sides end together, and one alone where that is as good."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np
import pytest

import controllers as ct
from controllers.arbiter import Arbiter, Want, node_cores
from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case
from controllers.pool import order
from controllers.pool.crew import Crew
from controllers.pool.hybrid import tails
from controllers.pool.hybrid.planning import MOST_UNITS
from controllers.pool.hybrid.side import Side
from controllers.pool.hybrid.sums import Sums
from controllers.pool.job import Job
from controllers.pool.pool import Pool
from controllers.pool.way import Way
from controllers.pool.ways import Ways
from hitmap.comm import SerialCommunicator

N_ROWS, WIDTH = 128, 8
NBYTES = N_ROWS * WIDTH * 8

rows_on_host: list[int] = []


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What other processes do on this machine is nothing to these tests."""
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))


mark = ct.Task("mark", ("y",), roles={"y": "updating"})


@mark.variant
def mark_on_host(y: Any) -> None:
    rows_on_host.append(len(y))
    y += 1


mark.variant(ct.Kernel.of("mark", """
    __kernel void mark(__global double *y, TILE(y), BOX) { CELL; HERE(y) += 1; }"""))


PUT = ct.Kernel.of("put", """
    __kernel void put(__global double *y, TILE(y), BOX) { CELL; HERE(y) = 1; }""",
                   roles={"y": "writing"})  # fmt: skip


PUTS = ct.Task("mark", ("y",), roles={"y": "writing"})
for one in mark.variants:
    PUTS.variant(one.body)


@contextmanager
def known(
    host_s: float | None, device_s: float, cores: int = 2, *, stealing: bool = False,
    zero_copy: bool = True,
) -> Iterator[Pool]:  # fmt: skip
    """A pool of cores, of which a device has one, that knows how long the whole takes each side."""
    estimates = Estimates(None)
    with Pool("cpu/1", cores, zero_copy, None, False, estimates, SerialCommunicator()) as pool:
        for variant, lane, seconds in zip(mark.variants, pool._lanes, (host_s, device_s)):
            way = Way("mark", variant, lane)
            for part in (0.25, 0.5, 1) if seconds is not None else ():
                for _ in range(3):
                    estimates.add(way.key, Case(part * NBYTES), part * (seconds or 0))
        rows_on_host.clear()
        if stealing:
            yield pool
            return
        pool._crew._stolen = lambda lane: None      # since no estimate here is true, ...
        with patch.object(tails, "MOST_TAIL", 0.0):     # ... or sure, once a task was done
            yield pool


@pytest.mark.parametrize(("host_s", "device_s", "rows"), [
    (1.0, 1.0, 64), (3.0, 1.0, 32), (1.0, 3.0, 96), (7.0, 1.0, 16), (1.0, 100.0, 128),
    (100.0, 1.0, 0), (None, 1.0, 2),
])  # fmt: skip
def test_sides_are_foreseen_to_end_together(
    host_s: float | None, device_s: float, rows: int
) -> None:
    y = np.zeros((N_ROWS, WIDTH))
    with known(host_s, device_s) as pool:
        pool.submit(ct.hybrid(mark, cut={"y": ct.Row}), y).result()
    assert rows_on_host == [rows] * (rows > 0) and (y == 1).all()


def test_cores_of_the_host_are_one_side() -> None:
    y = np.zeros((N_ROWS, WIDTH))
    with known(3.0, 1.0, cores=4) as pool:      # three cores for functions, each a third as fast
        pool.submit(ct.hybrid(mark, cut={"y": ct.Row}), y).result()
    assert rows_on_host == [21, 21, 21], "each as many, as rows are not divided"


def test_shares_are_counted_in_parts_that_are_small_to_the_slower_side_too() -> None:
    with known(10.0, 1.0) as pool:
        sides = pool._composites._sides
        of = sides.of(Ways(pool._lanes).of(mark, (), has_futures=False), NBYTES)
        ends = [sides.of_rows(one, NBYTES, (), (), MOST_UNITS, 512, 0.0) for one in of]
        counts = sides.counts(of, ends, MOST_UNITS, None)
    assert max(10 * counts[0], counts[1]) <= 1.02 * MOST_UNITS / 1.1


def test_a_side_that_is_slower_just_now_takes_longer_and_its_times_are_not_asked_for_anew() -> None:
    with known(3.0, 1.0) as pool:
        sides, way = pool._composites._sides, Way("mark", mark.variants[1], pool._lanes[1])
        side, ends = Side(way), []
        pool._forecast.known_s = asked = Mock(wraps=pool._forecast.known_s)
        for factor in (1.0, 1.5, 0.75):
            pool._forecast._of(way)._lately.factor = factor
            ends.append(sides.of_rows(side, NBYTES, (), (), 8, N_ROWS, 0.0))
    assert [end(0, 8) for end in ends] == pytest.approx([1.0, 1.5, 0.75], rel=0.1)
    assert [end(2, 4) for end in ends] == pytest.approx([0.25, 0.375, 0.1875], rel=0.1)
    assert asked.call_count == 8


def test_all_sides_begin_before_any_of_them_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen, begin, enter = list[str](), Crew.begin, order.enter

    def begun(crew: Crew, job: Job, way: Way) -> bool:
        seen.append("begun")
        return begin(crew, job, way)

    def entered(*given: Any) -> None:
        seen.append("noted")
        enter(*given)

    monkeypatch.setattr(Crew, "begin", begun)
    monkeypatch.setattr(order, "enter", entered)
    y = np.zeros((N_ROWS, WIDTH))
    with ct.tasks("cpu/1,1", cores=2) as pool:
        for n in range(3):
            seen.clear()
            pool.submit(ct.hybrid(mark, cut={"y": ct.Row}, shares=(1, 1)), y).result()
            assert seen[:4] == ["begun", "begun", "noted", "noted"] and (y == n + 1).all()


@pytest.mark.parametrize(("busy_s", "rows"), [(0.0, 64), (0.5, 96), (2.0, 128)])
def test_a_side_that_is_busy_gets_less_or_nothing(busy_s: float, rows: int) -> None:
    y = np.zeros((N_ROWS, WIDTH))
    with known(1.0, 1.0) as pool:
        pool._forecast._cores = [0.0, busy_s]       # of the host's functions, and of the device
        pool.submit(ct.hybrid(mark, cut={"y": ct.Row}), y).result()
    assert rows_on_host == [rows]


@pytest.mark.skipif(len(node_cores()) < 2, reason="both sides need a core")
def test_one_side_does_it_all_where_another_process_holds_the_other_one() -> None:
    n_all = len(node_cores())
    y, series = np.zeros((N_ROWS, WIDTH)), ct.series(PUTS, [slice(0, 64), slice(64, N_ROWS)])
    with known(1.0, 1.0) as pool, Arbiter() as other:
        with other.acquire([[Want(node_cores(), n_all - 1, n_all - 1)]]):
            pool.submit(ct.hybrid(mark, cut={"y": ct.Row}), y).result()
            assert not rows_on_host and (y == 1).all(), "a core is left, for the device"
            pool.submit(series, np.zeros_like(y)).result()
            assert not rows_on_host
        pool._share.rest()
        with other.acquire([[Want(node_cores(), n_all, n_all)]]):
            later = pool.submit(ct.hybrid(mark, cut={"y": ct.Row}, shares=(1, 1)), y)
        later.result()      # when they are free
        assert rows_on_host == [64]
        pool.submit(ct.hybrid(mark, cut={"y": ct.Row}), y).result()
        assert len(rows_on_host) == 2
    assert (y == 3).all()


def test_calls_of_a_series_are_divided_by_their_sizes() -> None:
    at = [slice(0, 8)] * 4 + [slice(0, 64)] * 2
    total = np.zeros((64, WIDTH))
    with known(1.0, 0.5) as pool:
        assert pool.submit(ct.series(PUTS, at), total).exception(60) is None
    assert sorted(rows_on_host) == [8] * 4, "128 of 160 rows are over sooner than all on one side"


@pytest.mark.parametrize(("add_s", "n_on_host"), [(None, 2), (9.0, 0)])
def test_one_side_does_it_all_where_the_host_has_to_add_for_longer(
    add_s: float | None, n_on_host: int
) -> None:
    total = np.zeros((N_ROWS, WIDTH))
    with known(3.0, 1.0) as pool:
        cells = Sums.of(total.dtype).cells
        way = Way(cells.name, cells.variants[0], pool._lanes[0])
        for _ in range(3 if add_s else 0):
            pool._forecast._estimates.add(way.key, Case(NBYTES / 4), add_s or 0.0)
        pool.submit(ct.series(PUTS, [slice(16 * k, 16 * k + 16) for k in range(8)]), total).result()
    assert len(rows_on_host) == n_on_host


def test_a_side_without_work_takes_calls_that_wait_for_another_one() -> None:
    at = [slice(8 * k, 8 * k + 8) for k in range(8)]
    done: list[Any] = []
    with known(1e-3, 1e-3, stealing=True) as pool:
        pool._lanes[1].cores = 0        # as an accelerator, or it waits for a core

        def stands_still(y: Any) -> None:   # until the device has done all others
            done.append(len(y))
            limit = time.monotonic() + 60
            while n_on_device() + len(done) < len(at) and time.monotonic() < limit:
                time.sleep(1e-3)
            y[...] = 1

        def n_on_device() -> int:
            tasks = pool.report().tasks
            return sum(one.count for one in tasks if (one.task, one.variant) == ("mark", "opencl"))

        put = ct.Task("mark", ("y",), roles={"y": "writing"})
        put.variant(stands_still)
        put.variant(PUT)
        total = np.zeros((64, WIDTH))
        pool.submit(ct.series(put, at), total).result()
        assert len(done) in (1, 2), "as many as there are cores, or the device was sooner"
        assert pool.report().n_stolen >= 2 and n_on_device() == len(at) - len(done)
    assert (total == 1).all()


def test_what_is_replicated_is_foreseen_to_be_moved_to_each_memory_alone() -> None:
    y = np.zeros((N_ROWS, WIDTH))
    with known(1e-3, 1e-6, zero_copy=False) as pool:
        first, second = (pool.submit(ct.replicated(mark), y) for _ in range(2))
        took = [[one.job.seconds for one in future.parts] for future in (first, second)]
        there_s = pool._forecast.there_s(pool._lanes[1], NBYTES)
    assert took[0] == pytest.approx([1e-6 + there_s, 1e-3])
    assert took[1] == pytest.approx([1e-6, 1e-3]), "both have what the first one has made"
    assert (y == 2).all()


@pytest.mark.parametrize(("host_s", "rows"), [(1.05, 64), (1.6, 49)])
def test_shares_stay_where_others_would_hardly_be_better(host_s: float, rows: int) -> None:
    ends = [lambda first, last, s=s: s * (last - first) for s in (1.0, 1.0)]
    with known(1.0, 1.0) as pool:
        sides = pool._composites._sides
        of = sides.of(Ways(pool._lanes).of(mark, (), has_futures=False), 1.0)
        assert sides.counts(of, ends, N_ROWS, None) == [64, 64]
        ends[0] = lambda first, last: host_s * (last - first)
        assert sides.counts(of, ends, N_ROWS, None)[0] == rows


@pytest.mark.parametrize(("n_slow", "rows"), [(1, 2), (2, 2), (3, 0)])
def test_a_side_that_was_slow_by_chance_is_tried_again(n_slow: int, rows: int) -> None:
    ends = [lambda first, last, s=s: s * (last - first) for s in (999.0, 1.0)]
    with known(None, 1.0) as pool:
        sides = pool._composites._sides
        of = sides.of(Ways(pool._lanes).of(mark, (), has_futures=False), 1.0)
        for _ in range(n_slow):
            pool._forecast.learn(of[0].way.key, Case(NBYTES), 999.0)
        assert sides.counts(of, ends, N_ROWS, None) == [rows, N_ROWS - rows]


def test_a_side_that_was_left_out_for_long_is_tried_again() -> None:
    ends = [lambda first, last, s=s: s * (last - first) for s in (99.0, 1.0)]
    with known(99.0, 1.0) as pool:
        sides = pool._composites._sides
        of = sides.of(Ways(pool._lanes).of(mark, (), has_futures=False), 1.0)
        assert not any(map(pool._forecast.is_new, [one.way for one in of]))
        host = [sides.counts(of, ends, N_ROWS, None)[0] for _ in range(6)]
        assert host == [0, 0, 0, 1, 1, 1], "a row is foreseen to take less than all others"
        ends[0] = lambda first, last: 3.0 * (last - first)
        assert sides.counts(of, ends, N_ROWS, None) == [32, 96]
        ends[0] = lambda first, last: 999.0 * (last - first)
        assert not any(sides.counts(of, ends, N_ROWS, None)[0] for _ in range(9)), "it would wait"


def test_rows_that_are_where_they_are_needed_are_foreseen_to_cost_nothing() -> None:
    y = np.zeros((N_ROWS, WIDTH))
    with known(1.0, 1.0, zero_copy=False) as pool:
        pool.submit(ct.hybrid(mark, cut={"y": ct.Row}, shares=(1, 3)), y).exception()
        touch = pool._submissions.data.touch("y", y, "updating")
        host, device = (pool._forecast.moves_upto([touch], lane, 4) for lane in pool._lanes)
    assert host[0] == host[1] == 0 and 0 < host[2] < host[3] < host[4]
    assert device[0] == 0 and 0 < device[1] == device[2] == device[4]


def test_the_part_of_a_device_is_entered_first() -> None:
    y = np.zeros((N_ROWS, WIDTH))
    with known(1.0, 1.0, cores=4) as pool:
        pool.submit(ct.hybrid(mark, cut={"y": ct.Row}), y).result()
        entered = [one.way for one in pool.report().decisions]
    assert "the host" not in entered[0] and all("the host" in way for way in entered[1:])


@pytest.mark.parametrize("n_times", [1, 2])
def test_the_first_execution_of_a_kernel_counts_if_no_other_one_follows(n_times: int) -> None:
    y, estimates = np.zeros((N_ROWS, WIDTH)), Estimates(None)
    task = ct.Task("first", ("y",), roles={"y": "updating"})
    task.variant(mark.variants[1].body)
    with Pool("cpu/1", 2, True, None, False, estimates, SerialCommunicator()) as pool:
        for _ in range(n_times):
            pool.submit(task, y).result()
        way = Way("first", task.variants[0], pool._lanes[1])
        known_s = pool._forecast.known_s(way, NBYTES, 1)
    assert (known_s is None) == (n_times == 1)
    (times,) = estimates.history(way.key).cases.values()
    assert len(times.executions) == 1


def test_what_a_device_gives_sets_off_for_the_host_before_it_goes_on() -> None:
    at = [slice(8 * k, 8 * k + 8) for k in range(4)]
    total, task = np.zeros((32, WIDTH)), ct.Task("put", ("y",), roles={"y": "writing"})
    task.variant(PUT)
    with known(None, 1.0, zero_copy=False) as pool:
        sent: list[Any] = []
        copied: list[bool] = []
        memories: Any = pool._memories
        send, copy = memories.send, memories._copy

        def seen(touches: Any, memory: int) -> None:
            send(touches, memory)
            sent.extend(touch.datum for touch in touches if touch.datum.coming)

        def noted(datum: Any, *given: Any, to_device: bool) -> None:
            copied.append(to_device)
            copy(datum, *given, to_device=to_device)

        memories.send, memories._copy = seen, noted
        pool.submit(ct.series(task, at), total).result()
        assert len(sent) == 4 and copied == [] and not any(datum.coming for datum in sent)
        assert pool.report().moved_nbytes == (0, total.nbytes)
    assert (total == 1).all()


def test_what_is_written_anew_waits_for_old_cells_on_their_way() -> None:
    y = np.zeros((N_ROWS, WIDTH))
    with known(None, 1.0, zero_copy=False) as pool:
        pool.submit(ct.hybrid(mark, cut={"y": ct.Row}, shares=(0, 1)), y).exception()
        touch = pool._submissions.data.touch("y", y, "out")
        pool._memories.send([touch], 1)
        assert len(touch.datum.coming) == 1
        pool._memories.before([touch], 0)
        assert not touch.datum.coming and (y == 1).all()


def test_functions_leave_a_device_the_cores_that_its_kernels_take() -> None:
    met = threading.Barrier(2)
    with known(1.0, 1.0) as pool:
        host, device = pool._lanes
        busy: Any = device.running
        with pool._lock:
            busy[ct] = 0.0
        alone = [pool.submit(lambda: len(host.running)) for _ in range(4)]
        assert [one.result(60) for one in alone] == [1] * 4
        waiting = [pool.submit(met.wait, 60) for _ in range(2)]
        with pool._lock:
            del busy[ct]
            pool._crew._leave_cores(device)
        assert sorted(one.result(60) for one in waiting) == [0, 1]


PARTS = [slice(16 * k, 16 * k + 16) for k in range(8)]


def outcomes_of(pool: Pool) -> dict[tuple[int, ...], list[float]]:
    sides = pool._composites._sides
    of = sides.of(Ways(pool._lanes).of(PUTS, (), has_futures=False), NBYTES / 8)
    size = 8 * 16 * WIDTH * 8.0
    return sides.outcomes(of, "mark", "changed", size, len(PARTS)).times(len(of))


@pytest.mark.parametrize("counts", [(3, 5), (8, 0), (0, 8)])
def test_what_became_of_a_sum_is_kept_with_how_it_was_divided(counts: tuple[int, int]) -> None:
    total = np.zeros((N_ROWS, WIDTH))
    with known(1.0, 1.0) as pool:
        begin_s = time.perf_counter()
        for _ in range(2):
            pool.submit(ct.series(PUTS, PARTS, shares=counts), total).result()
        most_s = time.perf_counter() - begin_s
        times = outcomes_of(pool)
    assert [*times] == [counts] and len(times[counts]) == 2
    assert 0 < sum(times[counts]) <= most_s and len(rows_on_host) == 2 * counts[0]


def test_a_sum_is_divided_as_took_least() -> None:
    total = np.zeros((N_ROWS, WIDTH))
    with known(1.0, 1.0) as pool:
        of = pool._composites._sides
        for counts, seconds in (((4, 4), 9.0), ((3, 5), 9.0), ((5, 3), 9.0), ((0, 8), 0.1)):
            sides = of.of(Ways(pool._lanes).of(PUTS, (), has_futures=False), NBYTES / 8)
            for _ in range(3):
                of.outcomes(sides, "mark", "changed", float(NBYTES), 8).learn(counts, seconds)
        pool.submit(ct.series(PUTS, PARTS), total).result()
    assert rows_on_host == []


def test_what_is_around_a_job_is_foreseen_too() -> None:
    total = np.zeros((N_ROWS, WIDTH))
    with known(3.0, 1.0) as pool:
        pool._lanes[1].overheads.extend([0.5] * 3)      # beside an eighth of a second
        pool.submit(ct.series(PUTS, PARTS), total).result()
    assert len(rows_on_host) == 8, "two cores take 1.5 s, one and the device 1.875 s, not 0.75 s"


def test_a_sum_is_divided_as_took_least_by_sides_of_which_little_is_known() -> None:
    total = np.zeros((N_ROWS, WIDTH))
    with known(None, 1.0) as pool:
        of = pool._composites._sides
        sides = of.of(Ways(pool._lanes).of(PUTS, (), has_futures=False), NBYTES / 8)
        for _ in range(3):
            of.outcomes(sides, "mark", "changed", float(NBYTES), 8).learn((4, 4), 1e-3)
        pool.submit(ct.series(PUTS, PARTS), total).result()
    assert len(rows_on_host) == 4
