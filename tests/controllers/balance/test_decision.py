# SPDX-License-Identifier: MIT
"""Shares are found from times alone: few moves, no move without gain, changes followed."""
from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np
import pytest
from sample import sample

from controllers.balance.decision import MOST_MOVES, Decider, Window, parts_in_time
from controllers.balance.shares import equal_times
from controllers.balance.sightings import Sightings
from controllers.plan.rate import Rate
from hitmap.cut import split_weighted

ROWS, WIDTH = 4096, 1000
N_STEPS = 500   # of a window, of which some are enough


@dataclass
class Machine:
    """Devices that take a + b * cells, with noise, and now and then much longer."""

    rates: list[Rate]
    noise: float = 0.0
    outliers: float = 0.0
    align: int = 1
    chance: random.Random = field(default_factory=lambda: random.Random(5))

    def cells_of(self, shares: Sequence[float]) -> list[int]:
        cuts = split_weighted(ROWS, shares, self.align)
        return [WIDTH * (high - low) for low, high in zip(cuts, cuts[1:])]

    def window(self, cells: Sequence[int], n_left: int = 10**6, cost_s: float = 0.1) -> Window:
        return Window([self._median(s, n) for s, n in zip(self.rates, cells)],
                      cells, n_left, lambda shares: cost_s, N_STEPS)  # fmt: skip

    def _median(self, speed: Rate, cells: int) -> float:
        return median(
            speed.seconds(cells) * (1 + self.noise * self.chance.random())
            * (10 if self.chance.random() < self.outliers else 1)
            for _ in range(20)
        )  # fmt: skip

    def seconds(self, cells: Sequence[int]) -> float:
        return max(s.seconds(n) for s, n in zip(self.rates, cells))

    @property
    def optimum(self) -> float:
        return self.seconds([round(n) for n in equal_times(self.rates, ROWS * WIDTH, 0)])


def settle(machine: Machine, decider: Decider, cells: list[int], most: int = 100) -> list[int]:
    """Windows until shares are settled; the cells then."""
    for _ in range(most):
        decision = decider.decide(machine.window(cells), machine.cells_of)
        if decision.shares is not None:
            cells = machine.cells_of(decision.shares)
        elif decider.settled:
            break
    return cells


def random_machine(seed: int) -> Machine:
    chance = random.Random(seed)
    rates = [
        Rate(chance.choice([0.0, 1e-5, 2e-4]), 10 ** chance.uniform(-9.5, -8))
        for _ in range(chance.randint(2, 6))
    ]
    return Machine(rates, 0.05, 0.1, chance.choice([1, 8]), chance)


@pytest.mark.parametrize("seed", sample(range(200), 10))
def test_shares_settle_near_the_optimum_in_at_most_three_moves(seed: int) -> None:
    machine = random_machine(seed)
    decider = Decider(len(machine.rates), 0)
    cells = settle(machine, decider, machine.cells_of([1] * len(machine.rates)))
    assert decider.settled and decider.over and decider.n_moves <= MOST_MOVES
    grain = max(s.cell_s for s in machine.rates) * machine.align * WIDTH
    assert machine.seconds(cells) <= machine.optimum / 0.95 + grain


@pytest.mark.parametrize("factor", [2, 3, 5])
def test_a_slower_part_is_found_by_one_move(factor: int) -> None:
    machine = Machine([Rate(0, 1e-9), Rate(0, factor * 1e-9)])
    decider = Decider(2, 0)
    cells = settle(machine, decider, machine.cells_of([1, 1]))
    assert decider.n_moves == 1
    assert cells[0] == pytest.approx(factor * cells[1], rel=0.01)


def test_devices_that_are_alike_are_left_alone() -> None:
    machine = Machine([Rate(1e-5, 1e-9)] * 4, noise=0.05, outliers=0.2)
    decider = Decider(4, 0, follows=True)
    cells = machine.cells_of([1] * 4)
    decisions = [decider.decide(machine.window(cells), machine.cells_of) for _ in range(50)]
    assert {one.shares for one in decisions} == {None}


