# SPDX-License-Identifier: MIT
from __future__ import annotations

import pytest

from controllers.device.event import HostEvent
from controllers.engine.samples import DISTANCE, MAX_PAIRS, MIN_PAIRS, Samples
from controllers.plan import Operation

LAUNCH = Operation(3, 0, 0, "launch", "compute", (), (), ())
SEND = Operation(4, 0, 0, "send", "network", (), (), ())


def wanted_steps(samples: Samples, first: int, n_steps: int) -> list[int]:
    return samples.steps(first, first + n_steps - 1)


@pytest.mark.parametrize("n_steps", [1, 2, 3, 8, 127, 128, 129, 1000, 4097, 100_000])
@pytest.mark.parametrize("first", [0, 17])
def test_a_long_run_is_sampled_in_few_pairs_of_successive_steps(n_steps: int, first: int) -> None:
    wanted = wanted_steps(Samples(()), first, n_steps)
    assert len(wanted) <= 2 * max(MIN_PAIRS, min(MAX_PAIRS, n_steps // DISTANCE)) + 1
    assert wanted[0] == first and wanted == sorted(set(wanted)) and wanted[-1] < first + n_steps
    assert all(b == a + 1 for a, b in zip(wanted[0::2], wanted[1::2]))
    if n_steps > 2:     # all over the run
        assert wanted[-1] - first > (1 - 1 / MIN_PAIRS) * (n_steps - 1) - 2


def test_of_a_long_run_less_than_one_step_in_fifteen_is_looked_at() -> None:
    for n_steps in (200, 1000, 10_000, 1_000_000):
        assert len(wanted_steps(Samples(()), 0, n_steps)) < n_steps / 15


def test_pairs_hold_the_watched_operations_on_the_hosts_clock() -> None:
    samples = Samples({LAUNCH.number})
    samples.steps(10, 16)   # pairs (10, 11), (12, 13), (14, 15) and the last step alone
    for step in range(10, 17):
        samples.add(step, SEND, HostEvent(0, 1))
        samples.add(step, LAUNCH, HostEvent(step, step + 1))
    pairs = list(samples.pairs(lambda operation, moment: moment + 100))
    assert [list(steps) for steps in pairs[0]] == [
        [(LAUNCH, 110, 111)], [(LAUNCH, 111, 112)]
    ]  # fmt: skip
    assert [len(pair) for pair in pairs] == [2, 2, 2, 1]
    assert list(samples.pairs(lambda operation, moment: moment)) == []     # let go of


def test_times_are_read_only_when_they_are_asked_for() -> None:
    samples, times = Samples({LAUNCH.number}), HostEvent(0, 0)
    samples.steps(0, 0)
    samples.add(0, LAUNCH, times)
    times.end = 7
    ((steps,),) = samples.pairs(lambda operation, moment: moment)
    assert steps == [(LAUNCH, 0, 7)]


def test_a_new_run_forgets_the_old_one() -> None:
    samples = Samples({LAUNCH.number})
    samples.steps(0, 1)
    samples.add(0, LAUNCH, HostEvent(0, 1))
    samples.steps(2, 3)
    samples.add(2, LAUNCH, HostEvent(0, 7))
    assert [*next(samples.pairs(lambda operation, moment: moment))] == [[(LAUNCH, 0, 7)]]
