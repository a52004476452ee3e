# SPDX-License-Identifier: MIT
"""Devices are chosen from times alone: on simulated machines the best ones, or as good ones."""
from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import combinations

import pytest
from sample import sample

from controllers.balance.chooser import PIECES, Ahead, Chooser, first_choice, piece
from controllers.balance.prospects import Devices, Exchanges, Prospect, alone, prospects
from controllers.links.link import Link, Links
from controllers.links.subset import together
from controllers.plan import Location
from controllers.plan.rate import Rate

MOVE_S = 0.1


@dataclass
class Machine:
    """Devices and their exchanges as they are, and as a model has them; seconds with noise."""

    rates: list[Rate]
    guessed: list[Rate]
    exchange_s: float
    wrong: float        # so many times what an exchange takes is what the model says
    n_cells: int
    chance: random.Random
    noise: float = 0.02
    outliers: float = 0.1

    @classmethod
    def of(cls, seed: int, error: float = 0.2) -> Machine:
        """Two to four devices of unlike speed, on a field of any size."""
        chance = random.Random(seed)
        n = chance.randint(2, 4)
        rates = [Rate(chance.choice((5e-6, 2e-5)), 1e-11 * 10 ** chance.uniform(0, 2.5))
                 for _ in range(n)]  # fmt: skip
        guessed = [Rate(one.fixed_s, one.cell_s * chance.uniform(1 - error, 1 + error))
                   for one in rates]  # fmt: skip
        exchange_s = 10 ** chance.uniform(-5, -3.5)
        n_cells = int(10 ** chance.uniform(3.6, 8.5))
        return cls(rates, guessed, exchange_s, 3 ** chance.uniform(-1, 1), n_cells, chance)

    def prospects(self) -> list[Prospect]:
        model_s = self.wrong * self.exchange_s
        return prospects(self.guessed, self.n_cells, lambda some: model_s, is_guess=False)

    def right(self, devices: Devices) -> float:
        """Seconds of a step."""
        exchange_s = self.exchange_s * (len(devices) > 1)
        return together(self.rates, devices, self.n_cells, lambda some: exchange_s).seconds

    def seen(self, devices: Devices) -> float:
        seconds = self.right(devices) * self.chance.gauss(1, self.noise)
        return seconds * (3 if self.chance.random() < self.outliers else 1)

    @property
    def best_s(self) -> float:
        every = range(len(self.rates))
        return min(self.right(some) for n in every for some in combinations(every, n + 1))

    @property
    def best_alone_s(self) -> float:
        return min(self.right((one,)) for one in range(len(self.rates)))


def run(machine: Machine, chooser: Chooser, n_steps: int) -> float:
    """Seconds of a run, with its trials and moves, as a computation does it."""
    total_s, done = 0.0, 0
    while done < n_steps:
        ahead = Ahead(n_steps - done, MOVE_S)
        if chooser.is_seen:
            found = chooser.choose(ahead)
            if found is not None:
                chooser.current = found
                total_s += MOVE_S
                continue
        step_s = machine.right(chooser.current)
        looks = chooser.looks(ahead)
        n = min(piece(step_s) if looks else n_steps, n_steps - done)
        if looks:
            chooser.saw(machine.seen(chooser.current))
        done += n
        total_s += n * step_s
    return total_s


@pytest.mark.parametrize("seed", sample(range(400), 40))
def test_the_choice_is_as_good_as_the_best(seed: int) -> None:
    machine = Machine.of(seed)
    chooser = Chooser(machine.prospects())
    n_steps = int(1000 / machine.best_s)        # a run of some 17 minutes
    total_s = run(machine, chooser, n_steps)
    assert machine.right(chooser.current) <= machine.best_s / 0.98
    assert total_s <= n_steps * machine.best_s / 0.98 / 0.98
    assert chooser.spent_s <= 0.01 * n_steps * 1.5 * machine.best_s


@pytest.mark.parametrize("seed", sample(range(400), 40))
@pytest.mark.parametrize("n_steps", [100, 5000, 200_000])
def test_no_run_is_slower_than_the_best_device_alone(seed: int, n_steps: int) -> None:
    """Where the devices are known well, as after an earlier run, and exchanges are not."""
    machine = Machine.of(seed, error=0.01)
    machine.wrong = max(0.7, machine.wrong)
    total_s = run(machine, Chooser(machine.prospects()), n_steps)
    assert total_s <= n_steps * machine.best_alone_s / 0.98


