# SPDX-License-Identifier: MIT
"""Tasks whose sides hinder each other so much that one alone is faster are not divided for ever."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mpi_jobs import HANGS_S

import controllers as ct
from controllers.pool.forecast import Forecast
from controllers.pool.hybrid.worth import LOOKS, Worth

ENDS = [lambda a, b: 1.0 * (b - a), lambda a, b: 2.0 * (b - a)]
SHARES, FORESEEN_S = [6, 3], 6.0


def took(worth: Worth, seconds: float, after_s: float = 0.0) -> None:
    """A task that was divided by these shares, whose second side was at another one for so long."""
    jobs: list[Any] = [SimpleNamespace(outcome=None) for _ in SHARES]
    worth.watch("a kind", FORESEEN_S, jobs)
    begun = 10**9 + round(after_s * 1e9)
    jobs[0].outcome.ended(10**9, 3 * 10**9)
    jobs[1].outcome.ended(begun, begun + round(seconds * 1e9))


@pytest.mark.parametrize(("seconds", "pays"), [(8.9, True), (9.1, False)])
def test_what_takes_longer_than_one_side_alone_is_not_divided(seconds: float, pays: bool) -> None:
    worth = Worth()
    for _ in range(LOOKS):
        assert worth.counts("a kind", ENDS, SHARES) == SHARES, "nothing was seen, or too little"
        took(worth, seconds)
    assert worth.counts("a kind", ENDS, SHARES) == (SHARES if pays else [9, 0])
    assert worth.counts("another kind", ENDS, SHARES) == SHARES


def test_a_side_that_is_still_at_the_task_before_costs_this_one_nothing() -> None:
    worth = Worth()
    for _ in range(LOOKS):
        took(worth, 8.9, after_s=7.0)
    assert worth.counts("a kind", ENDS, SHARES) == SHARES


def test_dividing_is_tried_again_and_counts_when_it_pays() -> None:
    worth = Worth()
    for _ in range(LOOKS):
        took(worth, 20.0)
    found = [worth.counts("a kind", ENDS, SHARES) == SHARES for _ in range(17)]
    assert [number + 1 for number, is_tried in enumerate(found) if is_tried] == [4, 8, 16]
    took(worth, 6.5)
    assert worth.counts("a kind", ENDS, SHARES) == SHARES, "perhaps it pays now"
    took(worth, 20.0)
    assert worth.counts("a kind", ENDS, SHARES) == [9, 0], "once was luck"
    took(worth, 6.5)
    assert all(worth.counts("a kind", ENDS, SHARES) == SHARES for _ in range(9))
    took(worth, 20.0)
    assert worth.counts("a kind", ENDS, SHARES) == SHARES, "once is a disturbance"


def test_disturbed_executions_change_nothing() -> None:
    worth = Worth()
    for number in range(20):
        took(worth, 6.2 if number % 2 == 0 else 50.0)
        assert worth.counts("a kind", ENDS, SHARES) == SHARES


@pytest.mark.parametrize("is_new", [False, True])
def test_a_pool_learns_how_long_divided_tasks_take(
    is_new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless little is known of a side: what is foreseen says little then."""
    monkeypatch.setattr(Forecast, "is_new", lambda forecast, way: is_new)
    task = ct.Task("plus", ("y",), roles={"y": "updating"})
    task.variant(lambda y: np.add(y, 1, out=y))
    task.variant(ct.Kernel.of("plus", """
        __kernel void plus(__global double *y, TILE(y), BOX) { CELL; HERE(y) += 1; }""",
        roles={"y": "updating"}))  # fmt: skip
    both, y = ct.hybrid(task, cut={"y": ct.Row}), np.zeros((256, 4096))
    with ct.tasks("cpu/1", cores=2) as pool:
        for _ in range(12):
            pool.submit(both, y).result(HANGS_S)
        seen = [kind.longer for kind in pool._composites._planning.worth._kinds.values()]
    assert (y == 12).all() and bool(seen) != is_new
    assert all(0 < one < float("inf") for longer in seen for one in longer)
