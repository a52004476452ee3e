# SPDX-License-Identifier: MIT
"""How long rows take is known when a task is submitted, without asking the estimator then."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controllers.pool.hybrid.row_times import MOST_FORESEEN, MOST_RENEWED, RowTimes


class Known:
    """What a forecast knows: each row takes so long; it learns, and is asked."""

    def __init__(self) -> None:
        self.row_s, self.stamp, self.factor, self.n_asked = 1.0, 1, 1.0, 0
        self.when_learnt: list[Callable[[], None]] = []

    def known_as(self, way: Any) -> tuple[int, float]:
        return self.stamp, self.factor

    def known_s(self, way: Any, size: float, cores: int) -> float:
        self.n_asked += 1
        return self.row_s * self.factor * size

    def learn(self, row_s: float) -> None:
        self.row_s, self.stamp = row_s, self.stamp + 1
        for tell in self.when_learnt:
            tell()


@pytest.fixture
def known() -> Known:
    return Known()


def upto(times: RowTimes, n: int, way: Any = "a way") -> list[float]:
    found = times.upto(way, 1, 1, float(n), n, None)
    assert found is not None
    seconds, factor = found
    return [factor * one for one in seconds]


def test_what_was_learnt_is_asked_for_by_who_learns(known: Any) -> None:
    times = RowTimes(known)
    assert upto(times, 4) == [0, 1, 2, 3, 4]
    known.learn(2.0)
    n_asked = known.n_asked
    assert upto(times, 4) == upto(times, 4) == [0, 2, 4, 6, 8]
    assert known.n_asked == n_asked == 8, "by who submits nothing was"
    known.factor = 1.5
    assert upto(times, 4) == [0, 3, 6, 9, 12] and known.n_asked == n_asked


def test_who_learns_asks_for_what_was_wanted_lately(known: Any) -> None:
    """Each table takes a while, in which no task can begin."""
    times = RowTimes(known)
    for n in range(1, 2 * MOST_RENEWED + 1):
        upto(times, n)
    n_asked = known.n_asked
    known.learn(2.0)
    n_asked += sum(range(MOST_RENEWED + 1, 2 * MOST_RENEWED + 1))
    assert known.n_asked == n_asked, "for the newest"
    known.learn(3.0)
    assert known.n_asked == n_asked, "for none that nobody wanted since"
    assert upto(times, 1) == [0, 3] and upto(times, 2 * MOST_RENEWED)[-1] == 6 * MOST_RENEWED


def test_of_many_rows_some_are_asked_for(known: Any) -> None:
    times = RowTimes(known)
    assert upto(times, 512) == pytest.approx(range(513))
    assert known.n_asked == MOST_FORESEEN
