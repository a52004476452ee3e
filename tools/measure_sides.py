# SPDX-License-Identifier: MIT
"""What two sides of a hybrid task do together, over what each does alone.

    python tools/measure_sides.py [--device gpu ...] [--cores N] [--private] [--ratios 1 3 10 100]
                                  [--milliseconds 30] [--rounds 7] [--by-row]
                                  [--pause [DRIFT]] [--out f.json] [--pieces] [--ahead N]

A task whose whole takes the first side so many milliseconds, and the second one so many times as
long: the rate of both over the sum of those alone, in turns, and over that of the better one; and
over the sum of those of both sides, each with a task of its own at the same time: what a machine
whose cores share caches, power and memory gives, without anything to divide.  `at first` is the
rate of the very first ones over the sum; with CONTROLLERS_ESTIMATES=off nothing is known of them.
Then how long after its submission the last of the sides has begun, in s.
The sides are a device and the cores that it leaves: all beside a GPU, without those that it
computes with where it is (part of) a CPU.  Two devices are the sides themselves: unlike ones
(`--device gpu:0 cpu`), or parts of one (`--device cpu/1,1`), of which the second one is slowed: it
does the same several times over.
On cores NumPy computes all rows that it is given at once; --by-row: one after another, with some
ten functions each, between which all threads want the interpreter's lock.
--pause: sides wait in place of computing, so that they do not hinder each other, whatever else a
machine does; with DRIFT the speed of each is drawn for each task, so many times slower at most.
--ahead: so many tasks are submitted one after another, before the first one is waited for, as steps
of a loop are.
--pieces: of the tasks of each ratio the pieces, as they ended: from when to when after its
submission, rows, ms, and those foreseen.
"""
from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from statistics import median
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # cores are the pool's

import numpy as np
from measure_tasks import (
    TURNS,
    TURNS_BY_SECOND,
    WIDTH,
    Array,
    opened,
    turned_at_once,
    turned_on_host,
)

import controllers as ct
from controllers.pool.hybrid.hybrid import Hybrid
from controllers.pool.pool import Pool

N_ROWS = 512        # many for each core
ALONE: dict[str, Any] = {"naps": False, "soon": None}
WARM = 24       # until shares are found, and times are seldom fitted anew


