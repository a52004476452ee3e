# SPDX-License-Identifier: MIT
"""Which steps of a window are timed, and what counts of them."""
from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from controllers.balance.watch import LEFT_OUT, Watch
from controllers.device.event import HostEvent


def watch() -> Watch:
    """Of three launches in a step: two places of device 0, one of device 1; copies are none."""
    where = [SimpleNamespace(controller=0), SimpleNamespace(controller=0),
             SimpleNamespace(controller=1)]  # fmt: skip
    plan = SimpleNamespace(places=(0, 1, 2), locations=where)
    engine: Any = SimpleNamespace(ends=SimpleNamespace(launches={0, 1, 2}), plan=plan)
    return Watch(engine)


def told(log: Watch, first: int, last: int, seconds: dict[int, float]) -> list[int]:
    steps = [*log.steps(first, last)]
    for step in steps:
        for place in (0, 1, 2):
            operation: Any = SimpleNamespace(number=place, place=place)
            log.add(step, operation, HostEvent(0, round(seconds.get(step, 1e-3) * 1e9)))
        copy: Any = SimpleNamespace(number=7, place=0)
        log.add(step, copy, HostEvent(0, 10**9))
    log.read()
    return steps


def test_the_first_steps_of_a_window_are_left_out_once() -> None:
    log = watch()
    assert told(log, 10, 10, {}) == []
    assert told(log, 11, 14, {}) == [12, 13, 14] and LEFT_OUT == 2
    assert told(log, 15, 16, {}) == [15, 16]
    log.begin(5)
    assert log.times({}) == {} and told(log, 17, 21, {}) == [19, 20, 21]


def test_launches_of_a_device_are_summed_and_odd_steps_do_not_count() -> None:
    log = watch()
    told(log, 0, 19, {4: 0.5, 9: 0.2})
    assert log.times({}) == {0: 2e-3, 1: 1e-3}


def test_of_a_device_with_few_cells_late_steps_count() -> None:
    """It is to be early: one step of ten may take longer."""
    log = watch()
    told(log, 0, 22, {step: 1e-3 * step for step in range(23)})
    times = log.times({1: 0.9})
    assert times[1] == pytest.approx(20e-3) and times[0] == pytest.approx(24e-3)
    assert log.times({})[1] == pytest.approx(12e-3)


def test_of_many_steps_some_pairs_are_looked_at_however_many_are_run_at_once() -> None:
    log, steps, number = watch(), list[int](), 0
    log.begin(1002)
    for count in (1, 7, 300, 2, 692):
        steps += told(log, number, number + count - 1, {})
        number += count
    assert number == 1002 and 28 <= len(steps) <= 36 and steps[0] == 2 and steps[-1] > 900
    assert all(low + 1 == high for low, high in zip(steps[::2], steps[1::2]))


def test_a_window_that_becomes_longer_is_looked_at_less_often() -> None:
    log = watch()
    log.begin(20)
    assert len(told(log, 0, 19, {})) == 18
    log.expect(320)
    assert len(told(log, 20, 319, {})) < 40
