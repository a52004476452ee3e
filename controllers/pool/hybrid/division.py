# SPDX-License-Identifier: MIT
"""How many of n units of work, in a row, each of several sides gets, so that all end soonest."""
from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from controllers.estimates.median_fit import Floats

LEAST_GAIN = 0.02   # of the time, by more than one side; below that one side does it all
TRIALS = 64         # of a task: so much of it a side gets to be known
MOST_KNOWN = 64     # divisions, of as many kinds of tasks
_HALVINGS = 14      # of the time in question

# When a side is done that has the units from the first number to before the second one.
End: TypeAlias = Callable[[int, int], float]


def divided(
    ends: Sequence[End], n: int, floor_s: float = 0.0, likely: int = 0
) -> list[int]:
    """The units of each side, which has the next ones in order; ends may not fall with more units.

    But that of a side which does it all: it may have what others leave.

    A side of which nothing is known says that a `trial` takes no time and more take for ever: it
    gets that, to be known then.  floor_s: before which nothing is over, whoever does it.  likely:
    the number of who is fastest, probably, where nothing is known of anybody.

    >>> divided([lambda a, b: 3.0 * (b - a), lambda a, b: 1.0 * (b - a)], 8)
    [2, 6]
    >>> divided([lambda a, b: 99.0 * (b - a), lambda a, b: 1.0 * (b - a)], 8)
    [0, 8]
    >>> divided([lambda a, b: 3.0 * (b - a), lambda a, b: 1.0 * (b - a)], 8, floor_s=9.0)
    [0, 8]
    >>> divided([unknown(64), unknown(64), unknown(64)], 64, likely=1)
    [1, 62, 1]
    """
    alone = [end(0, n) for end in ends]
    best = min(alone)
    if math.isinf(best):    # nothing is known of anybody
        few, units = min(n, len(ends)) - 1, trial(n)
        found = [units] * few + [0] * (len(ends) - 1 - few)
        found.insert(likely, n - few * units)
        return found
    unknown = any(map(math.isinf, alone))
    low_s, high_s = 0.0, best
    for _ in range(_HALVINGS):
        middle_s = (low_s + high_s) / 2
        if sum(_within(ends, n, middle_s)) == n:
            high_s = middle_s
        else:
            low_s = middle_s
    if not unknown and max(high_s, floor_s) > (1 - LEAST_GAIN) * max(best, floor_s):
        return [n if number == alone.index(best) else 0 for number in range(len(ends))]
    return _within(ends, n, high_s)


class Divisions:
    """The newest ones, each of which is the same again while sides are done with as much as then.
    """

    def __init__(self) -> None:
        self._known: dict[Hashable, tuple[list[End], float, list[int]]] = {}

    def of(
        self, key: Hashable, ends: Sequence[End], n: int, floor_s: float, likely: int = 0
    ) -> list[int]:
        """As `divided`; `key` is that of such tasks."""
        known = self._known.get(key)
        if known is None or known[0] != ends or known[1] != floor_s:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            known = self._known[key] = [*ends], floor_s, divided(ends, n, floor_s, likely)
        return [*known[2]]


@dataclass(frozen=True)
class RowsEnd:
    """When a side is done with some of the rows of an array.

    start_s: when it begins, with what it needs whatever these are.  upto: how long 0, 1 ... of them
    take, by a factor longer; moved: what of them has to be moved before.
    """

    start_s: float
    upto: Sequence[float]
    moved: Sequence[float]
    factor: float = 1.0

    def __call__(self, first: int, last: int) -> float:
        if first == last:
            return 0.0
        took_s = self.factor * self.upto[last - first]
        return self.start_s + took_s + self.moved[last] - self.moved[first]


def end_of(ends: Sequence[End], counts: Sequence[int], waits: Sequence[float] = ()) -> float:
    """When all sides are done that have so many units each, one side after another.

    waits: what is taken off of each side's time, until which it is busy.
    """
    upto = [0, *accumulate(counts)]
    waits = waits or [0.0] * len(ends)
    return max(
        end(*part) - wait_s if part[0] < part[1] else 0.0
        for end, part, wait_s in zip(ends, zip(upto, upto[1:]), waits)
    )


def trial(n: int) -> int:
    """Of n units, what a side gets to be known."""
    return max(1, n // TRIALS)


def unknown(n: int) -> End:
    """Of a side of which nothing is known."""
    most = trial(n)

    def end_s(first: int, last: int) -> float:
        return 0.0 if last - first <= most else float("inf")

    return end_s


@lru_cache(maxsize=256)
def longest(n_jobs: int, n: int, n_rows: int | None) -> Floats:
    """Of the first 1, 2 ... n of n units which part of all the worker has who has most.

    n_rows: of all units, which are not divided; None where they can be.

    >>> (longest(15, 64, 64)[[5, 30]] * 64).tolist(), float(longest(2, 64, None)[31])
    ([1.0, 3.0], 0.25)
    """
    parts = np.arange(1, n + 1) / n
    if not n_rows:
        return parts / n_jobs
    return np.asarray(np.ceil(np.rint(parts * n_rows) / n_jobs) / n_rows)


def _within(ends: Sequence[End], n: int, limit_s: float) -> list[int]:
    """As many units as each side, one after another, has done by then."""
    for number, end in enumerate(ends):
        if end(0, n) <= limit_s:    # alone it may have more cores than beside others
            return [n if side == number else 0 for side in range(len(ends))]
    counts: list[int] = []
    first = 0
    for end in ends:
        low, high = first, n
        while low < high:
            middle = (low + high + 1) // 2
            if end(first, middle) <= limit_s:
                low = middle
            else:
                high = middle - 1
        counts.append(low - first)
        first = low
    return counts
