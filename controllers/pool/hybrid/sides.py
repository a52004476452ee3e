# SPDX-License-Identifier: MIT
"""The sides of a hybrid task, cores of the host and devices, and when each would be done."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controllers.estimates.task_key import TaskKey
from controllers.pool.data import Touch
from controllers.pool.device_count import DeviceCount
from controllers.pool.forecast import Forecast
from controllers.pool.hybrid.choosing import Counts, chosen
from controllers.pool.hybrid.division import (
    LEAST_GAIN,
    Divisions,
    End,
    RowsEnd,
    end_of,
    trial,
    unknown,
)
from controllers.pool.hybrid.outcome import Outcomes
from controllers.pool.hybrid.row_times import RowTimes
from controllers.pool.hybrid.side import Side, key_of, likely
from controllers.pool.hybrid.tries import Tries
from controllers.pool.job import Job
from controllers.pool.lane import Lane
from controllers.pool.newest import HOST_MEMORY
from controllers.pool.share import Share
from controllers.pool.way import Way

MOST_KNOWN = 256    # kinds of tasks


class Sides:
    """Chooses sides and shares, by the forecast; for who holds the pool's lock."""

    def __init__(self, forecast: Forecast, share: Share) -> None:
        self._forecast, self._share = forecast, share
        self._known: dict[tuple[object, ...], list[int]] = {}
        self._tries, self._divisions, self._times = Tries(), Divisions(), RowTimes(forecast)

    def of(
        self, ways: Sequence[Way], size: float, devices: DeviceCount | None = None, *,
        all_of_them: bool = False,
    ) -> list[Side]:  # fmt: skip
        """One for each lane, the host first; its cores are those that no device computes with.

        Without those that other processes hold, while there are some that they do not, unless
        `all_of_them` are wanted.  devices: how many of these there are, else as many as can.
        """
        best: dict[Lane, tuple[float, Way]] = {}
        for way in ways:
            seconds = self._forecast.known_s(way, size, way.variant.least)
            rated = float("inf") if seconds is None else seconds, way
            if way.lane not in best or rated[0] < best[way.lane][0]:
                best[way.lane] = rated
        every = best
        best, n_cores = (best, self._forecast.n_cores) if all_of_them else self._free(best)
        if devices is not None:
            best = devices.chosen(best, every)
        left = n_cores - sum(lane.cores for lane in best)
        sides: list[Side] = []
        taken = 0
        for lane, (_, way) in sorted(best.items(), key=lambda one: one[0].number):
            if lane.device is not None:
                sides.append(Side(way, taken=taken))
                taken += lane.cores
            elif left >= way.variant.least or len(best) == 1:
                cores = max(1, min(way.variant.most, left))
                alone = max(1, n_cores // cores)
                sides.append(Side(way, cores, max(1, left // cores), n_alone=alone))
                taken += cores * sides[-1].n_jobs
        return sides

    def _free(
        self, best: dict[Lane, tuple[float, Way]]
    ) -> tuple[dict[Lane, tuple[float, Way]], int]:
        """Those that other processes leave to this one, or all if there is none; with cores."""
        others, n_cores = self._share.others(), self._forecast.n_cores
        if others.cores:
            n_cores = min(n_cores, self._share.n_leased - others.cores)
        free = {
            lane: rated for lane, rated in best.items()
            if lane.number not in others.lanes
            and (max(1, rated[1].variant.least) if lane.device is None else lane.cores) <= n_cores
        }  # fmt: skip
        return (free, n_cores) if free else (best, self._forecast.n_cores)

    def replicas(self, job: Job) -> list[Way]:
        """Where a job is done beside the host, as that is sooner than to bring what it writes."""
        found = []
        nbytes = sum(touch.view.nbytes for touch in job.touches if touch.writes)
        apart = [way for way in job.may_run if way.lane.memory != HOST_MEMORY]
        for side in self.of(apart, job.size, all_of_them=True) if apart else ():
            seconds = self._forecast.known_s(side.way, job.size, 1)
            if seconds is None or seconds < self._forecast.there_s(side.way.lane, nbytes):
                found.append(side.way)
        return found

    def counts(
        self, sides: Sequence[Side], ends: Sequence[End], n: int, shares: Sequence[float] | None,
        floor_s: float = 0.0, devices: DeviceCount | None = None, outcomes: Outcomes | None = None,
        ready_s: float | None = None,
    ) -> list[int]:  # fmt: skip
        """How many of n units each side gets; ValueError unless each side has a share.

        As `_foreseen`, with some for as many devices as there have to be; or by `shares`.
        """
        if shares is None:
            waits = [] if ready_s is None else [self.wait_s(side, ready_s) for side in sides]
            if devices is None:
                return self._foreseen(sides, ends, n, floor_s, outcomes, waits)
            found = self._foreseen(sides, ends, n, floor_s, None, waits)
            return devices.with_least([side.way.lane for side in sides], found, trial(n))
        if len(shares) != len(sides):
            where = ", ".join(side.way.lane.name for side in sides)
            raise ValueError(
                f"{len(shares)} shares are given, and the task can be done by {len(sides)} sides: "
                f"{where}; give one for each, or leave shares= out"
            )
        upto = [round(n * sum(shares[:number])) for number in range(len(shares) + 1)]
        return [last - first for first, last in zip(upto, upto[1:])]

    def are_settled(
        self, sides: Sequence[Side], ends: Sequence[End], counts: Sequence[int]
    ) -> bool:
        """Whether all of several sides have some, and none of them for a trial."""
        return all(counts) and all(self._best(sides, ends, sum(counts), 0.0)) and len(sides) > 1

    def _best(
        self, sides: Sequence[Side], ends: Sequence[End], n: int, floor_s: float
    ) -> list[int]:
        return self._divisions.of(key_of(sides, n), ends, n, floor_s, likely(sides))

    def _foreseen(
        self, sides: Sequence[Side], ends: Sequence[End], n: int, floor_s: float,
        outcomes: Outcomes | None, waits: Sequence[float],
    ) -> list[int]:  # fmt: skip
        """How many of n units each side gets, by when sides are done.

        As the last time where others would hardly be better, as the rows are where they were then.
        A side that has executed the task too few times to be judged by that gets one at least.
        floor_s: before which it is not over, whoever does it.  outcomes: of the whole task so far.
        waits: how long sides are busy.
        """
        key, best = key_of(sides, n), self._best(sides, ends, n, floor_s)
        is_new = [self._forecast.is_new(side.way) for side in sides]
        found = self._tries.counts(key, ends, best, is_new)
        if found == best and len(sides) > 1 and end_of(ends, best) < float("inf"):
            found = self._chosen(key, ends, best, floor_s, outcomes, waits)
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        self._known[key] = found
        return found

    def _chosen(
        self, key: tuple[object, ...], ends: Sequence[End], best: Sequence[int], floor_s: float,
        outcomes: Outcomes | None, waits: Sequence[float],
    ) -> list[int]:  # fmt: skip
        """By what is foreseen, and by what became of the task when it was divided so."""
        known = self._known.get(key)

        def all_s(counts: Counts) -> float:
            return max(floor_s, end_of(ends, counts))

        def idle_s(counts: Counts) -> float:
            return max(floor_s, end_of(ends, counts, waits))

        last = None if known is None or all_s(tuple(known)) == float("inf") else tuple(known)
        if outcomes is None:
            if last is not None and all_s(last) <= (1 + LEAST_GAIN) * all_s(tuple(best)):
                return list(last)
            return list(best)

        def delayed_s(counts: Counts) -> float:
            when_s = all_s(counts)
            return when_s - idle_s(counts) if when_s < float("inf") else 0.0

        times = outcomes.times(len(best))
        return list(chosen(idle_s, tuple(best), last, times, delayed_s))

    def outcomes(self, sides: Sequence[Side], task: str, how: str, size: float, n: int) -> Outcomes:
        """What became of a task that was divided among them."""
        keys = [side.way.key for side in sides]
        where = [
            f"{key.place} x {side.n_jobs * side.cores}" for key, side in zip(keys, sides)
        ]  # fmt: skip
        key = TaskKey(
            f"{task}, divided", f"{how} of {n}", " + ".join(where),
            " + ".join(key.driver for key in keys),
        )  # fmt: skip
        return Outcomes(self._forecast, key, size, n)

    def wait_s(self, side: Side, ready_s: float) -> float:
        """For how long it is busy."""
        return self._forecast.start_s(side.way.lane, side.cores, ready_s, side.taken) - ready_s

    def seconds(self, way: Way, size: float) -> float:
        """How long such a job takes, with what its lane needs beside it, if that is known, or 0."""
        known = self._forecast.known_s(way, size, 1)
        return 0.0 if known is None else known + way.lane.overhead_s

    def of_rows(
        self, side: Side, size: float, cut: Sequence[Touch], rest: Sequence[Touch], n: int,
        n_rows: int | None, ready_s: float,
    ) -> End:  # fmt: skip
        """When a side is done with some of n units of a task that has so much to do.

        cut: of what it is given what is moved by parts; `rest` is needed by all.  n_rows: of all
        units, which are not divided; None where they can be.
        """
        forecast, lane = self._forecast, side.way.lane
        start_s = self.wait_s(side, ready_s) + forecast.moves_s(rest, lane)
        moved = forecast.moves_upto(cut, lane, n)
        times = self._times.upto(side.way, side.cores, side.n_jobs, size, n, n_rows)
        if times is None:
            return unknown(n)
        upto, factor = times
        return RowsEnd(start_s, upto, moved, factor)

    def again(self, side: Side, end: End, size: float, n: int, n_rows: int | None) -> End:
        """The same by what is known of times by now."""
        times = self._times.upto(side.way, side.cores, side.n_jobs, size, n, n_rows)
        if times is None or not isinstance(end, RowsEnd):
            return unknown(n)
        return replace(end, upto=times[0], factor=times[1])

    def of_calls(
        self, side: Side, calls: Sequence[Job], back: Sequence[int], adds: Sequence[float], *,
        at_end: bool, ready_s: float,
    ) -> End:  # fmt: skip
        """When a side is done with calls of a series, and the host has what these give.

        back: bytes that each one gives; at_end: of which one call's are sent when all are done,
            else each call's while the next one is computed.  adds: how long adding what each call
            gives takes the side, or the host, which does it for all sides.
        """
        forecast, lane = self._forecast, side.way.lane
        start_s, shared, n = self.wait_s(side, ready_s), _shared(calls), len(calls)
        start_s += forecast.moves_s([*shared.values()], lane)
        work, sent = [0.0], [0.0]
        for job, nbytes, add_s in zip(calls, back, adds):
            seconds = forecast.known_s(side.way, job.size, side.cores)
            if seconds is None:
                return unknown(n)
            own = [one for one in job.touches if (one.datum, one.box) not in shared]
            seconds += lane.overhead_s + (add_s if at_end else 0.0)
            work.append(work[-1] + seconds + side.n_jobs * forecast.moves_s(own, lane))
            sent.append(sent[-1] + forecast.back_s(lane, nbytes))
        added_s = 0.0 if at_end or lane.device is not None else sum(adds)

        def end_s(first: int, last: int) -> float:
            if first == last:
                return 0.0
            n_jobs = side.n_alone if last - first == n else side.n_jobs
            done_s = (work[last] - work[first] + added_s) / n_jobs
            last_s = sent[last] - sent[last - 1]
            if not at_end:
                done_s = max(done_s, sent[last] - sent[first])
            return start_s + done_s + last_s

        return end_s


def _shared(calls: Sequence[Job]) -> dict[tuple[object, object], Touch]:
    """What several calls read, and is moved once."""
    seen: dict[tuple[object, object], Touch] = {}
    found: dict[tuple[object, object], Touch] = {}
    for job in calls:
        for touch in job.touches:
            key = touch.datum, touch.box
            if touch.reads and key in seen:
                found[key] = touch
            seen[key] = touch
    return found

