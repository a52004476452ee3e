# SPDX-License-Identifier: MIT
"""How long a device takes for a step on so many cells: a line, from what was seen of it.

What was seen are medians of windows of steps, each on one number of cells.  A
line has two unknowns: one number of cells alone says nothing on what a step costs without any.
"""
from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from statistics import median

APART = 0.05            # two numbers of cells that differ by less say nothing on a slope
MOST_OVERHEAD = 0.9     # of a step's time
SHORTEST_S = 1e-9       # what clocks tell apart


@dataclass(frozen=True)
class Speed:
    """A step takes `overhead_s`, and `cell_s` for each cell.

    >>> Speed(2.0, 0.5).seconds(6)
    5.0
    """

    overhead_s: float
    cell_s: float

    def seconds(self, cells: float) -> float:
        """Of a step on so many cells; nothing where there are none."""
        return self.overhead_s + self.cell_s * cells if cells else 0.0


class Sightings:
    """What was seen of one device since it became as fast as it is.

    >>> seen = Sightings()
    >>> seen.add(100, 3.0); seen.speed
    Speed(overhead_s=0.0, cell_s=0.03)
    >>> seen.add(50, 2.0); seen.speed
    Speed(overhead_s=1.0, cell_s=0.02)
    """

    def __init__(self) -> None:
        self._seconds: dict[int, float] = {}    # the newest, by the number of cells
        self._newest = 0

    def add(self, cells: int, seconds: float) -> None:
        """A step on `cells` cells, of which there is one, has taken so long."""
        self._seconds[cells] = max(seconds, SHORTEST_S)
        self._newest = cells

    def forget(self) -> None:
        """All but the newest: the device was another before."""
        self._seconds = {self._newest: self._seconds[self._newest]}

    @property
    def known(self) -> bool:
        """Whether anything was seen."""
        return bool(self._seconds)

    @property
    def speed(self) -> Speed:
        """The line through the newest time, with the slope that most pairs of times have."""
        cells, seconds = self._newest, self._seconds[self._newest]
        # slopes of pairs: Theil 1950, Sen 1968, doi:10.1080/01621459.1968.10480934
        slopes = [
            (self._seconds[a] - self._seconds[b]) / (a - b)
            for a, b in combinations(self._seconds, 2)
            if abs(a - b) > APART * max(a, b)
        ]
        overhead_s = seconds - median(slopes) * cells if slopes else 0.0
        if not 0.0 <= overhead_s <= MOST_OVERHEAD * seconds:    # no device is such: noise
            overhead_s = 0.0
        return Speed(overhead_s, (seconds - overhead_s) / cells)
