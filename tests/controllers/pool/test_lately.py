# SPDX-License-Identifier: MIT
"""Estimates of kernels follow a device that becomes slower, long before their median does."""
from __future__ import annotations

import numpy as np
import pytest

from controllers.estimates.estimates import Estimates
from controllers.estimates.task_key import Case, TaskKey
from controllers.pool.executions import Executions

SIZES = (8.0, 11.0, 16.0, 40.0)
N_BEFORE, N_SLOW = 123, 24      # the estimator looks at 121 executions, and again at 151


def executions(*, of_kernel: bool) -> tuple[Executions, float]:
    """Those of a device that has become slower by 1.5, one of ten disturbed; a usual ms of one."""
    found, draw = Executions(Estimates(None), TaskKey("it", "one", "a device", "1")), 1e-4
    random = np.random.default_rng(5)
    for number in range(N_BEFORE + N_SLOW):
        size = SIZES[number % len(SIZES)]
        slower = 1.5 if number >= N_BEFORE else 1.0
        disturbed = random.uniform(2, 20) if random.random() < 0.1 else 1.0
        one = size, 1, draw * size * slower * disturbed * random.uniform(0.99, 1.01), None
        (found.add_of_kernel if of_kernel else found.add)(one)
        found.refresh()
        if number == N_BEFORE:
            looks_at = found.looks_at
    assert found.looks_at == looks_at, "the estimator has been told of none of the slow ones"
    return found, draw


@pytest.mark.parametrize("size", [*SIZES, 25.0])
def test_a_kernel_takes_as_long_as_lately(size: float) -> None:
    found, each_s = executions(of_kernel=True)
    estimate = found.estimate(size, 1)
    assert estimate is not None
    assert estimate.seconds == pytest.approx(1.5 * each_s * size, rel=0.06)
    assert estimate.least_s < estimate.seconds < estimate.most_s


def test_a_function_takes_as_long_as_usual() -> None:
    """Its newest executions may be the short last pieces of a task, which wait for others."""
    found, each_s = executions(of_kernel=False)
    estimate = found.estimate(16.0, 1)
    assert estimate is not None
    assert estimate.seconds == pytest.approx(1.0 * each_s * 16, rel=0.06)


def test_what_changes_little_leaves_estimates_as_they_are() -> None:
    """Else shares would never stay, and rows would move between memories."""
    found = Executions(Estimates(None), TaskKey("it", "one", "a device", "1"))
    for number in range(60):
        found.add_of_kernel((8.0, 1, 1e-3 * (1.004 if number % 2 else 0.996), None))
        found.refresh()
        if number == 52:
            known, before = (found.stamp, found.factor), found.looks_at
    assert found.looks_at == before, "the estimator was not told meanwhile"
    assert (found.stamp, found.factor) == known


def test_pieces_of_a_share_are_told_of_and_the_share_is_compared() -> None:
    """Of short pieces much is spent on other things, and their sizes differ from task to task."""
    found = Executions(Estimates(None), TaskKey("it", "one", "a device", "1"))
    found.add_of_kernel((8.0, 1, 1e-3, None))
    for _ in range(8):
        for size in (6.0, 2.0):
            found.add_of_kernel((size, 1, 1e-3, None), is_piece=True)
        found.add_of_kernel((8.0, 1, 2e-3, None))
        found.refresh()
    assert {case.size for case in found.history().cases} == {2.0, 6.0, 8.0}
    assert {size for size, *_ in (*found._lately.fresh, *found._lately._newest)} == {8.0}


def test_what_the_estimator_has_learnt_is_not_counted_twice() -> None:
    """A factor is that of what is foreseen now, also where the first few are looked at at once."""
    estimates, key = Estimates(None), TaskKey("it", "one", "a device", "1")
    for _ in range(6):
        estimates.add(key, Case(8.0), 1e-3)
    found = Executions(estimates, key)
    for number in range(20):
        found.add_of_kernel((8.0, 1, 2e-3, None))
        estimate = found.estimate(8.0, 1)
        assert estimate is not None and estimate.seconds < 2.1e-3, number
        if number % 3:
            found.refresh()
    assert estimate.seconds == pytest.approx(2e-3)
