# SPDX-License-Identifier: MIT
"""Orders of controllers along the cuts: the one whose slowest controller is done soonest.

Up to MOST_EXACT controllers all orders are considered: one position after another gets a
controller, and what cannot become better than the best so far is not followed.  Beyond, controllers
change places by twos with the slowest one, as long as that helps.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from controllers.links.link import Links
from controllers.links.traffic import Traffic

MOST_EXACT = 8
MOST_SWAPS = 40_000     # that are looked at, beyond, times controllers: some 0.3 s
EQUAL = 1e-9            # relative, of sums of seconds in another order
N_SHUFFLED = 4          # starts at random, the same on all ranks


@dataclass(frozen=True)
class Order:
    """The controller of each position, and the seconds of the slowest one."""

    controllers: tuple[int, ...]
    seconds: float


def best_order(traffic: Traffic, links: Links, below: float = math.inf) -> Order | None:
    """The order whose slowest controller is done soonest, if that is before `below`; else None.

    Of equals that in which all together take least; of these that in which each position has the
    controller of its number, or the first.
    """
    n = traffic.n_positions
    assert n == links.n_controllers, "links of all controllers"
    if n <= MOST_EXACT:
        return _Search(traffic, links).best(below)
    found = _swapped(traffic, links)
    return found if found.seconds < below else None


class _Search:
    """All orders, by branch and bound."""

    def __init__(self, traffic: Traffic, links: Links) -> None:
        self._n = n = traffic.n_positions
        each = range(n)
        self._own = [[nbytes / links.packing[a] for a in each] for nbytes in traffic.packed]
        self._pairs = _pairs(traffic, links)
        self._near = [[j for j in each if (i, j) in self._pairs] for i in each]
        self._least = {     # by a position's controller, whichever the other one has
            pair: [min(times[a][b] for b in each if b != a) for a in each] if n > 1 else [0.0]
            for pair, times in self._pairs.items()
        }
        self._alike = [[_alike(links, a, b) for b in each] for a in each]
        self._best: tuple[list[int], float, float] | None = None

    def best(self, below: float) -> Order | None:
        """The shortest of those below a limit."""
        usual = [*range(self._n)]
        seconds, total = self._bound(usual)
        if seconds < below:
            self._best = usual, seconds, total
        self._follow([], below)
        return None if self._best is None else Order(tuple(self._best[0]), self._best[1])

    def _follow(self, order: list[int], below: float) -> None:
        """All orders that begin so."""
        seconds, total = self._bound(order)
        if seconds >= below or not self._may_be_best(seconds, total):
            return
        if len(order) == self._n:
            self._best = order, seconds, total
            return
        for controller in self._next(order):
            self._follow([*order, controller], below)

    def _may_be_best(self, seconds: float, total: float) -> bool:
        """Whether what takes at least so long, and so long together, can be better."""
        if self._best is None:
            return True
        _, best_s, best_total = self._best
        if seconds < best_s * (1 - EQUAL):
            return True
        return seconds <= best_s * (1 + EQUAL) and total < best_total * (1 - EQUAL)

    def _next(self, order: list[int]) -> Iterator[int]:
        """The controllers that are free, of those that are alike the first one."""
        tried: list[int] = []
        for controller in range(self._n):
            if controller not in order and not any(self._alike[controller][a] for a in tried):
                tried.append(controller)
                yield controller

    def _bound(self, order: list[int]) -> tuple[float, float]:
        """What the slowest of the positions that have a controller takes at the least, and all."""
        slowest = total = 0.0
        for position, a in enumerate(order):
            found = self._own[position][a]
            for other in self._near[position]:
                pair = position, other
                found += (
                    self._pairs[pair][a][order[other]] if other < len(order)
                    else self._least[pair][a]
                )  # fmt: skip
            slowest, total = max(slowest, found), total + found
        return slowest, total


def _pairs(traffic: Traffic, links: Links) -> dict[tuple[int, int], list[list[float]]]:
    """Both ways between two positions: the seconds by the controllers that they have."""
    found: dict[tuple[int, int], list[list[float]]] = {}
    each, nothing = range(links.n_controllers), (0, 0)
    for pair in {tuple(sorted(way)) for way in traffic.messages}:
        one, other = pair
        n_there, there = traffic.messages.get((one, other), nothing)
        n_back, back = traffic.messages.get((other, one), nothing)
        times = [
            [
                links.between[a][b].seconds(there, n_there)
                + links.between[b][a].seconds(back, n_back)
                for b in each
            ]
            for a in each
        ]
        found[one, other] = times
        found[other, one] = [list(column) for column in zip(*times)]
    return found


def _alike(links: Links, one: int, other: int) -> bool:
    """Whether nothing changes when two controllers change places."""
    swapped = [*range(links.n_controllers)]
    swapped[one], swapped[other] = other, one
    return links.only(swapped) == links


def _swapped(traffic: Traffic, links: Links) -> Order:
    """The best that swaps lead to: from the usual order, a row of near neighbours, and others."""
    random, usual = Random(0), [*range(traffic.n_positions)]
    others = (random.sample(usual, len(usual)) for _ in range(N_SHUFFLED))
    left, found = MOST_SWAPS // len(usual), []
    for order in (_row(traffic, links), usual, *others):
        improved, n_looked = _improved(traffic, links, order, left)
        found.append(improved)
        left -= n_looked
    return min(found, key=lambda order: order.seconds)


def quick_seconds(traffic: Traffic, links: Links) -> float:
    """What an order takes that is found at once: the usual one, or a row of near neighbours."""
    return min(traffic.seconds(links), traffic.seconds(links, _row(traffic, links)))


def _row(traffic: Traffic, links: Links) -> list[int]:
    """Each controller next to that of the rest which it reaches soonest."""
    typical = max(nbytes for _, nbytes in traffic.messages.values()) if traffic.messages else 0
    order, left = [0], {*range(1, traffic.n_positions)}
    while left:
        near = links.between[order[-1]]
        order.append(min(left, key=lambda other: (near[other].seconds(typical), other)))
        left.remove(order[-1])
    return order


def _improved(
    traffic: Traffic, links: Links, order: list[int], most: int
) -> tuple[Order, int]:
    """Swaps of the slowest controller, or of its neighbours, with others while that helps.

    And how many were looked at, of about so many at the most.
    """
    times, n_looked = _Times(traffic, links, order), 0
    while n_looked < most:
        slowest = max(range(len(order)), key=times.seconds.__getitem__)
        best, before = None, times.key
        for one in (slowest, *times.near[slowest]):
            for other in range(len(order)):
                n_looked += 1
                if one != other and (key := times.key_swapped(one, other)) < before:
                    best, before = (one, other), key
        if best is None:
            break
        times.swap(*best)
    return Order(tuple(times.order), max(times.seconds)), n_looked


class _Times:
    """The seconds of all positions in one order, kept up as controllers change places."""

    def __init__(self, traffic: Traffic, links: Links, order: Sequence[int]) -> None:
        self.order, n = [*order], traffic.n_positions
        self._packed, self._links, self._messages = traffic.packed, links, traffic.messages
        near: list[set[int]] = [set() for _ in range(n)]
        for source, target in traffic.messages:
            near[source].add(target)
            near[target].add(source)
        self.near = [sorted(some) for some in near]
        self.seconds = [self._of(position) for position in range(n)]

    @property
    def key(self) -> tuple[float, float]:
        """The slowest, and of equals all together: swaps that help later help now."""
        return max(self.seconds), sum(self.seconds)

    def key_swapped(self, one: int, other: int) -> tuple[float, float]:
        """The key if these two changed places."""
        before = [*self.seconds]
        self.swap(one, other)
        key = self.key
        self.order[one], self.order[other] = self.order[other], self.order[one]
        self.seconds = before
        return key

    def swap(self, one: int, other: int) -> None:
        """Two positions exchange their controllers."""
        self.order[one], self.order[other] = self.order[other], self.order[one]
        for position in {one, other, *self.near[one], *self.near[other]}:
            self.seconds[position] = self._of(position)

    def _of(self, position: int) -> float:
        a = self.order[position]
        found = self._packed[position] / self._links.packing[a]
        for other in self.near[position]:
            b = self.order[other]
            for way, link in (
                ((position, other), self._links.between[a][b]),
                ((other, position), self._links.between[b][a]),
            ):
                n_messages, nbytes = self._messages.get(way, (0, 0))
                found += link.seconds(nbytes, n_messages)
        return found
