# SPDX-License-Identifier: MIT
"""Jobs that are done piece by piece: each row once, whoever takes how many of them."""
from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mpi_jobs import HANGS_S

import controllers as ct
from controllers.estimates.estimate import Estimate
from controllers.estimates.task_key import Case
from controllers.pool.job import Job
from controllers.pool.lane import Lane
from controllers.pool.pieces import LEAST_S, LEAST_TAKEN_S, Pieces
from controllers.pool.stealing import stolen
from controllers.pool.task import Task
from controllers.pool.way import Way

N_ROWS = 640
UP = [(0, 320), (320, 480), (480, 560), (560, 640)]
DOWN = [(320, 640), (160, 320), (80, 160), (0, 80)]


def whole_of(
    rows: list[tuple[int, int]], *, is_fixed: bool = False, row_s: float = 1e-3,
    help_s: Any = None,
) -> Job:  # fmt: skip
    """A job in pieces, of rows that each take so long."""
    def fill(piece: Job, number: int) -> None:
        piece.args = [number]
        piece.touches = [SimpleNamespace()]     # type: ignore[list-item]

    whole = Job(7, Task("plus"), [], {}, [], SimpleNamespace(), size=N_ROWS)    # type: ignore[arg-type]
    whole.rows, whole.seconds, whole.cores = (0, N_ROWS), N_ROWS * row_s, 3
    whole.pieces = Pieces(
        whole, rows, fill, help_s, is_fixed=is_fixed, goes_up=rows[0] < rows[-1]
    )
    return whole


def rows_of(piece: Job | None) -> tuple[int, int]:
    assert piece is not None and piece.rows is not None
    return piece.rows


@pytest.mark.parametrize("rows", [UP, DOWN])
def test_a_lane_does_planned_pieces_in_their_order(rows: list[tuple[int, int]]) -> None:
    whole = whole_of(rows)
    for number, expected in enumerate(rows):
        piece = whole.pieces.first()
        assert piece is whole.pieces.first() and piece.rows == expected
        assert piece.size == expected[1] - expected[0] and piece.cores == 3
        assert piece.seconds == pytest.approx(1e-3 * piece.size)
        whole.pieces.fill(piece)
        assert piece.args == [number]
        whole.pieces.take(piece)
    assert whole.n_left == 0 and whole.left_s == 0


@pytest.mark.parametrize(("rows", "far"), [(UP, (480, 640)), (DOWN, (0, 160))])
def test_who_is_early_takes_half_of_what_suits_from_the_far_end(
    rows: list[tuple[int, int]], far: tuple[int, int]
) -> None:
    pieces = whole_of(rows).pieces
    pieces.take(pieces.first())
    piece = pieces.last(320, 1e-3)
    assert rows_of(piece) == far
    pieces.take(piece)
    # of 160 rows that are left both will do half, and this lane a half of its own now
    assert rows_of(pieces.first()) == ((320, 360) if rows is UP else (280, 320))


def test_pieces_are_not_shorter_than_what_they_cost() -> None:
    pieces = whole_of(UP, row_s=LEAST_S / 50).pieces
    pieces.take(pieces.first())
    assert rows_of(pieces.last(90, LEAST_S / 50)) == (550, 640), "45 rows would be too few"
    pieces.take(pieces.last(90, LEAST_S / 50))
    assert rows_of(pieces.first()) == (320, 370), "which is the least"


@pytest.mark.parametrize(("faster", "rows"), [(1.0, 160), (9.0, 30), (1e-4, 310)])
@pytest.mark.parametrize("goes_up", [True, False])
def test_a_guessed_share_is_done_beside_who_helps(faster: float, rows: int, goes_up: bool) -> None:
    """A half at once of what its lane does of it, if both are done at the same time."""
    asked = []

    def help_s(job: Job) -> float:
        asked.append(job)
        return 1e-3 / faster

    whole = whole_of([UP, DOWN][not goes_up], help_s=help_s)
    pieces = whole.pieces
    assert not (asked or pieces.awaits_help), "who knows what others will be able to do by then"
    pieces.look_for_help()
    assert pieces.awaits_help
    assert rows_of(pieces.first()) == ((0, rows) if goes_up else (N_ROWS - rows, N_ROWS))
    assert asked == [whole]


def test_a_guessed_share_of_which_nothing_is_known_yet_is_done_as_planned() -> None:
    pieces = whole_of(UP, help_s=lambda job: None).pieces
    assert rows_of(pieces.first()) == UP[0] and not pieces.awaits_help


