# SPDX-License-Identifier: MIT
"""Who waits for a launch leaves the core to others, and notices its end in time."""
from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from controllers.device.event import COMPLETE, UNDER_WAY
from controllers.pool import launched
from controllers.pool.launched import KernelLaunch, Launched


class Machine:
    """A clock that goes on while somebody sleeps or waits, and a launch that takes so long."""

    def __init__(self, takes_s: float) -> None:
        self.now_s, self.polled_s, self.n_naps, self._takes_s = 0.0, 0.0, 0, takes_s

    def perf_counter_ns(self) -> int:
        return round(self.now_s * 1e9)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.n_naps += 1

    @property
    def command_execution_status(self) -> int:
        return UNDER_WAY if self.now_s < self._takes_s else COMPLETE

    def wait(self) -> None:
        """As drivers do that poll."""
        self.polled_s += max(0.0, self._takes_s - self.now_s)
        self.now_s = max(self.now_s, self._takes_s)


def run(
    monkeypatch: pytest.MonkeyPatch, takes_s: float, foreseen_s: float,
    soon: Callable[[], None] | None = None,
) -> Machine:  # fmt: skip
    machine = Machine(takes_s)
    monkeypatch.setattr(launched, "time", machine)
    commands: Any = SimpleNamespace(issue=lambda command, after: machine)
    one = Launched(commands, KernelLaunch(lambda wait_for: machine))
    assert one.wait(foreseen_s, naps=foreseen_s > 0, soon=soon) == pytest.approx(machine.now_s)
    return machine


@pytest.mark.parametrize("late", [0.3, 0.9, 1.0, 1.1, 3.0])
def test_a_long_launch_is_slept_through_and_its_end_is_noticed(
    monkeypatch: pytest.MonkeyPatch, late: float
) -> None:
    """However much longer or shorter it takes than was foreseen."""
    machine = run(monkeypatch, 0.2 * late, 0.2)
    assert machine.polled_s < 0.01 * machine.now_s
    assert machine.now_s < 0.2 * late * (1.03 if late >= 0.9 else 1.75)
    assert machine.n_naps < 1200


def test_a_short_launch_and_one_of_which_nothing_is_foreseen_are_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert run(monkeypatch, 2e-4, 3e-4).n_naps == 0
    assert run(monkeypatch, 0.2, 0.0).n_naps == 0


@pytest.mark.parametrize("takes_s", [1e-3, 0.3])
def test_the_end_is_noticed_although_hours_were_foreseen(
    monkeypatch: pytest.MonkeyPatch, takes_s: float
) -> None:
    for soon in (None, lambda: None):
        machine = run(monkeypatch, takes_s, 36000.0, soon)
        assert takes_s <= machine.now_s <= 2.5 * takes_s and machine.n_naps < 30


@pytest.mark.parametrize("late", [0.5, 0.8, 1.0, 1.2])
def test_the_end_is_told_of_before_it_comes(
    monkeypatch: pytest.MonkeyPatch, late: float
) -> None:
    """Of a launch that ends sooner than that, when this is seen, after few looks."""
    told, foreseen_s = list[int](), 50e-3

    def soon() -> None:
        told.append(launched.time.perf_counter_ns())

    machine = run(monkeypatch, late * foreseen_s, foreseen_s, soon)
    when_s = 1e-9 * told.pop()
    if late > 0.9:
        assert 0.88 * foreseen_s <= when_s <= 0.9 * foreseen_s
    else:
        assert 0.999 * late * foreseen_s <= when_s <= (late + 0.23) * foreseen_s
    assert not told and machine.now_s >= when_s - 1e-9
