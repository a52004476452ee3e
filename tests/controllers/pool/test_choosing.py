# SPDX-License-Identifier: MIT
"""Divisions of simulated tasks: near the best one of all, found soon, and kept; no clock."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

import numpy as np
import pytest

from controllers.pool.hybrid.choosing import Counts, chosen
from controllers.pool.hybrid.division import Divisions, End, RowsEnd, divided, end_of

NEAR = 1.03     # times the time of the best division
SOON = 60       # executions
N = 25


class Machine:
    """Sides with seconds for a unit, and how long whole tasks really take on them.

    hinders: how many times as long a side takes while others compute.  dividing_s: what it costs
    to divide at all.  adding_s: on the first side, for each unit that others do.
    """

    def __init__(
        self, seconds: tuple[float, ...], hinders: float = 1.0, dividing_s: float = 0.0,
        adding_s: float = 0.0,
    ) -> None:  # fmt: skip
        self.seconds, self.hinders = seconds, hinders
        self.dividing_s, self.adding_s = dividing_s, adding_s

    def takes(self, counts: Counts) -> float:
        if max(counts) == sum(counts):
            return sum(s * n for s, n in zip(self.seconds, counts))
        ends = [self.hinders * s * n for s, n in zip(self.seconds, counts)]
        ends[0] += self.adding_s * (sum(counts) - counts[0])
        return max(ends) + self.dividing_s

    def best_s(self, n: int) -> float:
        return min(map(self.takes, divisions(n, len(self.seconds))))


def divisions(n: int, n_sides: int) -> Iterator[Counts]:
    for counts in product(range(n + 1), repeat=n_sides - 1):
        if sum(counts) <= n:
            yield (*counts, n - sum(counts))


def chosen_on(
    machine: Machine, foreseen_s: tuple[float, ...], n: int, seed: int | None = None,
    executions: int = SOON,
) -> list[Counts]:  # fmt: skip
    """The divisions of one execution after the other; a tenth of their times is disturbed."""
    ends: list[Callable[[int, int], float]] = [
        lambda first, last, s=s: s * (last - first) for s in foreseen_s     # type: ignore[misc]
    ]
    best = tuple(divided(ends, n))
    random = np.random.default_rng(seed)
    times: dict[Counts, list[float]] = {}
    found: list[Counts] = []
    for _ in range(executions):
        last = found[-1] if found else None
        found.append(chosen(lambda counts: end_of(ends, counts), best, last, times))
        disturbed = 1.0 if seed is None else random.choice([1.0, 3.0], p=[0.9, 0.1])
        noise = 1.0 if seed is None else random.normal(1, 0.002)
        times.setdefault(found[-1], []).append(machine.takes(found[-1]) * disturbed * noise)
    return found


MACHINES = {
    "as foreseen": Machine((3.0, 1.0)),
    "alike": Machine((1.0, 1.0)),
    "sides hinder each other": Machine((2.0, 1.0), hinders=1.3),
    "so much that it does not pay": Machine((2.0, 1.0), hinders=1.8),
    "dividing costs": Machine((3.0, 1.0), dividing_s=3.0),
    "dividing costs too much": Machine((3.0, 1.0), dividing_s=9.0),
    "the first side adds": Machine((3.0, 1.0), adding_s=0.5),
    "the first side adds too much": Machine((3.0, 1.0), adding_s=2.0),
    "one side is far better": Machine((100.0, 1.0)),
}


WRONG = [(1.0, 1.0), (1.5, 1.0), (0.7, 1.0), (1.0, 1.6), (0.6, 0.6)]     # times what a side takes


def found_on(machine: Machine, wrong: tuple[float, ...], seed: int | None = None) -> list[Counts]:
    return chosen_on(machine, tuple(s * w for s, w in zip(machine.seconds, wrong)), N, seed)


@pytest.mark.parametrize("name", MACHINES)
def test_the_division_is_near_the_best_one_whatever_was_foreseen(name: str) -> None:
    machine = MACHINES[name]
    for wrong in WRONG:
        found = found_on(machine, wrong)
        assert machine.takes(found[-1]) <= NEAR * machine.best_s(N), wrong
        assert sum(one != other for one, other in zip(found, found[1:])) <= 10, wrong
        wasted = sum(map(machine.takes, found)) / machine.best_s(N) - len(found)
        assert wasted <= SOON / 6, "of as many executions"


@pytest.mark.parametrize("n_seeds", [2, pytest.param(20, marks=pytest.mark.whole)])
def test_executions_that_were_disturbed_hardly_matter(n_seeds: int) -> None:
    cases = [*product(MACHINES.values(), WRONG, range(n_seeds))]
    near = [
        machine.takes(found_on(machine, wrong, seed)[-1]) <= NEAR * machine.best_s(N)
        for machine, wrong, seed in cases
    ]  # fmt: skip
    assert sum(near) >= 0.98 * len(cases)


def test_three_sides_are_divided_as_well() -> None:
    machine = Machine((4.0, 2.0, 1.0), hinders=1.2, adding_s=0.2)
    found = chosen_on(machine, (4.0, 3.0, 1.0), 14, executions=150)
    assert machine.takes(found[-1]) <= NEAR * machine.best_s(14)


def test_a_division_is_found_once_while_sides_are_done_with_as_much() -> None:
    divisions, asked = Divisions(), list[int]()

    class Counted(RowsEnd):
        def __call__(self, first: int, last: int) -> float:
            asked.append(last)
            return super().__call__(first, last)

    def ends(*seconds: float) -> list[End]:
        n = range(65)
        return [Counted(0.0, [k * one for k in n], [0.0 for _ in n]) for one in seconds]

    assert divisions.of("it", ends(3.0, 1.0), 64, 0.0) == [16, 48]
    n_asked = len(asked)
    found = divisions.of("it", ends(3.0, 1.0), 64, 0.0)
    assert found == [16, 48] and len(asked) == n_asked
    found.clear()
    assert divisions.of("it", ends(3.0, 1.0), 64, 0.0) == [16, 48], "nobody changes what is known"
    assert divisions.of("it", ends(1.0, 1.0), 64, 0.0) == [32, 32]
    assert divisions.of("another", ends(3.0, 1.0), 64, 0.0) == [16, 48]
    assert divisions.of("it", ends(1.0, 1.0), 64, 64.0) == [64, 0], "it is not over before"


def test_a_division_stays_while_another_one_is_hardly_better() -> None:
    seconds = {(4, 4): 1.0, (3, 5): 0.99, (5, 3): 1.2, (2, 6): 1.2}
    times: dict[Counts, list[float]] = {one: [some] * 3 for one, some in seconds.items()}

    def foreseen(counts: Counts) -> float:
        return 9.0 if 0 in counts else 1.0

    assert chosen(foreseen, (4, 4), (4, 4), times) == (4, 4)
    times[3, 5] = [0.97] * 3
    assert chosen(foreseen, (4, 4), (4, 4), times) == (3, 5)


def test_a_side_that_is_busy_now_gets_less() -> None:
    seconds = {(0, 8): 8.0, (4, 4): 4.0, (3, 5): 5.0, (5, 3): 5.0}
    times: dict[Counts, list[float]] = {one: [some] * 3 for one, some in seconds.items()}
    ends = [lambda first, last: float(last - first)] * 2

    def delayed(counts: Counts) -> float:
        return 9.0 * (counts[0] > 0)

    assert chosen(lambda one: end_of(ends, one), (4, 4), (4, 4), times, delayed) == (0, 8)
