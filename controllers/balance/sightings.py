# SPDX-License-Identifier: MIT
"""How long a device takes for a step on so many cells: a line, from what was seen of it.

What was seen are medians of windows of steps, each on one number of cells.  A
line has two unknowns: one number of cells alone says nothing on what a step costs without any.
Cores that others use, too, are some percent faster or slower from one window to the next: those on
about as many cells count together.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from itertools import combinations
from statistics import median

from controllers.plan.rate import Rate

APART = 0.05            # two numbers of cells that differ by less say nothing on a slope
MOST_OVERHEAD = 0.9     # of a step's time
NEAR = 0.15             # numbers of cells that differ by less count together ...
MOST_NEAR = 4           # ... of so many windows
SHORTEST_S = 1e-9       # what clocks tell apart


class Sightings:
    """What was seen of one device since it became as fast as it is.

    >>> seen = Sightings()
    >>> seen.add(100, 3.0); seen.rate
    Rate(fixed_s=0.0, cell_s=0.03)
    >>> seen.add(50, 2.0); seen.rate
    Rate(fixed_s=1.0, cell_s=0.02)
    """

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}    # the newest, by the number of cells
        self._windows = deque[tuple[int, float]](maxlen=MOST_NEAR)
        self._newest = 0

    def add(self, cells: int, seconds: float) -> None:
        """A step on `cells` cells, of which there is one, has taken so long."""
        self._seconds[cells] = max(seconds, SHORTEST_S)
        self._windows.append((cells, self._seconds[cells]))
        self._newest = cells

    def forget(self) -> None:
        """All but the newest: the device was another before."""
        self._seconds = {self._newest: self._seconds[self._newest]}
        self._windows = deque([self._windows[-1]], MOST_NEAR)

    @property
    def known(self) -> bool:
        """Whether anything was seen."""
        return bool(self._seconds)

    @property
    def newest(self) -> Mapping[int, float]:
        """The seconds of a step on the cells that it had last, by their number."""
        return {self._newest: self.rate.seconds(self._newest)}

    @property
    def rate(self) -> Rate:
        """The line with the slope that most pairs of times have, through the middle of the newest.
        """
        cells, seconds = self._newest, self._seconds[self._newest]
        # slopes of pairs: Theil 1950, Sen 1968, doi:10.1080/01621459.1968.10480934
        slopes = [
            (self._seconds[a] - self._seconds[b]) / (a - b)
            for a, b in combinations(self._seconds, 2)
            if abs(a - b) > APART * max(a, b)
        ]
        fixed_s = seconds - median(slopes) * cells if slopes else 0.0
        if not 0.0 <= fixed_s <= MOST_OVERHEAD * seconds:    # no device is such: noise
            fixed_s = 0.0
        near = [
            max(one_s - fixed_s, SHORTEST_S) / n for n, one_s in self._windows
            if abs(n - cells) <= NEAR * max(n, cells)
        ]
        return Rate(fixed_s, median(near))