class Work:
    """A task for both sides, and the pool in which the second one is alone, if these are cores."""

    def __init__(self, given: argparse.Namespace, pool: Pool, cores: Pool | None) -> None:
        self.pool, self.cores, self._pause = pool, cores, given.pause
        self._ahead: int = given.ahead
        self._function = turned_on_host if given.by_row else turned_at_once
        width = WIDTH if given.pause is None else 16
        self._x, self._arrays = np.full((N_ROWS, width), 0.3), dict[object, Array]()
        self._draw = np.random.default_rng(1)
        self.slow = {1: 1.0, 2: 1.0}        # how many times as slow a side is just now
        self.row_s = {1: 0.0, 2: 0.0}       # for which sides wait
        self.pieces = list[str]()           # of tasks of both sides, if they are noted
        self.submitted_s = 0.0              # the last task, by the clock of pieces
        self.begun_s = 0.0                  # after its submission, by all sides
        self.again = 1                      # what the second device does over, to be slowed
        kinds = [lane.device.kind for lane in pool._lanes[1:] if lane.device is not None]
        self.unlike = kinds if len({*kinds}) > 1 else []
        for lane in pool._lanes[1:]:
            if given.pause is not None or not (cores or self.unlike):
                self._delay(lane.side, lane.number)

    def wait_s(self, side: int, n_rows: int) -> float:
        """As long as so many rows would take."""
        return n_rows * self.row_s[side] * self.slow[side]

    def task(self, name: str, sides: Sequence[int]) -> ct.Task:
        """For some of the sides; times are kept by the name."""
        made = ct.Task(name, ("x", "n", "again", "on_host", "none"), roles={"x": "updating"})
        for side, kind in enumerate(self.unlike, 1):
            if side in sides:
                made.variant((TURNS, TURNS_BY_SECOND)[side - 1], on=kind)
        if not self.unlike and (1 in sides or self.cores is None):
            made.variant(TURNS)
        if 2 in sides and self.cores is not None:
            made.variant(self._function if self._pause is None else self._on_cores)
        return made

    def alone(self, name: str, side: int) -> Hybrid:
        """A task for one of them."""
        is_one_side = self.cores is not None or bool(self.unlike)
        shares = None if is_one_side else (2.0 - side, side - 1.0)
        return ct.hybrid(self.task(f"{name} {side}", [side]), cut={"x": ct.Row}, shares=shares)

    def _on_cores(self, x: Array, n: int, again: int, on_host: int, none: int) -> None:
        time.sleep(self.wait_s(2, len(x)))

    def _delay(self, side: Any, number: int) -> None:
        """Have launches of a device wait, too, or be done over, each by a thread of its lane."""
        work, launched, begin = self, side._launched, side.begin

        class Delayed:
            def __init__(self, job: Any) -> None:
                self._all, self._job = [job.launched or launched(job)], job
                if number == 2:
                    self._all += [launched(job) for _ in range(work.again - 1)]
                self.start = self._all[0].start

            def wait(self, foreseen_s: float, **how: Any) -> float:
                low, high = self._job.rows or (0, N_ROWS)
                is_paused = work.wait_s(number, high - low) > 0
                for one in self._all:
                    is_last = one is self._all[-1] and not is_paused
                    one.wait(foreseen_s, **(how if is_last else ALONE))
                if is_paused:
                    time.sleep(0.9 * work.wait_s(number, high - low))
                    if how["soon"] is not None:
                        how["soon"]()
                    time.sleep(0.1 * work.wait_s(number, high - low))
                return (time.perf_counter_ns() - int(self.start)) / 1e9

            def ends_within(self, seconds: float) -> bool:
                return False

        def begun(job: Any) -> bool:
            if not begin(job):
                return False
            job.launched = Delayed(job)
            return True

        side._launched, side.begin = Delayed, begun

    def drawn(self) -> None:
        """New speeds."""
        if self._pause:
            self.slow = {side: float(self._draw.uniform(1, self._pause)) for side in (1, 2)}

    def _cells(self, task: Any) -> Array:
        """Each task has its own, or they would move from side to side."""
        if id(task) not in self._arrays:
            self._arrays[id(task)] = self._x.copy()
        return self._arrays[id(task)]

    def at_once(self, tasks: Sequence[Any], n_first: int, again: int, on_host: int) -> float:
        """Tasks per second of both sides: n of the first one's while the other one does its own."""
        pools = self.pool, self.cores or self.pool
        x, done = [self._cells(task) for task in tasks], [0.0, 0.0]
        ended: SimpleQueue[tuple[int, float, BaseException | None]] = SimpleQueue()
        begin_s = time.perf_counter()

        def over(side: int) -> Callable[[Any], None]:
            return lambda future: ended.put((side, time.perf_counter(), future.exception()))

        for side in (1, *[0] * n_first):
            future = pools[side].submit(tasks[side], x[side], 1, again, on_host, 0)
            future.add_done_callback(over(side))
        for _ in range(1 + n_first):
            side, when_s, error = ended.get()
            assert error is None, error
            done[side] = max(done[side], when_s)
        self._rest()
        return n_first / (done[0] - begin_s) + 1 / (done[1] - begin_s)

    def timed(self, task: Any, again: int, on_host: int, pool: Pool) -> float:
        """Seconds of one of those that were submitted together."""
        x, starts = self._cells(task), dict[str, int]()
        pool._ends.newest.clear()
        self.submitted_s = begin_s = time.perf_counter()
        futures = [pool.submit(task, x, 1, again, on_host, 0) for _ in range(self._ahead)]
        for future in futures:
            error = future.exception()
            assert error is None, error
        took_s = (time.perf_counter() - begin_s) / self._ahead
        for one in pool._ends.newest:
            starts[one.lane] = min(starts.get(one.lane, one.start), one.start)
        self.begun_s = max(starts.values()) / 1e9 - begin_s
        self._rest()
        return took_s

    def _rest(self) -> None:
        """One of two pools would leave alone what the other one has leased."""
        if self.cores is not None and self.cores is not self.pool:
            for pool in (self.pool, self.cores):
                pool._share.rest()


def note_pieces(work: Work) -> None:
    """Have the pool of both sides tell of each piece that ends."""
    add = work.pool._ends.add

    def noted(job: Any, error: Any, seconds: float, when: tuple[int, int]) -> Any:
        if job.rows is not None:
            low, high = job.rows
            begin_ms, end_ms = (ns / 1e6 - 1e3 * work.submitted_s for ns in when)
            work.pieces.append(
                f"  {job.where}: {begin_ms:.2f} to {end_ms:.2f} ms, rows {low} to {high} "
                f"in {1e3 * seconds:.2f} ms, {1e3 * seconds / (high - low):.4f} each "
                f"(foreseen {1e3 * job.seconds:.2f}, to move cells {1e3 * job.moved_s:.2f})"
            )
        return add(job, error, seconds, when)

    work.pool._ends.add = noted     # type: ignore[method-assign]


