# SPDX-License-Identifier: MIT
"""Trials of ways on tables of costs: how near they come, how many windows and seconds they take."""
from __future__ import annotations

import random

import pytest
from sample import sample

from controllers.tuning.way_trials import (
    BUDGET_S,
    HOPELESS,
    LAUNCHES,
    MARGIN,
    TURNS,
    WINDOW_S,
    WayTrials,
)


def run(trials: WayTrials[int], costs: list[float], noise: random.Random | None = None) -> float:
    """Windows to the end, with so many seconds of a launch by way; the seconds of all."""
    seconds = 0.0
    while not trials.over:
        count, cost = trials.launches_left, costs[trials.way]
        worse = 1 if noise is None else 1 + noise.expovariate(20)
        trials.ran(count, count * cost * worse)
        seconds += count * cost * worse
    return seconds


@pytest.mark.parametrize("seed", sample(range(100), 10))
def test_the_fastest_way_is_found_within_the_margin(seed: int) -> None:
    rng = random.Random(seed)
    costs = [10 ** rng.uniform(-5, -3)]
    costs += [costs[0] * rng.uniform(0.4, 3) for _ in range(rng.randint(1, 11))]
    trials = WayTrials([*range(len(costs))])
    run(trials, costs)
    found = trials.found
    assert costs[found.way] <= min(costs) / (1 - MARGIN)
    assert trials.n_windows <= TURNS * len(costs)
    assert found.seconds == pytest.approx(dict(enumerate(costs)))


@pytest.mark.parametrize("seed", sample(range(100), 10))
def test_interruptions_do_not_matter_and_the_budget_is_kept(seed: int) -> None:
    rng = random.Random(seed)
    costs = [rng.choice([2e-5, 1e-3])]
    costs += [costs[0] * rng.choice([0.7, 1.0, 1.1, 4.0]) for _ in range(5)]
    trials = WayTrials([*range(len(costs))])
    seconds = run(trials, costs, rng)
    assert costs[trials.found.way] <= 1.2 * min(costs)
    n_launches = sum(1 for _ in range(trials.n_windows)) * max(LAUNCHES, WINDOW_S / costs[0])
    assert seconds <= n_launches * costs[0] * 1.5 + BUDGET_S + 4 * 1.5 * WINDOW_S


def test_ways_that_are_hopeless_get_one_window() -> None:
    trials = WayTrials([0, 1, 2])
    seen = []
    while not trials.over:
        seen.append(trials.way)
        trials.ran(trials.launches_left, trials.launches_left * [1e-3, 2e-3, 0.9e-3][trials.way])
    assert seen == [0, 1, 1, 2, 2, 0, 2, 0, 2], "each other way once before its first window"
    assert trials.found.way == 2 and "saves 10%" in trials.found.why
    assert HOPELESS < 2


def test_a_way_that_takes_very_long_ends_the_trials() -> None:
    trials = WayTrials([0, 1, 2], budget_s=0.5)
    run(trials, [1e-3, 0.5, 0.5e-3])
    assert trials.n_windows == 2 and trials.found.way == 0
    assert trials.found.why == "none is faster; the budget is spent"


def test_the_usual_way_stays_where_others_save_little() -> None:
    trials = WayTrials([0, 1])
    run(trials, [1e-3, 0.98e-3])
    assert trials.found.way == 0 and "no other saves 3%" in trials.found.why


def test_a_way_that_cannot_be_run_is_left_out() -> None:
    trials = WayTrials([0, 1, 2])
    seen = []
    while not trials.over:
        if trials.way == 1:
            trials.refuse()
            continue
        seen.append(trials.way)
        trials.ran(trials.launches_left, 1e-3 * trials.launches_left / (1 + trials.way))
    assert seen == [0, 2, 2, *[0, 2] * (TURNS - 1)] and trials.found.way == 2


def test_the_first_launch_in_a_way_does_not_count() -> None:
    trials, is_new = WayTrials([0, 1]), True
    while not trials.over:
        builds = trials.way == 1 and is_new
        is_new = is_new and not builds
        each = 5.0 if builds else 1e-3 / (1 + trials.way)
        trials.ran(trials.launches_left, each * trials.launches_left)
    assert trials.found.way == 1


def test_runs_that_are_too_short_change_nothing() -> None:
    trials = WayTrials([0, 1])
    trials.ran(LAUNCHES - 1, 1.0)
    assert not trials.over and trials.way == 0
    assert trials.found.why == "too few steps to tell"
    assert WayTrials([0]).over