def test_a_move_has_to_pay_within_the_steps_that_are_left() -> None:
    machine = Machine([Rate(0, 1e-9), Rate(0, 2e-9)])
    cells = machine.cells_of([1, 1])        # 4.1 ms a step, 2.7 ms at best
    decider = Decider(2, 0)
    found = decider.decide(machine.window(cells, n_left=100, cost_s=0.2), machine.cells_of)
    assert found.shares is None and "costs more" in found.why and not decider.over
    assert found.gain_s == pytest.approx(100 * (found.now_s - found.new_s))
    found = decider.decide(machine.window(cells, n_left=200, cost_s=0.2), machine.cells_of)
    assert found.shares == pytest.approx((2 / 3, 1 / 3))


@pytest.mark.parametrize("seed", sample(range(100), 10))
def test_a_device_that_becomes_slower_is_noticed_within_five_windows(seed: int) -> None:
    machine = random_machine(seed)
    decider = Decider(len(machine.rates), 0, follows=True)
    cells = settle(machine, decider, machine.cells_of([1] * len(machine.rates)))
    slow = seed % len(cells)
    machine.rates[slow] = Rate(2 * machine.rates[slow].fixed_s,
                                 2 * machine.rates[slow].cell_s)  # fmt: skip
    for _ in range(5):
        decision = decider.decide(machine.window(cells), machine.cells_of)
        if decision.shares is not None:
            cells = machine.cells_of(decision.shares)
    grain = max(s.cell_s for s in machine.rates) * machine.align * WIDTH
    assert machine.seconds(cells) <= machine.optimum / 0.95 + grain


def test_a_device_that_was_slow_for_long_is_followed_when_it_is_fast_again() -> None:
    machine = Machine([Rate(0, 1e-9), Rate(0, 2e-9)])
    decider = Decider(2, 0, follows=True)
    cells = settle(machine, decider, machine.cells_of([1, 1]))
    for _ in range(50):
        assert decider.decide(machine.window(cells), machine.cells_of).shares is None
    machine.rates[1] = Rate(0, 1e-9)
    for _ in range(5):
        decision = decider.decide(machine.window(cells), machine.cells_of)
        if decision.shares is not None:
            cells = machine.cells_of(decision.shares)
    assert machine.seconds(cells) <= machine.optimum / 0.95


def test_a_move_for_which_tiles_have_room_pays_for_less() -> None:
    """As one to other tiles it would not."""
    machine = Machine([Rate(0, 1e-9), Rate(0, 1.1e-9)])
    cells = machine.cells_of([1, 1])
    times = machine.window(cells).seconds
    near = Window(times, cells, 1000, lambda shares: 0.05 if shares[0] < 0.53 else 0.2, 200)
    found = Decider(2, 0).decide(near, machine.cells_of)
    assert found.shares == pytest.approx((0.524, 0.476), abs=1e-3)
    assert 0.05 == found.cost_s < found.gain_s < 0.2


def test_one_odd_window_moves_nothing_once_shares_are_settled() -> None:
    machine = Machine([Rate(0, 1e-9)] * 2)
    decider, cells = Decider(2, 0, follows=True), machine.cells_of([1, 1])
    for window in range(20):
        times = machine.window(cells)
        odd = Window([3 * times.seconds[0], times.seconds[1]], cells, 10**6, times.cost_of, N_STEPS)
        given = odd if window % 2 else times
        assert decider.decide(given, machine.cells_of).shares is None


def test_little_is_moved_for_when_much_was_seen() -> None:
    """Cores that others use, too, differ by as much from one short window to the next."""
    for gain, n_windows in ((0.3, 1), (0.1, 2), (0.041, 10)):    # of 40 that are enough
        machine = Machine([Rate(0, 1e-9), Rate(0, (1 + gain) / (1 - gain) * 1e-9)])
        cells, found = machine.cells_of([1, 1]), list[bool]()
        decider = Decider(2, 0)
        seconds = [rate.seconds(n) for rate, n in zip(machine.rates, cells)]
        for _ in range(n_windows):
            window = Window(seconds, cells, 4000, lambda shares: 1e-3, 20)
            found.append(decider.decide(window, machine.cells_of).shares is not None)
            assert not decider.settled
        assert found == [False] * (n_windows - 1) + [True]


