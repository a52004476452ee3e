# SPDX-License-Identifier: MIT
"""Kernels that follow each other on a device: each is enqueued before the last one is over."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mpi_jobs import HANGS_S

import controllers as ct
from controllers.controller.commands import Commands
from controllers.device.event import Event
from controllers.pool import crew, next_launch
from controllers.pool.job import OVER, Job
from controllers.pool.launched import Launched
from controllers.pool.pool import Pool
from controllers.pool.side.device_side import DeviceSide

N, N_PIECES = 6, 4

moved = ct.Task("moved", ("y", "z"), roles={"y": "writing", "z": "reading"})
moved.variant(ct.Kernel.of("moved", """
    __kernel void moved(__global double *y, TILE(y), __global const double *z, TILE(z), BOX)
    {
        CELL;
        HERE(y) = 0.5 * HERE(z) + 1;
    }""", roles={"y": "writing", "z": "reading"}))
more = ct.Task("more", ("y", "n"), roles={"y": "updating"})
more.variant(ct.Kernel.of("more", """
    __kernel void more(__global double *y, TILE(y), BOX, const long n)
    {
        CELL;
        for (long k = 0; k < n; ++k) HERE(y) = 0.5 * HERE(y) + 1;
    }""", roles={"y": "updating"}))
by_rows = ct.hybrid(more, cut={"y": ct.Row})


def after(y: Any, n: int = 1) -> Any:
    for _ in range(n):
        y = 0.5 * y + 1
    return y


class Turns:
    """Jobs, and their rows, that were begun in turn, and whether in the queue of those before.

    go: threads wait until then for kernels to end.  beside: pieces that were begun otherwise.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.begun, self.beside = list[tuple[int, Any]](), 0
        self.in_queue = list[bool]()
        self.go = threading.Event()
        self.go.set()
        begin, wait, issue = DeviceSide.begin_beside, Launched.wait, Commands.issue
        latest: list[Any] = [None]

        def noted(side: DeviceSide, job: Job, *, in_turn: bool) -> bool:
            before = latest[0]
            found = begin(side, job, in_turn=in_turn)
            if found and in_turn:
                self.begun.append((job.number, job.rows))
                self.in_queue.append(before is latest[0])
            self.beside += found and not in_turn
            return found

        def held(launched: Launched, *given: Any, **how: Any) -> float:
            assert self.go.wait(HANGS_S)
            return wait(launched, *given, **how)

        def issued(commands: Commands, *given: Any) -> Event:
            latest[0] = commands.executor.compute_lane.queue
            return issue(commands, *given)

        patch.setattr(DeviceSide, "begin_beside", noted)
        patch.setattr(Launched, "wait", held)
        patch.setattr(Launched, "_nap", lambda *given: None)    # at once, however long it takes
        patch.setattr(Commands, "issue", issued)
        patch.setattr(crew, "POLLED_S", 0.0)    # shorter ones may have no time for that


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Turns:
    return Turns(monkeypatch)


@pytest.fixture(params=[True, False])
def pool(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Pool]:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    with ct.tasks("cpu/1", cores=2, zero_copy=request.param) as made:
        yield made


def fail_first(patch: pytest.MonkeyPatch) -> None:
    """The next kernel that is waited for has failed."""
    wait, failing = Launched.wait, [True]

    def fails(launched: Launched, *given: Any, **how: Any) -> float:
        seconds = wait(launched, *given, **how)
        if failing:
            failing.clear()
            raise RuntimeError("lost")
        return seconds

    patch.setattr(Launched, "wait", fails)


def filled(seed: int) -> Any:
    return np.random.default_rng(seed).random((16, 9))


def test_each_is_enqueued_before_the_last_one_is_over_and_timed_after_it(
    pool: Pool, turns: Turns
) -> None:
    y, z = filled(1), filled(2)
    expected = y.copy(), z.copy()
    for _ in range(2):      # once until all launches are known
        turns.begun.clear()
        turns.go.clear()
        futures = []
        for _ in range(N):
            futures += [pool.submit(moved, y, z), pool.submit(moved, z, y)]
            expected = after(expected[1]), after(after(expected[1]))
        turns.go.set()
        for future in futures:
            assert future.exception(HANGS_S) is None
    assert all(turns.in_queue)
    assert [number for number, _ in turns.begun] == [one.job.number for one in futures[1:]]
    ended = [one for one in pool._ends.newest if one.task == "moved"]
    assert len(ended) == 4 * N
    for one, other in zip(ended, ended[1:]):
        assert one.start <= one.end <= other.start
    pool.wait()
    assert np.array_equal(y, expected[0]) and np.array_equal(z, expected[1])
    assert pool._share._budget._free == 2 and not pool._lanes[1].running