def test_a_short_run_tries_nothing_and_looks_at_nothing() -> None:
    chooser = Chooser(Machine.of(3).prospects())
    assert not chooser.looks(Ahead(100, MOVE_S)) and chooser.choose(Ahead(100, MOVE_S)) is None
    assert chooser.n_trials == 0


FAST, SLOW = Prospect((0,), 1e-3, 8e-4, 1.2e-3), Prospect((1,), 1e-2, 8e-3, 1.2e-2)
BOTH = Prospect((0, 1), 9.5e-4, 7e-4, 1.3e-3)


def test_a_trial_shows_that_a_set_does_not_pay_and_the_run_goes_back() -> None:
    chooser, ahead = Chooser([FAST, SLOW, BOTH]), Ahead(10**6, MOVE_S)
    assert chooser.current == (0,) and chooser.looks(ahead) and not chooser.is_seen
    for _ in range(PIECES):
        chooser.saw(1.05e-3)
    assert chooser.choose(ahead) == (0, 1)
    chooser.current = (0, 1)
    for seconds in (*[1.2e-3] * (PIECES - 2), 9e-4, 1.3e-3):
        assert not chooser.is_seen
        chooser.saw(seconds)
    assert chooser.choose(ahead) == (0,)
    chooser.current = (0,)
    assert chooser.choose(ahead) is None and not chooser.looks(ahead)
    assert chooser.n_trials == 1 and chooser.spent_s == pytest.approx(0.2 + PIECES * 10 * 0.15e-3)


def test_what_is_refused_or_was_seen_before_is_not_tried() -> None:
    chooser, ahead = Chooser([FAST, SLOW, BOTH]), Ahead(10**6, MOVE_S)
    chooser.refuse((0, 1), "no memory")
    assert not chooser.looks(ahead)
    chooser = Chooser([FAST, SLOW, BOTH])
    chooser.begin({(0,): 1e-3, (0, 1): 9e-4, (0, 1, 2): 1e-4})
    assert chooser.current == (0, 1) and chooser.choose(ahead) is None
    chooser.current = (0,)      # nothing is left to be tried: the other one is better
    assert chooser.choose(ahead) == (0, 1) and chooser.choose(Ahead(100, MOVE_S)) is None
    chooser.refuse((0,), "no memory")
    chooser.refuse((0, 1), "no memory")
    assert chooser.first_again(is_guess=False) == (1,)


def test_guesses_are_believed_less_than_what_was_measured() -> None:
    half = Prospect((0, 1), 0.8e-3, 1e-4, 2e-3)
    assert first_choice([FAST, half]) == (0, 1)
    assert first_choice([FAST, half], is_guess=True) == (0,)
    assert first_choice([half]) == (0, 1)


def test_of_many_devices_some_sets_are_prospects() -> None:
    rates = [Rate(1e-6, 1e-9 * (n + 1)) for n in range(7)]
    found = prospects(rates, 10**6, lambda some: 4e-5 * len(some), is_guess=False)
    sets = [one.devices for one in found]
    assert len(sets) == len({*sets}) <= 16 and {(n,) for n in range(7)} < {*sets}
    assert tuple(range(7)) in sets and sets[0] == (0, 1, 2, 3, 4)


def test_an_exchange_is_that_of_the_slowest_with_its_neighbours() -> None:
    host, gpu = Location(0, 0, shares_host=True), Location(0, 1, shares_host=False)
    usual = Exchanges([host, host, gpu], 20e3)
    assert usual((0, 1)) == pytest.approx(2 * 21e-6) and usual((0,)) == 0.0
    assert usual((0, 1, 2)) == pytest.approx(2 * 21e-6 + 2 * 61e-6)
    links = Links.uniform(3, Link(1e-5, 1e9), 1.0)
    assert Exchanges([host, host, gpu], 1e4, links)((0, 2)) == pytest.approx(4e-5)
    assert alone(Rate(0.0, 1e-9), "cpu").fixed_s > alone(Rate(0.0, 1e-9), "gpu").fixed_s