def test_one_odd_window_counts_for_nothing_while_shares_are_looked_for() -> None:
    machine = Machine([Rate(0, 1e-9)] * 2)
    decider, cells = Decider(2, 0), machine.cells_of([1, 1])
    for ms, moves in ((4, False), (9, False), (4, False), (9, False), (9, True)):
        window = Window([2e-3, ms / 2e3], cells, 10**6, lambda shares: 0.1, 2)
        found = decider.decide(window, machine.cells_of)
        assert (found.shares is not None) == moves
    assert found.shares == pytest.approx((9 / 13, 4 / 13), abs=1e-3), "it is another device now"


def test_every_device_keeps_the_least_it_may_have() -> None:
    machine = Machine([Rate(0, 1e-9), Rate(0, 1e-6)])
    decider = Decider(2, 24 * WIDTH)
    assert settle(machine, decider, machine.cells_of([1, 1])) == [4072 * WIDTH, 24 * WIDTH]
    assert decider.n_moves == 1


def test_a_device_without_cells_stays_without() -> None:
    machine = Machine([Rate(0, 1e-9)] * 2)
    decider = Decider(2, 0)
    found = decider.decide(machine.window([ROWS * WIDTH, 0]), machine.cells_of)
    assert found.shares is None and "no cells" in found.why and decider.over


def test_times_that_no_device_has_make_no_overhead() -> None:
    seen = Sightings()
    seen.add(100, 1.0, 20)
    seen.add(50, 2.0, 20)   # slower with fewer cells
    assert seen.rate == Rate(0.0, 0.04)
    seen.add(49, 2.1, 20)   # too near to tell
    assert seen.rate.fixed_s == 0.0
    seen.forget()
    assert seen.rate.seconds(98) == pytest.approx(4.2)


def test_windows_on_about_as_many_cells_count_together() -> None:
    seen = Sightings()
    for seconds, n_steps in ((1.0, 20), (1.2, 60), (1.1, 20)):
        seen.add(100, seconds, n_steps)
    assert seen.rate.seconds(100) == pytest.approx(1.14)
    assert seen.newest == {100: seen.rate.seconds(100)} and seen.n_near == 100
    seen.add(110, 1.43, 100)    # of 11.4 and 13 ms a cell
    assert seen.rate.seconds(110) == pytest.approx(1.342) and seen.n_near == 200
    seen.fade(50)
    assert seen.rate.seconds(110) == pytest.approx(1.342) and seen.n_near == 100
    seen.add(110, 1.32, 100)    # of 11.4, 13 and twice 12
    assert seen.rate.seconds(110) == pytest.approx(1.331)
    seen.add(1000, 11.0, 20)
    assert seen.rate.seconds(1000) == pytest.approx(11.0) and seen.n_near == 20
    seen.add(1000, 10.0, 20)
    assert seen.rate.seconds(1000) == pytest.approx(10.5)
    assert seen.rate.fixed_s > 0, "what fewer cells have taken is still known"


@pytest.mark.parametrize("noise", sample([0.02, 0.05], 1))
def test_shares_are_near_the_optimum_where_each_window_is_disturbed(noise: float) -> None:
    """On the average of many: what three windows say is less wrong than what one says."""
    found = []
    for seed in range(100):
        chance, machine = random.Random(seed), Machine([Rate(0, 1e-9), Rate(0, 2e-9)])
        decider, cells = Decider(2, 0), machine.cells_of([1, 1])
        for _ in range(9):
            right = machine.window(cells)
            seconds = [one * chance.gauss(1, noise) for one in right.seconds]
            window = Window(seconds, cells, 10**6, right.cost_of, N_STEPS)
            decision = decider.decide(window, machine.cells_of)
            if decision.shares is not None:
                cells = machine.cells_of(decision.shares)
        found.append(machine.optimum / machine.seconds(cells))
    assert median(found) > 1 - noise / 2