def count_for(seconds_of: Callable[[int], float], wanted_s: float) -> int:
    """How often a side does it all, to take so long."""
    count, took_s = 1, 0.0
    while took_s < wanted_s / 2:    # so that its start counts little
        count *= 2
        took_s = min(seconds_of(count) for _ in range(5))
    return max(1, round(wanted_s * count / took_s))


def counts_of(
    given: argparse.Namespace, work: Work, alone: Sequence[Any], ratio: float
) -> tuple[int, int]:
    """How often both sides do it all, to take the wanted time and so many times as long."""
    first_s, second = given.milliseconds / 1e3, work.cores or work.pool
    again = on_host = 1
    is_slowed = given.pause is None and work.cores is None and not work.unlike
    work.again = max(1, round(ratio)) if is_slowed else 1
    if given.pause is not None:
        work.row_s = {1: first_s / N_ROWS, 2: ratio * first_s / N_ROWS}
    else:
        def by_first(n: int) -> float:
            return work.timed(alone[0], n, 0, work.pool)

        def by_second(n: int) -> float:
            return work.timed(alone[1], 0, n, second)

        again = count_for(by_first, first_s)
        on_host = 1 if is_slowed else count_for(by_second, ratio * first_s)
    return again, on_host


def of_ratio(given: argparse.Namespace, work: Work, ratio: float) -> dict[str, float]:
    """Of tasks of which the first side is so many times as fast as the second one."""
    name, second = f"turns, 1:{ratio:g}", work.cores or work.pool
    alone = [work.alone(name, side) for side in (1, 2)]
    both = ct.hybrid(work.task(f"{name} both", [1, 2]), cut={"x": ct.Row})
    again, on_host = counts_of(given, work, alone, ratio)
    at_first = work.timed(both, again, on_host, work.pool)
    for _ in range(WARM):
        work.drawn()
        work.timed(both, again, on_host, work.pool)
    found, pieces = [], list[str]()
    for number in range(given.rounds):
        work.drawn()
        first = work.timed(alone[0], again, on_host, work.pool)
        if ratio <= 10 or not number:
            other = work.timed(alone[1], again, on_host, second)
            rate = work.at_once(alone, max(1, round(other / first)), again, on_host)
        work.pieces.clear()
        two = work.timed(both, again, on_host, work.pool)
        found.append((first, other, two, rate, work.begun_s))
        pieces += [f" a task of {1e3 * two:.2f} ms:", *work.pieces] if given.pieces else []
    work.pieces[:] = pieces
    sums = [1 / two / (1 / one + 1 / other) for one, other, two, *_ in found]
    one_s, other_s, both_s, _, begun_s = (median(some) for some in zip(*found))
    return {
        "first alone": one_s, "second alone": other_s, "both": both_s,
        "of the sum": median(sums), "least": min(sums), "most": max(sums),
        "at first": 1 / at_first / (1 / one_s + 1 / other_s),
        "of what both do at once": median(1 / two / rate for _, _, two, rate, _ in found),
        "over the better one": min(one_s, other_s) / both_s, "begun by all after": begun_s,
    }  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", nargs="+", default=["gpu"])
    parser.add_argument("--cores", type=int)
    parser.add_argument("--private", action="store_true")
    parser.add_argument("--ratios", type=float, nargs="+", default=[1, 3, 10, 100])
    parser.add_argument("--milliseconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--ahead", type=int, default=1)
    parser.add_argument("--by-row", action="store_true")
    parser.add_argument("--pause", type=float, nargs="?", const=1.0, metavar="DRIFT")
    parser.add_argument("--pieces", action="store_true")
    parser.add_argument("--out")
    given = parser.parse_args(arguments)
    n_cores, found = given.cores or len(os.sched_getaffinity(0)), {}
    with opened(given) as pool:
        left = max(1, n_cores - sum(lane.cores for lane in pool._lanes))
        with ct.tasks((), cores=left) as beside:
            cores = beside if left < n_cores else pool
            work = Work(given, pool, None if len(pool._lanes) > 2 else cores)
            if given.pieces:
                note_pieces(work)
            for ratio in given.ratios:
                found[f"1:{ratio:g}"] = numbers = of_ratio(given, work, ratio)
                listed = ", ".join(f"{name} {number:.4g}" for name, number in numbers.items())
                print(f"1:{ratio:g}: {listed}", *work.pieces, sep="\n", flush=True)
    if given.out:
        with open(given.out, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    main()
