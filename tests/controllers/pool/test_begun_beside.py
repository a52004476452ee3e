# SPDX-License-Identifier: MIT
"""A device begins the next piece of a share while the one before is done."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mpi_jobs import HANGS_S

import controllers as ct
from controllers.controller.commands import Commands
from controllers.device.event import COMPLETE, Event
from controllers.pool import next_launch
from controllers.pool.job import Job
from controllers.pool.launched import Launched
from controllers.pool.pool import Pool
from controllers.pool.side import device_side
from controllers.pool.side.device_side import DeviceSide

N_PIECES, N_ROWS = 8, 64

turned = ct.Task("turned", ("y", "n"), roles={"y": "updating"})
turned.variant(ct.Kernel.of("turned", """
    __kernel void turned(__global double *y, TILE(y), BOX, const long n)
    {
        CELL;
        double after = HERE(y);
        for (long k = 0; k < n; ++k) after = 3.7 * after * (1 - after);
        HERE(y) = after;
    }""", roles={"y": "updating"}))
both = ct.hybrid(turned, cut={"y": ct.Row})


@ct.task(roles={"y": "updating"})
def raised(y: Any) -> None:
    y += 0.125


class Beside:
    """Pieces that were begun beside another one; `error` is raised in place of the next one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.begun, self.refused = list[tuple[int, int]](), 0
        self.error: BaseException | None = None
        begin = DeviceSide.begin_beside

        def noted(side: DeviceSide, job: Job, *, in_turn: bool) -> bool:
            assert job.rows is not None and not in_turn
            if self.error is not None:
                error, self.error = self.error, None
                raise error
            if begin(side, job, in_turn=in_turn):
                self.begun.append(job.rows)
                return True
            self.refused += 1
            return False

        patch.setattr(DeviceSide, "begin_beside", noted)
        patch.setattr(next_launch, "MOST_BESIDE", 1.0)
        patch.setattr(Launched, "_nap", lambda *given: None)    # at once, however long it takes