def test_who_is_helped_by_a_fast_one_does_no_shorter_pieces_than_pay() -> None:
    pieces = whole_of(UP, row_s=LEAST_S / 50, help_s=lambda job: LEAST_S / 1e6).pieces
    assert rows_of(pieces.first()) == (0, 50)


def test_fixed_pieces_are_taken_as_they_are_planned() -> None:
    pieces = whole_of(UP, is_fixed=True).pieces
    assert pieces.last(79, 1.0) is None
    piece = pieces.last(100, 1.0)
    assert rows_of(piece) == (560, 640)
    pieces.fill(piece)
    assert piece.args == [3]
    pieces.take(piece)
    assert pieces.first().rows == (0, 320)


@pytest.mark.parametrize("seed", range(40))
def test_each_row_is_done_once_whoever_takes_it(seed: int) -> None:
    random = np.random.default_rng(seed)
    cuts = sorted({0, N_ROWS, *random.integers(1, N_ROWS, random.integers(1, 6)).tolist()})
    rows = [*zip(cuts, cuts[1:])][:: random.choice([-1, 1])]
    whole = whole_of(rows, is_fixed=bool(random.integers(2)), row_s=float(random.choice([1e-5, 1])))
    lane, done = Lane(0, "a lane", None, SimpleNamespace()), np.zeros(N_ROWS, int)   # type: ignore[arg-type]
    lane.push(whole)
    running: list[Job] = []
    while lane.ready or running:
        if running and (not lane.ready or random.integers(2)):
            is_last = not lane.ready and len(running) == 1
            assert whole.pieces.over(running.pop(), 0, None, 0.0) == is_last
            continue
        first = lane.first()
        piece = whole.pieces.last(random.integers(1, N_ROWS), 1e-4) if random.integers(2) else first
        if piece is not None:
            low, high = rows_of(piece)
            done[low:high] += 1
            lane.take(piece)
            running.append(piece)
    assert (done == 1).all()


def test_after_an_error_no_other_piece_is_begun() -> None:
    pieces = whole_of(UP).pieces
    begun = [pieces.first()]
    pieces.take(begun[0])
    begun.append(pieces.first())
    pieces.take(begun[1])
    error = ct.TaskError("failed", "plus")
    assert not pieces.over(begun[0], 0, error, 0.0) and pieces.n_left == 0, "one is under way"
    assert pieces.over(begun[1], 0, None, 0.0) and pieces.error is error


def test_a_share_took_what_its_lane_would_have_taken_for_all_of_its_rows() -> None:
    whole = whole_of(UP)
    whole.placed, pieces = SimpleNamespace(), whole.pieces
    own = 4 * N_ROWS / 390
    for n_rows, seconds, expected in [(None, 3.0, 6.0), (80, 100.0, 6.0), (None, 1.0, own)]:
        piece = pieces.first() if n_rows is None else pieces.last(n_rows, 1e-3)
        piece.way = whole.placed if n_rows is None else SimpleNamespace()
        pieces.take(piece)
        pieces.over(piece, 0, None, seconds)
        assert pieces.took_s == pytest.approx(expected)


