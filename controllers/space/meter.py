# SPDX-License-Identifier: MIT
"""What functions of items cost each place, by a sample of their calls.

Of a call in the sample the kernels of each place are timed by its device, and what a call that
gathers does besides, copies and messages, too; what is left of its time the place has waited.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from controllers.array.mapped import MappedRun
from controllers.array.stream_run import StreamRun
from controllers.device.event import Event, Profile, is_complete
from controllers.engine import Runner
from controllers.executor.executor import Executor
from controllers.plan import Operation

FIRST = 8           # calls of which each is timed, of one function on the same arrays
DISTANCE = 16       # ... then one in so many
MOST_UNREAD = 256   # timed kernels


@dataclass
class PlaceCost:
    """Seconds of a place in all calls, as far as the sample tells."""

    compute_s: float = 0.0
    exchange_s: float = 0.0
    wait_s: float = 0.0


class _Step:
    """A log of all operations of one step, and of what comes before it."""

    def __init__(self) -> None:
        self.found: list[tuple[Operation, Profile]] = []

    def steps(self, first: int, last: int) -> Iterable[int]:
        return range(first - 1, last + 1)

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        self.found.append((operation, profile))

    def within(self, engine: Runner, step: int) -> _Step:
        return self


class Meter:
    """Runs functions on the places of this rank, and counts.

    calls: how many there were.
    """

    def __init__(self, executors: Mapping[int, Executor], finish: Callable[[], None]) -> None:
        self.calls = 0
        self._costs = {place: PlaceCost() for place in executors}
        self._executors = list(dict.fromkeys(executors.values()))
        self._finish = finish
        self._done: dict[int, int] = {}     # calls by what is run
        self._unread: list[tuple[int, float, Event]] = []

    def run(
        self, key: int, run: MappedRun | StreamRun, numbers: Mapping[str, float]
    ) -> list[Event]:
        """Do it once; what is under way then.  Collective."""
        before = self._done.get(key, 0)
        self._done[key] = before + 1
        self.calls += 1
        if before >= FIRST and before % DISTANCE:
            return run.run(numbers)
        weight = 1.0 if before < FIRST else float(DISTANCE)
        return self._timed(run, numbers, weight)

    def _timed(
        self, run: MappedRun | StreamRun, numbers: Mapping[str, float], weight: float
    ) -> list[Event]:
        self._time(True)
        log, start = _Step(), time.perf_counter()
        try:
            events = run.run(numbers, log)
        finally:
            self._time(False)
        if isinstance(run, StreamRun) or not run.is_light:
            self._add(run, log.found, time.perf_counter() - start, weight)
            return events
        places = run.places
        kernels = events[len(events) - len(places) :]
        self._unread += [(place, weight, event) for place, event in zip(places, kernels)]
        if len(self._unread) > MOST_UNREAD:
            self._finish()
            self._read()
        return events

    def _add(
        self, run: MappedRun | StreamRun, found: Sequence[tuple[Operation, Profile]],
        seconds: float, weight: float,
    ) -> None:  # fmt: skip
        """A call that has gathered or passed through, and is over, has taken so long."""
        homes = run.home_of if isinstance(run, StreamRun) else {}
        for place, cost in self._costs.items():
            took = {True: 0.0, False: 0.0}      # by whether it is a kernel
            for operation, profile in found:
                if homes.get(operation.place, operation.place) == place:
                    took[operation.verb == "launch"] += (profile.end - profile.start) * 1e-9
            compute_s = min(took[True], seconds)
            exchange_s = min(took[False], seconds - compute_s)
            cost.compute_s += weight * compute_s
            cost.exchange_s += weight * exchange_s
            cost.wait_s += weight * (seconds - compute_s - exchange_s)

    def _read(self) -> None:
        for place, weight, event in self._unread:
            if is_complete(event):
                profile = event.profile
                self._costs[place].compute_s += weight * (profile.end - profile.start) * 1e-9
        self._unread.clear()

    def _time(self, wanted: bool) -> None:
        for executor in self._executors:
            executor.time_commands(wanted)

    @property
    def costs(self) -> Mapping[int, PlaceCost]:
        """Of the places of this rank, when nothing is under way any more."""
        self._finish()
        self._read()
        return self._costs
