# SPDX-License-Identifier: MIT
"""Sums of calls of a task, of which each side does some that follow each other.

Each call writes an array of its own.  Either the host adds them one by one, in their order whoever
has computed them, so that the bits do not depend on the shares; or each side adds up its own, and
the host the sums of sides.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.controller.access import ArrayAccess
from controllers.pool.cut import array_of, check_written
from controllers.pool.hybrid.hybrid import Hybrid, Series, Where
from controllers.pool.hybrid.own_arrays import OwnArrays
from controllers.pool.hybrid.part_jobs import PartJobs
from controllers.pool.hybrid.side import Side
from controllers.pool.hybrid.sides import Sides
from controllers.pool.hybrid.sums import Sums
from controllers.pool.job import Job
from controllers.pool.lane import Lane
from controllers.pool.variant import HOST
from controllers.pool.way import Way

Array: TypeAlias = "npt.NDArray[Any]"
MOST_ALIKE = 4096       # kinds of additions of which the size is known
_NOT_SUMMED = " (devices add up numbers of C, by rows of up to 2 axes)"


@dataclass(frozen=True)
class _Add:
    """A value that a call gives, and to which rows of an array it is added."""

    value: Array
    total: Array
    at: Where


@dataclass(frozen=True)
class _Call:
    job: Job
    adds: list[_Add]


class Summing:
    """For who holds the pool's lock."""

    def __init__(self, sides: Sides, own: OwnArrays) -> None:
        self._sides, self._own = sides, own
        self._alike: dict[object, tuple[Way, float]] = {}

    def rows(
        self, hybrid: Hybrid, args: Sequence[Any], kwargs: Mapping[str, Any], jobs: PartJobs
    ) -> None:
        """Enter parts of fixed rows, of which some arrays are summed."""
        task, cut = hybrid.task, hybrid.cut
        assert cut is not None, "a task that maps cut"
        named = task.named(args, kwargs)
        names = [name for name, _ in named]
        n_rows = cut.rows(named)
        size = jobs.made(task, args, kwargs).size
        calls = []
        n = max(1, min(n_rows, hybrid.parts))
        for number in range(n):
            low, high = n_rows * number // n, n_rows * (number + 1) // n
            values = cut.part(named, low, high)
            adds = []
            for at in (names.index(name) for name in cut.summed):
                total = array_of(values[at])
                assert total is not None, "an array, as it is cut"
                own = self._own.of(hybrid, (number, at), total.shape, total.dtype)
                adds.append(_Add(own, total, None))
                values[at] = ArrayAccess(own, "out")
            by_name = dict(zip(names[len(args) :], values[len(args) :]))
            part_size = size * (high - low) / max(1, n_rows)
            job = jobs.made(task, values[: len(args)], by_name, part_size)
            job.rows, job.may_run = (low, high), cut.suiting(job.may_run)
            calls.append(_Call(job, adds))
        self._summed(hybrid, calls, jobs)

    def calls(
        self, series: Series, args: Sequence[Any], kwargs: Mapping[str, Any], jobs: PartJobs
    ) -> None:
        """Enter the calls of a series."""
        name, n = series.task.name, len(series.at)
        total = array_of(args[0]) if args else None
        if total is None:
            raise TypeError(
                f"the series of {name!r}: the first argument is the array to which is added, "
                f"got {type(args[0]).__name__ if args else 'none'}"
            )
        calls = []
        for number, at in enumerate(series.at):
            own = self._own.of(series, number, _shape_at(total, at, name), total.dtype)
            values = [ArrayAccess(own, "out")]
            values += [_one_of(given, number, n, name) for given in args[1:]]
            by_name = {word: _one_of(given, number, n, name) for word, given in kwargs.items()}
            calls.append(_Call(jobs.made(series.task, values, by_name), [_Add(own, total, at)]))
        self._summed(series, calls, jobs)

    def _summed(self, given: Hybrid | Series, calls: Sequence[_Call], jobs: PartJobs) -> None:
        """Give calls to sides, and enter them and what adds."""
        for call in calls:
            for add in call.adds:
                check_written(add.total, given.task.name)
        made = [call.job for call in calls]
        at_end = given.merging == "whole"
        usable = _usable(given, calls, at_end=at_end)
        every = given.shares is not None
        sides = self._sides.of(usable, made[0].size, given.devices, all_of_them=every)
        free = {side.way.lane for side in sides}
        usable = [way for way in usable if way.lane in free]
        back = [
            sum((add.total if at_end else add.value).nbytes for add in call.adds) for call in calls
        ]
        ready_s = jobs.ready_s(made)
        added = [] if at_end else [[_made_add(add, None, jobs) for add in c.adds] for c in calls]
        ends = [
            self._sides.of_calls(side, made, back, self._adds_s(side, calls, added, jobs),
                                 at_end=at_end, ready_s=ready_s) for side in sides
        ]  # fmt: skip
        floor_s = sum(self._sides.seconds(*_way(job)) for some in added for job in some)
        first, size = 0, sum(job.size for job in made)
        outcomes = self._sides.outcomes(sides, given.task.name, given.merging, size, len(made))
        counts = self._sides.counts(
            sides, ends, len(calls), given.shares, floor_s, given.devices, outcomes, ready_s
        )  # fmt: skip
        for side, count in zip(sides, counts):
            here, added_here = calls[first : first + count], added[first : first + count]
            first += count
            for call in here:
                call.job.may_run = [side.way]
            if at_end:
                self._added_there(given, side, here, jobs)
            else:
                _added_each(here, added_here, jobs)
            if not at_end and given.shares is None:     # a side without work may take them
                for call in here:
                    call.job.may_run = usable
        computing, entered = {*made}, [future.job for future in jobs.futures]
        outcomes.watch([job for job in entered if job in computing or _reads(job)], counts)

    def _adds_s(
        self, side: Side, calls: Sequence[_Call], added: Sequence[Sequence[Job]], jobs: PartJobs
    ) -> list[float]:
        """How long it takes to add what each call gives, on the side where these are done."""
        if added:
            return [sum(self._sides.seconds(*_way(job)) for job in some) for some in added]
        lane = side.way.lane
        return [
            sum(self._sides.seconds(*self._like(add, lane, jobs)) for add in call.adds)
            for call in calls
        ]  # fmt: skip

    def _like(self, add: _Add, lane: Lane, jobs: PartJobs) -> tuple[Way, float]:
        """How a lane adds it, and the size of that: one of those that are alike is looked at."""
        total, by_numbers = add.total, isinstance(add.at, np.ndarray)
        key = lane, total.dtype, total.shape, add.value.shape, by_numbers
        if key not in self._alike:
            if len(self._alike) >= MOST_ALIKE:
                self._alike.clear()
            self._alike[key] = _way(_made_add(add, lane, jobs))
        return self._alike[key]

    def _added_there(
        self, given: Hybrid | Series, side: Side, calls: Sequence[_Call], jobs: PartJobs
    ) -> None:
        """The side adds up what its calls give, and the host adds that."""
        lane = side.way.lane
        sums: dict[int, _Add] = {}
        for call in calls:
            for number, add in enumerate(call.adds):
                if number not in sums:
                    key = "sum", lane.number, number
                    there = self._own.of(given, key, add.total.shape, add.total.dtype)
                    sums[number] = _Add(there, add.total, None)
                    jobs.enter(_there(jobs.made(Sums.of(there.dtype).zero, [there]), lane))
            jobs.enter(call.job)
            for number, add in enumerate(call.adds):
                _enter_add(_Add(add.value, sums[number].value, add.at), lane, jobs)
        for add in sums.values():
            _enter_add(add, None, jobs)


