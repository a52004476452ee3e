# SPDX-License-Identifier: MIT
"""How long a device takes for a step on so many cells: a line, from what was seen of it.

What was seen are medians of windows of steps, each on one number of cells.  A
line has two unknowns: one number of cells alone says nothing on what a step costs without any.
Cores that others use, too, are some percent faster or slower from one window to the next: those on
about as many cells count together, each as much as it has steps.
"""
# docs/decisions/0116-little-gains-need-long-looks.md
from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from statistics import median
from typing import NamedTuple

from controllers.plan.rate import Rate

APART = 0.05            # two numbers of cells that differ by less say nothing on a slope
MOST_OVERHEAD = 0.9     # of a step's time
NEAR = 0.15             # numbers of cells that differ by less count together
ODD = 1.5               # times as long as others: twice in a row that is another device
SHORTEST_S = 1e-9       # what clocks tell apart


class _Seen(NamedTuple):
    """So many steps, and what each of them took on the average of windows."""

    n_steps: int
    seconds: float

    def and_then(self, other: _Seen) -> _Seen:
        n_steps = self.n_steps + other.n_steps
        all_s = self.n_steps * self.seconds + other.n_steps * other.seconds
        return _Seen(n_steps, all_s / n_steps)


class Sightings:
    """What was seen of one device since it became as fast as it is.

    >>> seen = Sightings()
    >>> seen.add(100, 3.0, 20); seen.rate
    Rate(fixed_s=0.0, cell_s=0.03)
    >>> seen.add(50, 2.0, 20); seen.rate
    Rate(fixed_s=1.0, cell_s=0.02)
    """

    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}       # by the number of cells
        self._newest, self._window = 0, _Seen(0, 0.0)

    def add(self, cells: int, seconds: float, n_steps: int) -> None:
        """In so many steps on `cells` cells, of which there is one, one has taken so long."""
        self._newest, self._window = cells, _Seen(n_steps, max(seconds, SHORTEST_S))
        before = self._seen.get(cells)
        self._seen[cells] = self._window if before is None else before.and_then(self._window)

    def is_odd(self, cells: int, seconds: float) -> bool:
        """Whether others on as many cells have taken far longer than that, or less, if any have."""
        before = self._seen.get(cells)
        return before is not None and not seconds / ODD < before.seconds < seconds * ODD

    def forget(self) -> None:
        """All but the newest window: the device was another before."""
        self._seen = {self._newest: self._window}

    def fade(self, n_steps: int) -> None:
        """What was seen on any number of cells counts as so many steps at most from now on."""
        for n, one in self._seen.items():
            self._seen[n] = one._replace(n_steps=min(one.n_steps, n_steps))

    @property
    def known(self) -> bool:
        """Whether anything was seen."""
        return bool(self._seen)

    @property
    def n_near(self) -> int:
        """How many steps were seen on about as many cells as the newest ones."""
        return sum(one.n_steps for n, one in self._seen.items() if self._is_near(n))

    @property
    def newest(self) -> Mapping[int, float]:
        """The seconds of a step on the cells that it had last, by their number."""
        return {self._newest: self.rate.seconds(self._newest)}

    @property
    def rate(self) -> Rate:
        """The line with the slope that most pairs of times have, through those on newest cells.
        """
        cells, seconds = self._newest, self._seen[self._newest].seconds
        # slopes of pairs: Theil 1950, Sen 1968, doi:10.1080/01621459.1968.10480934
        slopes = [
            (self._seen[a].seconds - self._seen[b].seconds) / (a - b)
            for a, b in combinations(self._seen, 2)
            if abs(a - b) > APART * max(a, b)
        ]
        fixed_s = seconds - median(slopes) * cells if slopes else 0.0
        if not 0.0 <= fixed_s <= MOST_OVERHEAD * seconds:    # no device is such: noise
            fixed_s = 0.0
        all_s = sum(
            one.n_steps * max(one.seconds - fixed_s, SHORTEST_S) / n
            for n, one in self._seen.items() if self._is_near(n)
        )  # fmt: skip
        return Rate(fixed_s, all_s / self.n_near)

    def _is_near(self, cells: int) -> bool:
        return abs(cells - self._newest) <= NEAR * max(cells, self._newest)
