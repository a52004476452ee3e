# SPDX-License-Identifier: MIT
"""What hybrid tasks become: jobs of parts, each for one side, and a last one for their future.

All jobs of a hybrid task are there when it has been submitted, ordered as any others: parts that
maps cut by the cells that they touch; parts that a function of the user cuts are between the job of
that function and the last one, which touch all that the task is given.
"""
from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, Union

from controllers.pool.forecast import Forecast
from controllers.pool.hybrid.hybrid import Hybrid, Replicated, Series
from controllers.pool.hybrid.item_sums import ItemSums
from controllers.pool.hybrid.own_arrays import OwnArrays
from controllers.pool.hybrid.part_jobs import Enter, PartJobs
from controllers.pool.hybrid.planning import MOST_UNITS, Planning
from controllers.pool.hybrid.row_parts import RowParts
from controllers.pool.hybrid.sides import Sides
from controllers.pool.hybrid.splitting import Splitting
from controllers.pool.hybrid.summing import Summing
from controllers.pool.job import Lost, Owner, TaskFuture
from controllers.pool.memories import Memories, Replicas
from controllers.pool.share import Share
from controllers.pool.submissions import Submissions
from controllers.pool.task import Task
from hitmap.region import Region

Composite: TypeAlias = Union[Hybrid, Replicated, Series]


class Composites:
    """Makes the jobs of hybrid tasks; for who holds the pool's lock, which is `lock`."""

    def __init__(
        self, owner: Owner, submissions: Submissions, forecast: Forecast, memories: Memories,
        share: Share, enter: Enter, lock: threading.RLock,
    ) -> None:  # fmt: skip
        self._owner, self._submissions, self._forecast = owner, submissions, forecast
        self._memories, self._enter, self._lock = memories, enter, lock
        self._sides, self._own = Sides(forecast, share), OwnArrays()
        self._planning = Planning(forecast, share, self._sides)
        self._summing = Summing(self._sides, self._own)

    def submitted(
        self, given: Composite, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[TaskFuture, list[Lost]]:
        """The future of the last job; what of them will not be done, and why."""
        _check_sides(given.task)
        jobs = PartJobs(self._owner, self._submissions, self._forecast, self._enter)
        if isinstance(given, Replicated):
            self._replicas(given.task, args, kwargs, jobs)
        elif isinstance(given, Series):
            self._summing.calls(given, args, kwargs, jobs)
        elif given.cut is None:
            return self._split(given, args, kwargs, jobs), jobs.lost
        elif given.cut.summed:
            self._summing.rows(given, args, kwargs, jobs)
        else:
            self._rows(given, args, kwargs, jobs)
            if len(jobs.futures) == 1:      # one side does it all
                return jobs.futures[0], jobs.lost
        return jobs.joined(given.task.name), jobs.lost

    def _replicas(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any], jobs: PartJobs
    ) -> None:
        """Enter a job for each device that computes as well what the host does after them.

        Until then the host has what there was before.
        """
        last = jobs.made(task, args, kwargs)
        on_host = [way for way in last.may_run if way.lane.device is None]
        ways = self._sides.replicas(last) if on_host else []
        last.may_run = on_host if ways else last.may_run
        replicas: Replicas | None = {} if ways else None
        for way in ways:
            one = jobs.made(task, args, kwargs, last.size)
            one.may_run, one.replicas = [way], replicas
            jobs.enter(one)
        last.replicas = replicas
        jobs.enter(last)
        for touch in last.touches if ways else ():
            for way in ways:
                if touch.writes:
                    touch.datum.foreseen.brought(way.lane.memory, Region.of([touch.box]))

    def _rows(
        self, hybrid: Hybrid, args: Sequence[Any], kwargs: Mapping[str, Any], jobs: PartJobs
    ) -> None:
        """Enter a job for the share of each side."""
        task = hybrid.task
        assert hybrid.cut is not None, "a task that maps cut"
        named = task.named(args, kwargs)
        whole = jobs.made(task, args, kwargs)
        sums = ItemSums(hybrid, whole, self._own)
        if not sums.ways:   # functions of Python's round what they sum: one does it all
            jobs.enter(whole)
            return
        cut = hybrid.cut.summing(sums.names)
        n_rows = cut.rows(named)
        whole.may_run = cut.suiting(sums.ways)
        made = RowParts(task, cut, sums, jobs, named, len(args))
        shares, rows = self._planning.rows(hybrid, cut, whole, n_rows, jobs)
        parts = [made.part(one, whole.size / n_rows) for one in rows if one.rows]
        made.check()
        if len(parts) > 1:
            self._planning.worth.watch(shares.kind, shares.foreseen_s, parts)
        # devices first: theirs are few long pieces
        jobs.enter_parts(sorted(parts, key=lambda one: one.may_run[0].lane.device is None))
        for part in parts if hybrid.shares is None else ():     # a side without work may take it
            part.may_run = whole.may_run
        for name, given in named:
            if name in sums.names:
                sums.enter(name, given, jobs)

    def _split(
        self, hybrid: Hybrid, args: Sequence[Any], kwargs: Mapping[str, Any], jobs: PartJobs
    ) -> TaskFuture:
        """Enter what splits, a job for each share, and what merges."""
        name = hybrid.task.name
        if kwargs:
            raise TypeError(
                f"task {name!r}: functions that split and merge take positional arguments, got "
                f"{', '.join(kwargs)} by name; leave the names out"
            )
        whole = jobs.made(hybrid.task, args)
        planning = self._planning
        shares = planning.shares(hybrid, None, whole, MOST_UNITS, None, jobs).some
        parts = [
            jobs.made(hybrid.task, args, None, whole.size * count / MOST_UNITS)
            for _, count in shares
        ]
        sides, find = [side for side, _ in shares], None
        if hybrid.shares is None and planning.cutting.is_guess(sides):
            find = partial(planning.cutting.shares_by_now, whole.size, sides)
        splitting = Splitting(
            hybrid, whole, parts, [count / MOST_UNITS for _, count in shares], find,
            self._memories, self._submissions, self._lock,
        )  # fmt: skip
        waits = [one for one in args if isinstance(one, TaskFuture)]
        begun = jobs.enter(jobs.made(splitting.begin, waits), whole.touches)
        for part, (side, _) in zip(parts, shares):
            part.give([begun], [])
            part.may_run = [side.way]
            jobs.enter(part)
        before = list(jobs.futures)
        future = jobs.enter(jobs.made(splitting.end, before), whole.touches)
        future.parts = before
        future.add_done_callback(splitting.let_go)
        return future


def _check_sides(task: Task) -> None:
    """ValueError where a side of the task would take other sides for itself."""
    for variant in task.variants:
        if variant.devices[1]:
            raise ValueError(
                f"task {task.name!r}: the variant {variant.name!r} is a function with devices of "
                f"its own ({variant.place}), and sides of hybrid tasks are cores or a device; "
                f"submit the task itself, or give it no such variant"
            )