def _way(job: Job) -> tuple[Way, float]:
    """The one way in which it can be done, and its size."""
    (way,) = job.may_run
    return way, job.size


def _reads(job: Job) -> bool:
    """Unlike what sets a sum to zero, which is done long before."""
    return any(touch.reads for touch in job.touches)


def _usable(given: Hybrid | Series, calls: Sequence[_Call], *, at_end: bool) -> list[Way]:
    """The ways in which all calls can be done; ValueError where there is none."""
    made = [call.job for call in calls]
    usable = [
        way for way in made[0].may_run if all(way in job.may_run for job in made)
        if way.lane.device is None or not at_end
        or all(Sums.on_devices(add.total, add.at) for call in calls for add in call.adds)
    ]  # fmt: skip
    if not usable:
        raise ValueError(
            f"task {given.task.name!r}: no variant can do all parts here, given arrays as these"
            f"{_NOT_SUMMED if at_end else ''}; add one for {HOST!r}, or take merging='changed'"
        )
    return usable


def _added_each(
    calls: Sequence[_Call], added: Sequence[Sequence[Job]], jobs: PartJobs
) -> None:
    """The host adds what each call gives, as soon as those before it are added."""
    for call, adds in zip(calls, added):
        call.job.sent = True
        jobs.enter(call.job)
        for job in adds:
            jobs.enter(job)


def _enter_add(add: _Add, lane: Lane | None, jobs: PartJobs) -> None:
    """Add a value to rows, in a lane, or on the host."""
    jobs.enter(_made_add(add, lane, jobs))


def _made_add(add: _Add, lane: Lane | None, jobs: PartJobs) -> Job:
    """The job that adds."""
    sums = Sums.of(add.total.dtype)
    if isinstance(add.at, np.ndarray):
        at = add.at.reshape(-1, *[1] * (add.total.ndim - 1))
        job = jobs.made(sums.rows, [add.total, add.value, at])
    else:
        job = jobs.made(sums.cells, [add.total if add.at is None else add.total[add.at], add.value])
    return _there(job, lane)


def _there(job: Job, lane: Lane | None) -> Job:
    """To be done in a lane, by default on the host."""
    job.may_run = [
        way for way in job.may_run
        if (way.lane.device is None if lane is None else way.lane is lane)
    ]  # fmt: skip
    return job


def _one_of(given: Any, number: int, n: int, name: str) -> Any:
    """The value for one call: of a list that of its number, anything else as it is."""
    if not isinstance(given, (list, tuple)):
        return given
    if len(given) != n:
        raise ValueError(
            f"the series of {name!r} has {n} calls, and a list of {len(given)} values is given; "
            f"give {n}, or an array for all calls"
        )
    return given[number]


def _shape_at(total: Array, at: Where, name: str) -> tuple[int, ...]:
    """Of what a call writes."""
    if at is None:
        return total.shape
    if isinstance(at, slice):
        return total[at].shape
    if len(at) and not 0 <= at.min() <= at.max() < len(total):
        raise ValueError(
            f"the series of {name!r}: at= names rows from {at.min()} to {at.max()}, and the array "
            f"has {len(total)} rows; count them from 0"
        )
    return (len(at), *total.shape[1:])
