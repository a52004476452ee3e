# SPDX-License-Identifier: MIT
"""How long hybrid tasks have taken as wholes, by how they were divided."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from controllers.estimates.task_key import Case, TaskKey
from controllers.pool.forecast import Forecast
from controllers.pool.hybrid.choosing import Counts
from controllers.pool.job import Job

When: TypeAlias = "tuple[int, int]"     # a job began, and ended; in ns


class Outcomes:
    """Of one task that is divided into n units among the same sides, and has so much to do.

    Kept by the estimator, with what divides as the number of units.
    """

    def __init__(self, forecast: Forecast, key: TaskKey, size: float, n: int) -> None:
        self._forecast, self._key, self._size, self._n = forecast, key, size, n

    def times(self, n_sides: int) -> dict[Counts, list[float]]:
        """Seconds of the newest executions."""
        cases = self._forecast.history(self._key).cases
        return {
            self._counts(case.units, n_sides): times.seconds
            for case, times in cases.items() if case.size == self._size
        }  # fmt: skip

    def watch(self, jobs: Sequence[Job], counts: Sequence[int]) -> None:
        """Learn how long it takes from the start of the first one to the end of the last one."""
        def learn(whens: Sequence[When]) -> None:
            start, end = min(start for start, _ in whens), max(end for _, end in whens)
            self.learn(tuple(counts), (end - start) / 1e9)

        watch(jobs, learn)

    def learn(self, counts: Counts, seconds: float) -> None:
        """An execution has taken so long."""
        units = 1
        for count in reversed(counts[:-1]):     # the last side has the rest
            units = (units - 1) * (self._n + 1) + count + 1
        self._forecast.learn(self._key, Case(self._size, units), seconds)

    def _counts(self, units: int, n_sides: int) -> Counts:
        found = []
        left = units - 1
        for _ in range(n_sides - 1):
            left, count = divmod(left, self._n + 1)
            found.append(count)
        return (*found, self._n - sum(found))


class _Outcome:
    """One execution."""

    def __init__(self, learn: Callable[[Sequence[When]], None], n_jobs: int) -> None:
        self._learn, self._n_jobs = learn, n_jobs
        self._whens: list[When] = []

    def ended(self, start: int, end: int) -> None:
        """A job has."""
        self._whens.append((start, end))
        if len(self._whens) == self._n_jobs:
            self._learn(self._whens)


def watch(jobs: Sequence[Job], learn: Callable[[Sequence[When]], None]) -> None:
    """Tell when these were done, when all of them are over and none has failed."""
    watched = _Outcome(learn, len(jobs))
    for job in jobs:
        job.outcome = watched