def test_so_is_the_first_piece_of_a_share_and_the_others_beside_it(
    pool: Pool, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controllers.pool.hybrid.cutting.parts_of", lambda n, *_: [
        (n * k // N_PIECES, n * (k + 1) // N_PIECES) for k in range(N_PIECES)
    ])  # fmt: skip
    monkeypatch.setattr(next_launch, "MOST_BESIDE", 1.0)
    y = filled(3)
    expected = after(y, 4 + 4 * N)
    pool.submit(by_rows, y, 4).exception(HANGS_S)
    turns.beside = 0
    turns.go.clear()
    futures = [pool.submit(by_rows, y, 4) for _ in range(N)]
    turns.go.set()
    assert [future.exception(HANGS_S) for future in futures] == [None] * N
    assert [rows for _, rows in turns.begun] == [(0, 4)] * (N - 1) and all(turns.in_queue)
    assert turns.beside == N * (N_PIECES - 1)
    pool.wait()
    assert np.array_equal(y, expected)


def test_who_waits_for_more_than_that_is_begun_when_all_is_there(
    pool: Pool, turns: Turns
) -> None:
    y, z, may_end = filled(4), filled(5), threading.Event()
    expected = after(y)
    pool.submit(moved, z, y).exception(HANGS_S)
    pool.submit(more, y, 1).exception(HANGS_S)

    def slow(x: Any) -> None:
        assert may_end.wait(HANGS_S)
        x[...] = 3

    turns.begun.clear()
    turns.go.clear()
    function = pool.submit(slow, ct.writing(z))
    first = pool.submit(more, y, 1)
    last = pool.submit(moved, y, z)
    turns.go.set()
    error = first.exception(HANGS_S)
    was_begun, was_done = [*turns.begun], last.done()
    may_end.set()
    assert error is None and not was_begun and not was_done
    assert function.exception(HANGS_S) is None and last.exception(HANGS_S) is None
    pool.wait()
    assert (y == after(3.0)).all() and (z == 3).all() and not np.array_equal(y, expected)