def test_a_share_is_foreseen_by_its_pieces_although_it_took_longer_in_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Long ago: shares of this size have been done in pieces since."""
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    parts_of, pieces = "controllers.pool.hybrid.cutting.parts_of", [(0, 8), (8, 12), (12, 16)]
    monkeypatch.setattr(parts_of, lambda *_: pieces)
    raised = ct.Task("raised", ("y",), roles={"y": "updating"})
    raised.variant(ct.Kernel.of("raised", """
        __kernel void raised(__global double *y, TILE(y), BOX) { CELL; HERE(y) += 1; }""",
                                roles={"y": "updating"}))
    y = np.zeros((16, 8))
    with ct.tasks("cpu/1", cores=1) as pool:
        way = Way("raised", raised.variants[0], pool._lanes[1])
        for _ in range(5):
            pool._forecast.learn(way.key, Case(float(y.nbytes)), 3600.0)
        foreseen_s = []
        for _ in range(8):
            assert pool.submit(ct.hybrid(raised, cut={"y": ct.Row}), y).exception(HANGS_S) is None
            pool._forecast.refresh()    # as who waits for a longer task
            foreseen_s.append(pool._forecast.known_s(way, float(y.nbytes), 1) or 0.0)
    assert foreseen_s[0] > 3000 and foreseen_s[-1] < 60 and (y == 8).all()


def test_a_piece_that_began_before_the_forecast_is_told_how_long_it_takes() -> None:
    """By that who waits for a GPU leaves the core to others, and others see how late it is."""
    whole = whole_of(UP, row_s=0.0)
    piece = whole.pieces.first()
    whole.pieces.take(piece)
    assert piece.seconds == 0.0
    whole.seconds = 6.4
    whole.pieces.place()
    assert piece.seconds == pytest.approx(3.2)


@pytest.mark.parametrize("is_long", [True, False])
def test_who_has_nothing_to_do_takes_short_pieces_too(is_long: bool) -> None:
    """Down to what taking them costs."""
    row_s = LEAST_TAKEN_S / 45 * (1.1 if is_long else 0.9)
    whole = whole_of([(0, 550), (550, 640)], row_s=row_s)
    late, early = (Lane(n, "", None, SimpleNamespace()) for n in (0, 1))   # type: ignore[arg-type]
    forecast = SimpleNamespace(
        seconds=lambda way, job, cores: Estimate.about(N_ROWS * row_s, 0.0, "history"),
        transfer_s=lambda job, lane: 0.0,
    )  # fmt: skip
    whole.may_run = [SimpleNamespace(lane=early, among=())]     # type: ignore[list-item]
    late.push(whole)
    late.take(whole.pieces.first())     # of 90 rows that are left both do half
    piece = stolen(early, [late, early], forecast)  # type: ignore[arg-type]
    assert (piece is not None) == is_long
    if is_long:
        assert rows_of(piece) == (600, 640)


def test_little_that_is_known_of_a_lane_does_not_keep_it_from_helping() -> None:
    """Half of what suits is taken at once, so that twice the time is not too late."""
    row_s = LEAST_S
    whole = whole_of([(0, 400), (400, 640)], row_s=row_s)
    late, early = (Lane(n, "", None, SimpleNamespace()) for n in (0, 1))   # type: ignore[arg-type]
    forecast = SimpleNamespace(
        seconds=lambda way, job, cores: Estimate.about(N_ROWS * row_s / 2, 99.0, "regression"),
        transfer_s=lambda job, lane: 0.0,
    )  # fmt: skip
    whole.may_run = [SimpleNamespace(lane=early, among=())]     # type: ignore[list-item]
    late.push(whole)
    late.take(whole.pieces.first())
    piece = stolen(early, [late, early], forecast)  # type: ignore[arg-type]
    assert rows_of(piece) == (580, 640)     # as if it were as fast: of 120 rows


def test_an_array_that_can_only_be_read_by_then_fails_the_task(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Pieces are made when somebody takes them: what is wrong then is told as any error is."""
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    free, y = threading.Event(), np.zeros((64, 8))

    def late(y: Any) -> None:
        assert free.wait(HANGS_S)
        y += 1

    task = ct.Task("late", ("y",), roles={"y": "updating"})
    task.variant(late)
    with ct.tasks((), cores=2) as pool:
        parts_of = "controllers.pool.hybrid.cutting.parts_of"
        monkeypatch.setattr(parts_of, lambda n, *_: [(0, n // 2), (n // 2, n - 8), (n - 8, n)])
        future = pool.submit(ct.hybrid(task, cut={"y": ct.Row}), y)
        y.flags.writeable = False
        free.set()
        error = future.exception(HANGS_S)
        assert isinstance(error, ct.TaskError) and "writeable" in str(error.__cause__)
        y.flags.writeable = True


def test_a_pool_goes_on_after_a_piece_that_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONTROLLERS_ARBITER", str(tmp_path / "arbiter"))
    begun, y = list[int](), np.zeros((64, 8))

    def fails(y: Any) -> None:
        begun.append(len(y))
        raise KeyError("a piece")

    task = ct.Task("fails", ("y",), roles={"y": "updating"})
    task.variant(fails)
    with ct.tasks((), cores=1) as pool:
        parts_of = "controllers.pool.hybrid.cutting.parts_of"
        monkeypatch.setattr(parts_of, lambda n, *_: [(k, k + 8) for k in range(0, n, 8)])
        future = pool.submit(ct.hybrid(task, cut={"y": ct.Row}), y)
        assert isinstance(future.exception(HANGS_S), ct.TaskError) and begun == [8]
        assert pool.submit(len, "abc").result(5) == 3
