# SPDX-License-Identifier: MIT
"""The jobs that one hybrid task becomes, as they are made and entered into the order of jobs."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from controllers.pool import order
from controllers.pool.data import Touch
from controllers.pool.forecast import Forecast
from controllers.pool.job import Entered, Job, Lost, Owner, TaskFuture
from controllers.pool.submissions import Submissions
from controllers.pool.task import Task

# Lets a job that touches this wait for others: these, and whether it has begun; and what notes it.
Enter: TypeAlias = tuple[
    Callable[[Job, Sequence[Touch]], tuple[list[Job], bool]],
    Callable[[Job, Sequence[Touch], Sequence[Job], bool], Entered],
]


class PartJobs:
    """For who holds the pool's lock.

    futures: of the jobs that were entered.  lost: what of them will not be done.
    """

    def __init__(
        self, owner: Owner, submissions: Submissions, forecast: Forecast, enter: Enter
    ) -> None:
        self._owner, self._submissions, self._forecast = owner, submissions, forecast
        self._begin, self._noted = enter
        self.futures: list[TaskFuture] = []
        self.lost: list[Lost] = []

    def made(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any] | None = None,
        size: float | None = None,
    ) -> Job:  # fmt: skip
        """A job that nobody waits for yet."""
        return self._submissions.job(task, args, kwargs or {}, self._owner, size)

    def touches(self, task: Task, named: Iterable[tuple[str, Any]]) -> list[Touch]:
        """What a job with these arguments would touch."""
        return self._submissions.touches(task, named)

    def enter(self, job: Job, touches: Sequence[Touch] | None = None) -> TaskFuture:
        """Its future, from now on; `touches`: what it is ordered by, where it moves other cells."""
        its = job.touches if touches is None else touches
        return self._entered(*self._noted(job, its, *self._begin(job, its)))

    def enter_parts(self, parts: Sequence[Job]) -> None:
        """The same of jobs that write nothing that others touch: all begin before any is noted."""
        begun = [(part, part.touches, *self._begin(part, part.touches)) for part in parts]
        for one in begun:
            self._entered(*self._noted(*one))

    def _entered(self, future: TaskFuture, lost: list[Lost]) -> TaskFuture:
        self.lost += lost
        self.futures.append(future)
        return future

    def joined(self, name: str) -> TaskFuture:
        """The future of a job that only waits for all of them."""
        parts = list(self.futures)
        job = self.made(_whole(name), parts)
        job.joins = True
        future = self.enter(job)
        future.parts = parts
        return future

    def ready_s(self, jobs: Sequence[Job]) -> float:
        """When these may start, as far as others go."""
        befores = {before for job in jobs for before in order.befores_of(job)}
        return max((self._forecast.clock_s, *(before.end_s for before in befores)))


def check_apart(name: str, parts: Sequence[Sequence[Touch]]) -> None:
    """ValueError where a part of a task writes what another one touches."""
    seen: dict[object, list[tuple[int, Touch]]] = {}
    for number, touches in enumerate(parts):
        for touch in touches:
            known = seen.setdefault(touch.datum, [])
            for other, found in known:
                if other == number or not (touch.writes or found.writes):
                    continue
                if touch.box.meets(found.box):
                    raise ValueError(
                        f"task {name!r}: a part writes cells of {touch.name!r} or {found.name!r} "
                        f"that another part is given, too; write to another array, or to slices "
                        f"with the step 1 of arrays in C order"
                    )
            known.append((number, touch))


@lru_cache(maxsize=256)
def _whole(name: str) -> Task:
    """The task that waits for all parts of another one, and does nothing."""
    made = Task(f"{name}, all parts")
    made.variant(_nothing)
    return made


def _nothing(*parts: Any) -> None:
    """All parts are over."""
