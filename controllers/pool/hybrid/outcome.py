# SPDX-License-Identifier: MIT
"""How long hybrid tasks have taken as wholes, by how they were divided."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from controllers.estimates.task_key import Case, TaskKey
from controllers.pool.forecast import Forecast
from controllers.pool.hybrid.choosing import Counts
from controllers.pool.job import Job


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
        """Learn how long these take, when all of them are over."""
        its = tuple(counts)
        watch(jobs, lambda seconds: self.learn(its, seconds))

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
    """One execution, from the start of its first job to the end of the last one."""

    def __init__(self, learn: Callable[[float], None], n_jobs: int) -> None:
        self._learn, self._n_left = learn, n_jobs
        self._start = self._end = 0

    def ended(self, start: int, end: int) -> None:
        """A job has; in ns."""
        self._start = start if not self._end else min(start, self._start)
        self._end = max(end, self._end)
        self._n_left -= 1
        if not self._n_left:
            self._learn((self._end - self._start) / 1e9)


def watch(jobs: Sequence[Job], learn: Callable[[float], None]) -> None:
    """Tell how many seconds these have taken, when all of them are over and none has failed."""
    watched = _Outcome(learn, len(jobs))
    for job in jobs:
        job.outcome = watched