def test_it_fails_with_what_it_reads_from(
    pool: Pool, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    y, z = filled(6), filled(7)
    for _ in range(2):
        pool.submit(more, y, 2).exception(HANGS_S)
        pool.submit(moved, z, y).exception(HANGS_S)
    turns.begun.clear()
    turns.go.clear()
    fail_first(monkeypatch)
    futures = [pool.submit(more, y, 2), pool.submit(more, y, 2), pool.submit(moved, z, y)]
    turns.go.set()
    errors = [future.exception(HANGS_S) for future in futures]
    assert len(turns.begun) == 1 and turns.begun[0][0] == futures[1].job.number
    failed = [one.number for one in pool._ends.newest if one.failed]
    assert failed == [futures[0].job.number, futures[1].job.number], "the last one was not begun"
    assert all(isinstance(error, ct.TaskError) for error in errors)
    assert str(errors[0].__cause__) == "lost"       # type: ignore[union-attr]
    assert all("'more'" in str(error) for error in errors)
    pool.wait()
    assert pool._ends.n_left == 0 and not pool._lanes[1].running
    assert all(one.job.state == OVER for one in futures)
    pool.submit(np.copyto, ct.writing(y), np.ones_like(y))
    assert pool.submit(more, y, 2).exception(HANGS_S) is None
    pool.wait()
    assert (y == after(1.0, 2)).all()


def test_a_share_in_pieces_fails_with_what_it_reads_from(
    pool: Pool, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controllers.pool.hybrid.cutting.parts_of", lambda n, *_: [
        (n * k // N_PIECES, n * (k + 1) // N_PIECES) for k in range(N_PIECES)
    ])  # fmt: skip
    y = filled(8)
    pool.submit(by_rows, y, 2).exception(HANGS_S)
    pool.submit(more, y, 2).exception(HANGS_S)
    turns.begun.clear()
    turns.go.clear()
    fail_first(monkeypatch)
    futures = [pool.submit(more, y, 2), pool.submit(by_rows, y, 2)]
    turns.go.set()
    assert all(isinstance(future.exception(HANGS_S), ct.TaskError) for future in futures)
    assert [rows for _, rows in turns.begun] == [(0, 4)], "no other piece"
    pool.wait()
    assert pool._ends.n_left == 0 and not pool._lanes[1].running and not pool._lanes[1].ready


def test_what_is_summed_is_there_before_it_is_read(pool: Pool, turns: Turns) -> None:
    @ct.each
    def squares(y: ct.Row) -> dict:     # type: ignore[type-arg]
        return {"total": ct.accumulate(y[0] * y[0])}     # type: ignore[index]

    task = ct.Task("squares", ("total", "y"), roles={"total": "writing"})
    task.variant(squares)
    y, total, found = np.full((8, 3), 2.0), np.zeros(1), np.zeros(1)
    for _ in range(3):
        turns.go.clear()
        futures = [pool.submit(task, total, y), pool.submit(moved, found, total)]
        turns.go.set()
        assert [future.exception(HANGS_S) for future in futures] == [None] * 2
    pool.wait()
    assert total[0] == 32 and found[0] == 17 and not turns.begun


def test_what_others_wait_for_is_given_to_them_first(
    pool: Pool, turns: Turns, monkeypatch: pytest.MonkeyPatch
) -> None:
    y = filled(9)
    pool.submit(more, y, 1).exception(HANGS_S)
    with monkeypatch.context() as patch:
        patch.setattr(pool._share, "is_wanted", lambda: True)
        turns.go.clear()
        futures = [pool.submit(more, y, 1) for _ in range(N)]
        turns.go.set()
        assert [future.exception(HANGS_S) for future in futures] == [None] * N
    assert not turns.begun


def test_functions_that_wait_for_the_cores_of_a_device_get_them_between_its_kernels(
    turns: Turns, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    with ct.tasks("cpu", cores=2) as pool:
        y = filled(10)
        pool.submit(more, y, 1).exception(HANGS_S)
        turns.go.clear()
        futures = [pool.submit(more, y, 1), pool.submit(np.copyto, ct.writing(filled(11)), 1.0)]
        until_s = time.monotonic() + HANGS_S
        while not pool._share._budget.is_awaited:
            assert time.monotonic() < until_s
            time.sleep(1e-3)
        futures += [pool.submit(more, y, 1) for _ in range(N)]
        turns.go.set()
        assert [future.exception(HANGS_S) for future in futures] == [None] * (N + 2)
        done = [one.task for one in pool._ends.newest]
    assert done.index("copyto") <= 3, "after one kernel, or two if it was not seen at once"
    assert len(turns.begun) >= N - 2


def test_the_most_urgent_one_is_next_when_all_pieces_before_it_are_over() -> None:
    lane: Any = SimpleNamespace(ready=[])
    waiting = [
        SimpleNamespace(waits=1, joins=False, replicas=None, lost=None, pieces=None,
                        rank_s=rank_s, number=number, placed=SimpleNamespace(lane=lane))
        for rank_s, number in ((1.0, 3), (2.0, 4), (2.0, 5))
    ]  # fmt: skip
    share: Any = SimpleNamespace(
        followers=[(one, True) for one in waiting], whole=None, sent=False, lost=None
    )
    assert next_launch.next_launch(share, lane) is waiting[1]
    share.sent = True
    assert next_launch.next_launch(share, lane) is None, "what it has written is to be sent"
    last = [False]
    share.pieces = SimpleNamespace(is_last=lambda piece: last[0])
    piece: Any = SimpleNamespace(whole=share, sent=False)
    assert next_launch.next_launch(piece, lane) is None, "another lane has one"
    last[0] = True
    assert next_launch.next_launch(piece, lane) is waiting[1]
    waiting[1].waits, waiting[2].placed.lane = 2, None
    assert next_launch.next_launch(piece, lane) is waiting[0]
    lane.ready = [(0.0, 0, None)]   # something else is done before
    assert next_launch.next_launch(piece, lane) is None