def test_shares_suit_speeds_that_drift_for_seconds() -> None:
    """In windows that become longer, as a balance has them: a single one tells of a moment."""
    n_cells, step_s, n_steps, off = ROWS * WIDTH, 2e-2, 1200, list[float]()
    for seed in range(40):
        draw = np.random.default_rng(seed)
        speeds = np.array([[8e-9], [16e-9]]) * np.exp(sum(
            drifting(draw, n_steps, seconds / step_s) for seconds in (0.2, 1.0, 4.0)
        ))  # fmt: skip
        decider, at, length, share = Decider(2, 0), 0, 3, 0.5
        while not decider.settled:
            cells = [round(n_cells * (1 - share)), round(n_cells * share)]
            seen = [float(n * np.median(s[at : at + length])) for n, s in zip(cells, speeds)]
            at += length
            window = Window(seen, cells, n_steps - at, lambda shares: 0.05, length)
            moved = decider.decide(window, lambda shares: [round(n_cells * x) for x in shares])
            share = share if moved.shares is None else moved.shares[1]
            length = min(2 * length, 40) if moved.shares is None else 3
        assert decider.n_moves <= MOST_MOVES
        right = float(np.mean(speeds[0]) / np.sum(np.mean(speeds, 1)))
        off.append(abs(share / right - 1))
    assert median(off) < 0.025 and max(off) < 0.1


def drifting(draw: np.random.Generator, n: int, n_alike: float) -> np.ndarray[Any, Any]:
    """For two devices, of n steps: by which part each is slower, 3 %, for about so many of them."""
    keep, found = math.exp(-1 / n_alike), np.empty((2, n))
    now = 0.03 * draw.standard_normal(2)
    for step in range(n):
        now = keep * now + 0.03 * math.sqrt(1 - keep**2) * draw.standard_normal(2)
        found[:, step] = now
    return found


def test_what_is_foreseen_is_not_taken_for_seen() -> None:
    """Beside each other both devices take longer than each alone, on which a calibration goes."""
    machine = Machine([Rate(0, 2e-9), Rate(0, 6e-9)])
    alone = [Rate(0, 1e-9), Rate(0, 3e-9)]
    decider, cells = Decider(2, 0), machine.cells_of([1, 1])
    seconds = [rate.seconds(n) for rate, n in zip(alone, cells)]
    before = Window(seconds, cells, 10**6, lambda shares: 0.1, 0)
    found = decider.foreseen(alone, before, machine.cells_of)
    assert found.shares == pytest.approx((0.75, 0.25)) and not decider.settled
    cells = machine.cells_of(found.shares)
    assert settle(machine, decider, cells) == cells and decider.n_moves == 1
    seconds = machine.window(cells).seconds
    assert [dict(one) for one in decider.newest] == [
        {n: pytest.approx(s)} for n, s in zip(cells, seconds)
    ]
    assert [rate.fixed_s for rate in decider.rates] == [0, 0]


@pytest.mark.parametrize(("slower", "moves"), [(18.0, False), (2.0, True)])
def test_late_steps_of_a_device_with_few_cells_scatter(slower: float, moves: bool) -> None:
    """A gain of 4 % may be none, and is not worth a move there."""
    n = 10**6
    cells = [round(slower * n), n]
    seconds = [1e-9 * cells[0], 1.045e-9 * slower * n]
    window = Window(seconds, cells, 10**6, lambda shares: 1e-6, 10**6)
    found = Decider(2, 0).decide(window, lambda shares: [sum(cells) * one for one in shares])
    assert (found.shares is not None) == moves


def test_nobody_waits_for_a_device_with_few_cells_whose_steps_scatter() -> None:
    """As each step ends with its last device; where all have many cells, medians count."""
    draw = np.random.default_rng(3)
    machine = Machine([Rate(0, 1e-9), Rate(0, 18e-9)])
    seconds = {}
    for is_early in (False, True):
        decider, cells = Decider(2, WIDTH), machine.cells_of(shares_of(machine))
        for _ in range(6):
            scatter = 1 + 0.2 * draw.standard_normal(32)
            part = parts_in_time(cells)[1] if is_early else 0.5
            seen = [1e-9 * cells[0], float(np.quantile(18e-9 * cells[1] * scatter, part))]
            window = Window(seen, cells, 10**6, lambda shares: 1e-3, N_STEPS)
            found = decider.decide(window, machine.cells_of)
            cells = cells if found.shares is None else machine.cells_of(found.shares)
        steps = 18e-9 * cells[1] * (1 + 0.2 * draw.standard_normal(4000))
        seconds[is_early] = float(np.maximum(steps, 1e-9 * cells[0]).mean())
    assert seconds[True] < 1.035 * machine.optimum < seconds[False]


def shares_of(machine: Machine) -> list[float]:
    n_cells = ROWS * WIDTH
    return [n / n_cells for n in equal_times(machine.rates, n_cells, 0)]
