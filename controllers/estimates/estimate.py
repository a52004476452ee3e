# SPDX-License-Identifier: MIT
"""An estimate: how long an execution will probably take, how sure that is, and why."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["history", "regression", "rates", "class"]

WIDTH = 2.5     # of the trimmed mean of distances: so far off are four executions of five, about
UNKNOWN = 0.5   # ... where nothing tells how far
_TEXTS = {
    "history": "by {n} executions of this size",
    "regression": "by {n} executions of other sizes",
    "rates": "by the rates of the device, from {n} executions",
    "class": "by the class of the device",
}


@dataclass(frozen=True)
class Estimate:
    """Seconds, and between which four of five executions will lie.

    n: executions that it was made of.
    """

    seconds: float
    least_s: float
    most_s: float
    source: Source
    n: int = 0

    @classmethod
    def about(cls, seconds: float, spread: float, source: Source, n: int = 0) -> Estimate:
        """Give or take a factor.

        >>> Estimate.about(3.0, 0.5, "class")
        Estimate(seconds=3.0, least_s=2.0, most_s=4.5, source='class', n=0)
        """
        return cls(seconds, seconds / (1 + spread), seconds * (1 + spread), source, n)

    def times(self, factor: float) -> Estimate:
        """Of what takes so many times as long."""
        return Estimate(
            factor * self.seconds, factor * self.least_s, factor * self.most_s, self.source, self.n
        )

    @property
    def because(self) -> str:
        """From what it follows, for people.

        >>> Estimate.about(3.0, 0.5, "history", 20).because
        'by 20 executions of this size'
        """
        return _TEXTS[self.source].format(n=self.n)


def spread(error: float, n_points: int, n_found: int) -> float:
    """By which part executions differ from what was made of so many, with so many numbers found.

    >>> round(spread(0.01, 20, 2), 4)
    0.0278
    >>> spread(0.0, 1, 1)
    0.5
    """
    if n_points <= n_found:
        return UNKNOWN
    return WIDTH * error * n_points / (n_points - n_found)
