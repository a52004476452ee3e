# SPDX-License-Identifier: MIT
"""What the exchange of halos costs: how much of it hides, and which neighbour is waited for.

All follows from when kernels and arrivals of two successive steps began and ended.  For a place
and a step, the *exchange* is the time from the end of the last kernel that writes a border cell
to the start of the first kernel of the next step that reads a halo cell.  It is *hidden* while
the place's device runs a kernel, *exposed* while the device stands still.  The *wait* for a
neighbour is how long, after the place's kernels of the step have ended, its device stood still
before the neighbour's cells were in the halo.  Waits for several neighbours overlap.
"""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from controllers.engine import Timed
from controllers.plan import ExchangeEnds, Plan


@dataclass
class PlaceTime:
    """Nanoseconds of one place, each summed over the steps of which it is known."""

    n_steps: int = 0        # of which the kernels were seen
    n_exchanges: int = 0    # after which the kernels of the next step were seen
    compute_ns: int = 0
    exchange_ns: int = 0
    exposed_ns: int = 0
    waits_ns: dict[int, int] = field(default_factory=dict)      # by neighbour


class Busy:
    """When a device runs kernels.

    >>> busy = Busy([(0, 10), (20, 30), (25, 35)])
    >>> busy.within(5, 22), busy.within(40, 50)
    (7, 0)
    """

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._before: list[int] = []    # busy time before each start
        for start, end in sorted(spans):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
                continue
            so_far = self._before[-1] + self._ends[-1] - self._starts[-1] if self._ends else 0
            self._before.append(so_far)
            self._starts.append(start)
            self._ends.append(end)

    def within(self, start: int, end: int) -> int:
        """How long it did from `start` to `end`."""
        return self._until(end) - self._until(start) if end > start else 0

    def idle(self, start: int, end: int) -> int:
        """How long it did not."""
        return max(0, end - start) - self.within(start, end)

    def _until(self, moment: int) -> int:
        at = bisect_right(self._starts, moment) - 1
        if at < 0:
            return 0
        return self._before[at] + min(moment, self._ends[at]) - self._starts[at]


def place_times(
    plan: Plan, ends: ExchangeEnds, pairs: Iterable[tuple[Sequence[Timed], ...]]
) -> dict[int, PlaceTime]:
    """The times of the places of this rank, from pairs of successive steps (or a single one)."""
    times = {place: PlaceTime() for place in plan.places}
    for steps in pairs:
        for timed in steps:
            for place, spans in _kernels(timed, ends.launches).items():
                times[place].n_steps += 1
                times[place].compute_ns += sum(end - start for start, end in spans)
        if len(steps) == 2:
            _add_exchange(plan, ends, steps[0], steps[1], times)
    return times


def _kernels(timed: Sequence[Timed], wanted: frozenset[int]) -> dict[int, list[tuple[int, int]]]:
    """When the launches among `wanted` ran, by place."""
    found: dict[int, list[tuple[int, int]]] = {}
    for operation, start, end in timed:
        if operation.number in wanted:
            found.setdefault(operation.place, []).append((start, end))
    return found


def _add_exchange(
    plan: Plan,
    ends: ExchangeEnds,
    old: Sequence[Timed],
    new: Sequence[Timed],
    times: Mapping[int, PlaceTime],
) -> None:
    before, after = _kernels(old, ends.launches), _kernels(new, ends.launches)
    written, read = _kernels(old, ends.producers), _kernels(new, ends.consumers)
    read_before = _kernels(old, ends.consumers)
    busy = _busy_devices(plan, (before, after))
    for place in before.keys() & after.keys():
        time = times[place]
        time.n_exchanges += 1
        # a place that only receives may begin as soon as its halo is free
        began = written.get(place) or read_before.get(place)
        if began is None:   # it exchanges nothing
            continue
        start = max(end for _, end in began)
        end = min(start for start, _ in read.get(place) or after[place])
        time.exchange_ns += max(0, end - start)
        time.exposed_ns += busy[place].idle(start, end)
    for place, neighbour, arrived in _arrivals(ends, old):
        if place in before and place in after:
            computed = max(end for _, end in before[place])
            waits = times[place].waits_ns
            waits[neighbour] = waits.get(neighbour, 0) + busy[place].idle(computed, arrived)


def _arrivals(ends: ExchangeEnds, timed: Sequence[Timed]) -> Iterator[tuple[int, int, int]]:
    """Place, neighbour, and when all of the neighbour's cells were there."""
    last: dict[tuple[int, int], int] = {}
    for operation, _, end in timed:
        key = ends.arrivals.get(operation.number)
        if key is not None:
            last[key] = max(end, last.get(key, end))
    for (place, neighbour), arrived in last.items():
        yield place, neighbour, arrived


def _busy_devices(
    plan: Plan, steps: Sequence[Mapping[int, Sequence[tuple[int, int]]]]
) -> dict[int, Busy]:
    """For each place when its device ran kernels, those of its other places too."""
    spans: dict[int, list[tuple[int, int]]] = {}
    for kernels in steps:
        for place, found in kernels.items():
            spans.setdefault(plan.locations[place].controller, []).extend(found)
    busy = {controller: Busy(found) for controller, found in spans.items()}
    return {
        place: busy[plan.locations[place].controller]
        for place in plan.places
        if plan.locations[place].controller in busy
    }
