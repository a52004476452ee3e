# SPDX-License-Identifier: MIT
"""The choice of a halo width, by times that are made up."""
from __future__ import annotations

import random

import pytest

from controllers.tuning.widths import WARM, WINDOWS, WidthChooser
from hitmap import SerialCommunicator

WIDTHS = (1, 2, 4, 8, 16, 32, 64)
SEARCHES = ("dichotomic", "hill_climb", "exhaustive")


# milliseconds of a step: the first two as two H200 have shown them (docs/halos.md)
TABLES = {
    "late": (1.292, 0.596, 0.309, 0.146, 0.083, 0.05, 0.04),
    "H200": (0.066, 0.039, 0.037, 0.030, 0.034, 0.04, 0.055),
    "even": (0.40, 0.38, 0.36, 0.35, 0.345, 0.35, 0.37),
    "narrow": (0.40, 0.405, 0.41, 0.42, 0.44, 0.48, 0.56),
    "hollow": (0.40, 0.39, 0.385, 0.39, 0.40, 0.42, 0.46),
}


class Machine:
    """Takes for each step of a width what an exchange and wider boxes cost, and something more.

    A change of width costs an exchange; commands of a run take some time to get going.
    """

    def __init__(self, message_s: float, cell_s: float, noise: float = 0.0, seed: int = 0) -> None:
        self.step_s = {w: message_s / w + cell_s * (1 + 0.02 * w) for w in WIDTHS}
        self.best_s = min(self.step_s.values())
        self._change_s, self._noise, self._rng = message_s, noise, random.Random(seed)
        self._width, self._disturbed = 0, 0.0
        self.seconds, self.n_steps = 0.0, 0

    @classmethod
    def of_table(cls, name: str, seed: int) -> Machine:
        """As a table has it, with 5% of noise, and a tenth of all windows up to twice as long."""
        machine = cls(3e-4, 0.0, 0.05, seed)
        machine.step_s = {w: ms * 1e-3 for w, ms in zip(WIDTHS, TABLES[name])}
        machine.best_s, machine._disturbed = min(machine.step_s.values()), 0.1
        return machine

    def run(self, chooser: WidthChooser, most: int) -> None:
        n_steps, width = min(most, chooser.until_decision(10**9)), chooser.width
        longer = 1 + self._noise * self._rng.random()
        if self._disturbed:
            longer = 1 + abs(self._noise * self._rng.gauss(0, 1))
            longer *= 1 + self._rng.random() * (self._rng.random() < self._disturbed)
        seconds = n_steps * self.step_s[width] * longer
        seconds += self._change_s * (width != self._width) + 1e-5
        self._width, self.seconds = width, self.seconds + seconds
        self.n_steps += n_steps
        chooser.ran(n_steps, seconds)

    @property
    def n_lost(self) -> float:
        """Steps of the best width that would have been done meanwhile, beside those that were."""
        return self.seconds / self.best_s - self.n_steps


def chosen(machine: Machine, search: str, piece: int = 10**9) -> WidthChooser:
    chooser = WidthChooser(WIDTHS, 1, SerialCommunicator(), search)
    for _ in range(10**4):
        if chooser.over:
            return chooser
        machine.run(chooser, piece)
    raise AssertionError("it never ends")


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("message_s", [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2])
def test_it_is_the_best_one(search: str, message_s: float) -> None:
    machine = Machine(message_s, 1e-4)
    found = chosen(machine, search)
    assert machine.step_s[found.width] <= machine.best_s / 0.98
    assert found.width in found.of_widths and found.until_decision(7) == 7


@pytest.mark.parametrize("name", TABLES)
def test_it_is_the_best_one_where_others_use_the_machine(name: str) -> None:
    machines = [Machine.of_table(name, seed) for seed in range(200)]
    good = [one.step_s[chosen(one, "dichotomic").width] <= one.best_s / 0.98 for one in machines]
    assert sum(good) >= 195


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_a_search_loses_few_steps(search: str, noise: float) -> None:
    """On 50 machines: 0.05 s of them or, where steps are long, 700, and 400 on the average."""
    rng, lost = random.Random(7), list[float]()
    for seed in range(50):
        cell_s = 10 ** rng.uniform(-5, -2)
        message_s = cell_s * 10 ** rng.uniform(-2, 1.5)
        machine = Machine(message_s, cell_s, noise, seed)
        found = chosen(machine, search)
        assert machine.step_s[found.width] <= machine.best_s / 0.97
        assert machine.n_lost < 700 or machine.n_lost * machine.best_s < 0.05
        lost.append(machine.n_lost)
    assert sum(lost) / len(lost) < 400


def test_windows_go_on_over_runs_that_are_shorter() -> None:
    widths = [chosen(Machine(1e-3, 1e-4), "dichotomic", piece).width for piece in (3, 10**9)]
    assert widths[0] == widths[1]


def test_a_window_is_whole_rounds_and_long_enough() -> None:
    chooser = WidthChooser((3, 6), 3, SerialCommunicator())
    assert chooser.until_decision(10**9) == 3       # the first launches are not timed
    chooser.ran(3, 3e-5)
    wanted = chooser.until_decision(10**9)
    assert wanted % 3 == 0 and wanted >= WINDOWS[0][1] and wanted * 1e-5 >= WINDOWS[0][0]
    assert chooser.until_decision(5) == 5
    chooser = WidthChooser((3, 48), 48, SerialCommunicator())
    assert chooser.until_decision(10**9) == 3 * WARM


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("disturbed", [2, 4, 8])
def test_a_width_that_somebody_disturbed_gets_another_chance(search: str, disturbed: int) -> None:
    machine = Machine(1e-4, 1e-4)       # 2 is the best, or 4
    chooser, slow = WidthChooser((1, 2, 4, 8), 1, SerialCommunicator(), search), True
    while not chooser.over:
        width, n_steps = chooser.width, chooser.until_decision(10**9)
        spoilt = slow and width == disturbed and n_steps > WARM
        slow = slow and not spoilt
        chooser.ran(n_steps, n_steps * machine.step_s[width] * (3 if spoilt else 1))
    assert machine.step_s[chooser.width] <= min(machine.step_s[w] for w in (1, 2, 4, 8)) / 0.98
    assert not slow


def test_a_width_that_is_much_slower_gets_a_short_window_or_two() -> None:
    chooser = WidthChooser((1, 2, 4), 1, SerialCommunicator(), "exhaustive")
    windows = {1: 0, 2: 0, 4: 0}
    while not chooser.over:
        width, n_steps = chooser.width, chooser.until_decision(10**9)
        windows[width] += n_steps > WARM
        chooser.ran(n_steps, n_steps * {1: 1e-3, 2: 1.6e-3, 4: 1.1e-3}[width])
    assert windows == {1: 4, 2: 2, 4: 3} and chooser.width == 1


def test_one_width_is_no_choice() -> None:
    chooser = WidthChooser((4,), 4, SerialCommunicator())
    assert chooser.over and chooser.until_decision(100) == 100
