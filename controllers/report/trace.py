# SPDX-License-Identifier: MIT
"""Timelines: what every queue, message and host task of all ranks did when.

A `Trace` is told by the engine what it starts (it is a `Log`).  After a run the profiles become
spans on the host's clock, and in the end on that of rank 0.  Of long runs only the first and the
last steps are kept.  `controllers.report.trace_file` writes them.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from controllers.device.event import Profile
from controllers.engine import Engine, Runner
from controllers.executor.clock import Clock, root_reading
from controllers.plan import ChunkPlan, Operation, Plan
from controllers.plan.text import subject
from hitmap.comm import Communicator

KEPT_STEPS = 100    # at the beginning, and as many at the end
# What lanes are of a pipeline of chunks.
COPIES = {"transfer": "copy-in", "retrieve": "copy-out"}


class Row(NamedTuple):
    """What has a line of its own: a queue of a controller, the host's thread, one message."""

    rank: int
    name: str
    is_message: bool = False


@dataclass(frozen=True)
class Span:
    """One operation: in which row and step, and from when to when, in nanoseconds.

    step: counted from 0 over all runs; -1 fills the halos before the first step.
    number: of the operation in the plan of its rank.  bundle: of the plan of all ranks.
    """

    row: Row
    step: int
    verb: str
    what: str
    start: int
    end: int
    place: int
    number: int
    bundle: int | None


@dataclass(frozen=True)
class Timeline:
    """The spans of all ranks on the clock of rank 0; `error_ns` is how well each rank is aligned.

    n_steps: how many steps have run; kept are the first and the last ones.
    """

    n_steps: int
    spans: tuple[Span, ...]
    error_ns: tuple[int, ...]


class Trace:
    """Records the runs of one computation on one rank.  Making one is collective."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self._n_steps = 0       # in the runs that have ended
        self._first: int | None = None      # step of the run under way
        self._started: list[tuple[int, Operation, Profile, Runner | None]] = []
        self._steps: dict[int, list[Span]] = {}
        self._error_ns = 0
        self._reading = root_reading(comm)

    def begin(self, engine: Engine) -> None:
        """Steps are about to be run."""
        self._started = []      # what a run that was broken off has left
        self._first = None
        engine.read_clocks()

    def steps(self, first: int, last: int) -> list[int]:
        """Those that belong to the first of all runs, and the last of this one."""
        if self._first is None:     # a run may come in several
            self._first = first
        n_first = max(0, KEPT_STEPS - self._n_steps)
        n_last = min(KEPT_STEPS, last - first + 1)
        return sorted({*range(first - 1, min(first + n_first, last + 1)),
                       *range(last + 1 - n_last, last + 1)})  # fmt: skip

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        assert self._first is not None, "the engine has asked for steps"
        self._started.append((self._n_steps + step - self._first, operation, profile, None))

    def within(self, engine: Runner, step: int) -> PartOfStep:
        """Records a part of a step, which `engine` runs."""
        assert self._first is not None, "the engine has asked for steps"
        number = self._n_steps + step - self._first
        return PartOfStep(lambda *what: self._started.append((number, *what, engine)))

    def end(self, engine: Engine) -> None:
        """All operations are complete: keep their times, of the first and the last steps."""
        engine.read_clocks()
        if self._first is None:     # no step was to be run
            return
        n_steps = self._n_steps + engine.course.last + 1 - self._first
        # beyond the last one is what a look has dropped
        for step, operation, profile, part in (one for one in self._started if one[0] < n_steps):
            span = _span(part or engine, step, operation, profile)
            self._steps.setdefault(step, []).append(span)
        self._started, self._n_steps = [], n_steps
        for step in [n for n in self._steps if KEPT_STEPS <= n < self._n_steps - KEPT_STEPS]:
            del self._steps[step]
        errors = [executor.clock.error_ns for executor in engine.executors.values()]
        self._error_ns = max([self._error_ns, *errors])

    def timeline(self) -> Timeline | None:
        """What all ranks have recorded, on rank 0; None elsewhere.  Collective."""
        now = root_reading(self._comm)
        clock = Clock(self._reading)
        clock.add(now)
        mine = [
            replace(span, start=clock.here(span.start), end=clock.here(span.end))
            for step in sorted(self._steps)
            for span in self._steps[step]
        ]
        everyone = self._comm.gather((mine, self._error_ns + clock.error_ns))
        if everyone is None:
            return None
        spans = tuple(span for spans, _ in everyone for span in spans)
        return Timeline(self._n_steps, spans, tuple(error for _, error in everyone))


class PartOfStep:
    """Records what is started in a part of a step, of a long repeat its beginning alone."""

    def __init__(self, told: Callable[[Operation, Profile], None]) -> None:
        self._told = told

    def steps(self, first: int, last: int) -> range:
        """The first ones, and what fills the halos before."""
        return range(first - 1, min(last + 1, first + KEPT_STEPS))

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        self._told(operation, profile)

    def within(self, engine: Runner, step: int) -> PartOfStep:
        """The same: parts have none."""
        return self


def _span(engine: Runner, step: int, operation: Operation, profile: Profile) -> Span:
    return Span(
        _row(engine.plan, operation),
        step,
        operation.verb,
        subject(engine.plan, operation),
        engine.on_host_clock(operation, profile.start),
        engine.on_host_clock(operation, profile.end),
        operation.place,
        operation.number,
        operation.bundle,
    )


def _row(plan: Plan, operation: Operation) -> Row:
    if operation.verb == "combine":     # of a rank, which may have no place
        return Row(operation.gives[0].home, "folds of all ranks")
    location = plan.locations[operation.place]
    if operation.lane == "host":
        return Row(location.rank, "host")
    if operation.lane != "network":
        device = f" ({location.device})" if location.device else ""
        copies = COPIES if isinstance(plan, ChunkPlan) else {}
        lane = copies.get(operation.lane, operation.lane)
        name = f"controller {location.controller}{device}: {lane} queue"
        return Row(location.rank, name)
    assert operation.bundle is not None
    bundle = plan.bundles[operation.bundle]
    sends = operation.verb == "send"
    other = f"to place {bundle.target}" if sends else f"from place {bundle.source}"
    name = f"place {operation.place}: {operation.verb} {other}, message {operation.bundle}"
    return Row(location.rank, name, is_message=True)