@pytest.fixture
def beside(monkeypatch: pytest.MonkeyPatch) -> Beside:
    parts_of = "controllers.pool.hybrid.cutting.parts_of"
    monkeypatch.setattr(parts_of, lambda n, *_: [
        (n * k // N_PIECES, n * (k + 1) // N_PIECES) for k in range(N_PIECES)
    ])  # fmt: skip
    return Beside(monkeypatch)


@pytest.fixture(params=[True, False])
def pool(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Pool]:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    with ct.tasks("cpu/1", cores=1, zero_copy=request.param) as made:
        yield made


def after(y: Any, n: int) -> Any:
    for _ in range(n):
        y = 3.7 * y * (1 - y)
    return y


def test_pieces_are_begun_beside_each_other_and_timed_one_after_another(
    pool: Pool, beside: Beside
) -> None:
    y = np.random.default_rng(1).random((N_ROWS, 40))
    expected = y.copy()
    for _ in range(3):
        assert pool.submit(both, y, 300).exception(HANGS_S) is None
        expected = after(expected, 300)
    assert len(beside.begun) >= 2 * (N_PIECES - 1), "all but the first one of each"
    ended = [one for one in pool._ends.newest if one.task == "turned"]
    assert len(ended) == 3 * N_PIECES
    for one, other in zip(ended, ended[1:]):
        assert one.start <= one.end <= other.start, "the seconds of one are not those of two"
    pool.wait()
    np.testing.assert_allclose(y, expected, rtol=0.5)     # the map is chaotic
    again = np.full_like(y, 0.3)
    pool.submit(both, again, 5).result(HANGS_S)
    np.testing.assert_allclose(again, after(np.full_like(y, 0.3), 5), rtol=1e-12)


@pytest.mark.parametrize("meet", [True, False])
def test_cores_without_work_begin_the_next_piece(
    beside: Beside, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, meet: bool
) -> None:
    """Both kernels of a CPU are under way at the same time, in queues that do not wait.

    Or in one, where the driver may not have both at once.
    """
    monkeypatch.setattr(device_side, "may_meet", lambda device, shapes: meet)
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    under_way, queues, events = list[bool](), set[int](), list[Event]()
    begin, issue = DeviceSide.begin_beside, Commands.issue

    def issued(commands: Commands, *given: Any) -> Event:
        queues.add(id(commands.executor.compute_lane.queue))
        events.append(issue(commands, *given))
        return events[-1]

    def noted(side: DeviceSide, job: Job, *, in_turn: bool) -> bool:
        before = events[-1]
        begun = begin(side, job, in_turn=in_turn)
        under_way.append(before.command_execution_status > COMPLETE)
        return begun

    monkeypatch.setattr(Commands, "issue", issued)
    monkeypatch.setattr(DeviceSide, "begin_beside", noted)
    with ct.tasks("cpu/1", cores=1) as pool:
        y = np.full((N_ROWS, 1000), 0.3)
        assert pool.submit(both, y, 2000).exception(HANGS_S) is None
    assert any(under_way) and len(queues) == 1 + meet


def test_an_error_of_a_piece_that_cannot_be_begun_is_told(pool: Pool, beside: Beside) -> None:
    y = np.full((N_ROWS, 40), 0.3)
    assert pool.submit(both, y, 3).exception(HANGS_S) is None
    n_begun, beside.error = len(beside.begun), RuntimeError("no room")
    assert pool.submit(both, y, 3).exception(HANGS_S) is None, "its thread has begun it later"
    assert len(beside.begun) == n_begun + N_PIECES - 2
    pool.wait()
    np.testing.assert_allclose(y, after(np.full_like(y, 0.3), 6), rtol=1e-9)


def test_a_piece_that_fails_beside_another_one_fails_the_task(
    pool: Pool, beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    y, wait, failing = np.full((N_ROWS, 40), 0.3), Launched.wait, [True]
    assert pool.submit(both, y, 3).exception(HANGS_S) is None   # where it is from now on
    beside.begun.clear()

    def fails(launched: Launched, *given: Any, **how: Any) -> float:
        seconds = wait(launched, *given, **how)
        if len(beside.begun) == 2 and failing:
            failing.clear()
            raise RuntimeError("lost")
        return seconds

    monkeypatch.setattr(Launched, "wait", fails)
    error = pool.submit(both, y, 3).exception(HANGS_S)
    assert isinstance(error, ct.TaskError) and str(error.__cause__) == "lost"
    assert len(beside.begun) == 2, "no other one was begun"
    monkeypatch.setattr(Launched, "wait", wait)
    assert pool.submit(np.copyto, ct.writing(y), np.full_like(y, 0.3)).exception(HANGS_S) is None
    assert pool.submit(both, y, 3).exception(HANGS_S) is None
    pool.wait()
    np.testing.assert_allclose(y, after(np.full_like(y, 0.3), 3), rtol=1e-12)


def test_what_others_wait_for_is_not_passed_on(
    pool: Pool, beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool._share, "is_wanted", lambda: True)
    y = np.full((N_ROWS, 40), 0.3)
    assert pool.submit(both, y, 3).exception(HANGS_S) is None
    assert not beside.begun and not beside.refused
    monkeypatch.undo()


def test_cells_that_have_to_be_moved_are_waited_for(
    beside: Beside, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    with ct.tasks("cpu/1", cores=2, zero_copy=False) as pool:
        y = np.full((N_ROWS, 40), 0.3)
        expected = y.copy()
        for _ in range(4):
            pool.submit(raised, y)
            pool.submit(both, y, 1)
            expected = after(expected + 0.125, 1)
        pool.wait()
    assert beside.refused and not beside.begun, "a function has written all rows each time"
    np.testing.assert_allclose(y, expected, rtol=1e-12)


def test_about_as_much_is_left_for_others_as_is_begun(
    pool: Pool, beside: Beside, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can take over what was begun, and the piece before it may be late."""
    monkeypatch.undo()
    beside = Beside(monkeypatch)
    monkeypatch.setattr(next_launch, "MOST_BESIDE", 0.6)
    rows = [(0, 32), (32, 48), (48, 56), (56, 60), (60, 64)]
    monkeypatch.setattr("controllers.pool.hybrid.cutting.parts_of", lambda *_: rows)
    y = np.full((N_ROWS, 40), 0.3)
    for _ in range(3):
        assert pool.submit(both, y, 3).exception(HANGS_S) is None
    assert {*beside.begun} == {*rows[1:-1]}, "not the last one"


def test_a_piece_that_sums_is_begun_when_its_turn_comes(pool: Pool, beside: Beside) -> None:
    """What it has summed would be read after what was enqueued by then."""
    @ct.each
    def squares(y: ct.Row) -> dict:     # type: ignore[type-arg]
        return {"total": ct.accumulate(y[0] * y[0])}

    task = ct.Task("squares", ("total", "y"), roles={"total": "writing"})
    task.variant(squares)
    y, total = np.full((N_ROWS, 3), 2.0), np.zeros(1)
    for _ in range(3):
        future = pool.submit(ct.hybrid(task), total, y)
        assert future.exception(HANGS_S) is None
    pool.wait()
    assert total[0] == 4 * N_ROWS and not beside.begun and not beside.refused
    ended = [one for one in pool._ends.newest if one.task == "squares"]
    assert len(ended) >= 2 * N_PIECES, "it was done in pieces"
