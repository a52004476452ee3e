# SPDX-License-Identifier: MIT
"""How good estimates would have been: each case as all others foresee it, beside what it took."""
from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from controllers.estimates.estimate import Estimate
from controllers.estimates.growth import growth_of
from controllers.estimates.history import History
from controllers.estimates.task_key import Case


@dataclass(frozen=True)
class Hindsight:
    """A case, the median of its times, and what others would have let expect of it."""

    case: Case
    seconds: float
    foreseen: Estimate

    @property
    def error(self) -> float:
        """The part by which it was wrong."""
        return abs(self.foreseen.seconds / self.seconds - 1)


def hindsights(history: History) -> list[Hindsight]:
    """Of all cases that others say something on.

    >>> history = History()
    >>> for n in (1, 2, 3, 4):
    ...     history.add(Case(n), 2.0 * n, when=0.0)
    >>> [(one.case.size, one.seconds, one.error) for one in hindsights(history)][-1]
    (4, 8.0, 0.0)
    """
    found = []
    for case, times in sorted(history.cases.items()):
        others = History()
        others.cases = {one: times for one, times in history.cases.items() if one != case}
        growth = growth_of(others)
        if growth is not None:
            found.append(Hindsight(case, median(times.seconds), growth.estimate(case)))
    return found
