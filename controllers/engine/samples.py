# SPDX-License-Identifier: MIT
"""Who looks at the operations while they run, and the sample of steps that tells what steps cost.

A sample is some pairs of successive steps: within a pair one sees what a step's exchange of
halos held up in the next step.
"""
from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Protocol, TypeAlias, TypeVar

from controllers.device.event import Profile
from controllers.plan import Operation, Plan
from controllers.plan.ends import ExchangeEnds

# Reading the times of one step takes some 20 us, so that of a long run one step in 64 is looked at.
DISTANCE = 128      # steps between two pairs, at least, but ...
MIN_PAIRS = 4       # ... so many pairs in short runs
MAX_PAIRS = 128

# An operation, and when it began and ended, in nanoseconds of the host's clock.
Timed: TypeAlias = tuple[Operation, int, int]


class Log(Protocol):
    """What an engine tells about the operations it starts, in the steps that are wanted."""

    def steps(self, first: int, last: int) -> Iterable[int]:
        """The steps of a run that are wanted; `first` - 1 stands for filling the halos."""

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        """`operation` has been started in `step`; its profile can be read when it is complete."""


class Runner(Protocol):
    """What runs the operations of a plan, as logs see it."""

    @property
    def plan(self) -> Plan: ...
    @property
    def ends(self) -> ExchangeEnds: ...
    def on_host_clock(self, operation: Operation, moment: int) -> int: ...


class RunLog(Log, Protocol):
    """What a run tells, where parts of steps may be run by engines of their own."""

    def within(self, engine: Runner, step: int) -> RunLog:
        """Who is told of a part of a step that is wanted, which another engine runs as steps."""


_L = TypeVar("_L", bound=Log)


class Samples:
    """The operations of some pairs of successive steps of a run, of all places of a rank.

    `watched` are the numbers of the operations that matter.
    """

    def __init__(self, watched: Container[int]) -> None:
        self._watched = watched
        self.wanted = True      # whether the next run is sampled
        self._first = 0
        self._interval = 2
        self._steps: dict[int, list[tuple[Operation, Profile]]] = {}

    def steps(self, first: int, last: int) -> list[int]:
        """Choose the steps of a run to sample: pairs at even distances, from the first step on."""
        if not self.wanted:
            return []
        self._steps = {}
        n_steps = last - first + 1
        n_pairs = min(max(n_steps // DISTANCE, MIN_PAIRS), MAX_PAIRS)
        self._first = first
        self._interval = max(2, -(-n_steps // n_pairs))
        return [
            step
            for pair in range(first, last + 1, self._interval)
            for step in (pair, pair + 1)
            if step <= last
        ]

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        if operation.number in self._watched:
            self._steps.setdefault(step, []).append((operation, profile))

    def pairs(self, here: Callable[[Operation, int], int]) -> Iterator[tuple[list[Timed], ...]]:
        """The operations of each pair of steps, or of a last step alone, when all are complete.

        `here` turns the time of an operation into one of the host's clock.
        """
        for step in sorted(self._steps):
            if (step - self._first) % self._interval == 0:
                steps = [self._steps[n] for n in (step, step + 1) if n in self._steps]
                yield tuple(
                    [(o, here(o, profile.start), here(o, profile.end)) for o, profile in timed]
                    for timed in steps
                )
        self._steps = {}


class Several:
    """Several logs as one."""

    def __init__(self, logs: Sequence[RunLog]) -> None:
        self._logs = logs
        self._by_step: dict[int, list[RunLog]] = {}

    def steps(self, first: int, last: int) -> Iterable[int]:
        """What any of them wants."""
        self._by_step = by_step(self._logs, first, last)
        return self._by_step

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        for log in self._by_step[step]:
            log.add(step, operation, profile)

    def within(self, engine: Runner, step: int) -> Several:
        """All that want the step."""
        return Several([log.within(engine, step) for log in self._by_step[step]])


def by_step(logs: Sequence[_L], first: int, last: int) -> dict[int, list[_L]]:
    """The logs that want a step of a run, for each such step."""
    found: dict[int, list[_L]] = {}
    for log in logs:
        for step in log.steps(first, last):
            found.setdefault(step, []).append(log)
    return found
