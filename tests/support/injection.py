# SPDX-License-Identifier: MIT
"""Ways to put a fault into plans and engine, each undone at the end of its `with` block."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pyopencl as cl

from controllers.device.event import Command, Event
from controllers.engine.binding import Binder
from controllers.executor.opencl import OpenCLExecutor
from controllers.memory.tile import TileView
from controllers.placement import halo_width
from controllers.plan import MemoryCells, Operation, Plan, TileKey
from controllers.run import computation

BUSY_BYTES = 6 * 2**20      # so many copies of so much keep a queue busy for some milliseconds;
BUSY_COPIES = 8     # where one core serves several queues it turns to the others after each

Change = Callable[[Plan], Sequence[Operation]]


@contextmanager
def changed_plan(change: Change) -> Iterator[None]:
    """The operations of every plan are changed before they are bound."""

    def plan(*arguments: Any, **options: Any) -> Plan:
        made = Plan(*arguments, **options)
        made.operations = tuple(change(made))
        return made

    with patch.object(halo_width, "Plan", plan):
        yield


def without_operations(plan: Plan, left_out: Callable[[Operation], bool]) -> Sequence[Operation]:
    """The operations that stay, without edges to those left out."""
    gone = {operation.number for operation in plan.operations if left_out(operation)}
    return [
        replace(o, after=tuple(edge for edge in o.after if edge.number not in gone))
        for o in plan.operations
        if o.number not in gone
    ]


def without_edge(plan: Plan, after: Operation, before: Operation) -> Sequence[Operation]:
    """The operations, `after` no longer waiting for `before`, in no step.

    Both may be operations of the plan of all ranks; a rank that has them not changes nothing.
    """
    half = len(plan.operations) // 2
    numbers = {_identity(o): o.number for o in plan.operations}
    waiting, awaited = numbers.get(_identity(after)), numbers.get(_identity(before))
    if waiting is None or awaited is None:
        return plan.operations
    return [
        replace(o, after=tuple(e for e in o.after if e.number % half != awaited % half))
        if o.number % half == waiting % half
        else o
        for o in plan.operations
    ]


def _identity(operation: Operation) -> object:
    return operation.verb, operation.place, operation.phase, operation.reads, operation.writes


def with_levels(plan: Plan, level: Callable[[Operation, int], int]) -> Sequence[Operation]:
    """The operations, the time levels they read replaced by `level(operation, level)`."""

    def changed(operation: Operation, access: MemoryCells) -> MemoryCells:
        key = access.memory
        if not isinstance(key, TileKey):
            return access
        return replace(access, memory=replace(key, buffer=level(operation, key.buffer)))

    return [replace(o, reads=tuple(changed(o, read) for read in o.reads)) for o in plan.operations]


@contextmanager
def busy_queue(verb: str, place: int) -> Iterator[None]:
    """The commands `verb` of a place stand behind other work in the queue of their device."""
    bind = Binder.command
    work: dict[OpenCLExecutor, list[cl.Buffer]] = {}

    def command(self: Binder, operation: Operation) -> Command:
        bound = bind(self, operation)
        executor = self.executors[operation.place]
        if (operation.verb, operation.place) != (verb, place) or not operation.on_device:
            return bound
        assert isinstance(executor, OpenCLExecutor)
        on_lane = operation.lane == "compute"
        lane = executor.compute_lane if on_lane else executor.transfer_lane
        if executor not in work:
            flags = cl.mem_flags.READ_WRITE
            work[executor] = [cl.Buffer(executor.context, flags, BUSY_BYTES) for _ in range(2)]
        source, target = work[executor]

        def delayed(wait_for: Sequence[Event] | None = None) -> Event:
            for _ in range(BUSY_COPIES):
                cl.enqueue_copy(lane.queue, target, source, byte_count=BUSY_BYTES)
            return bound(wait_for)

        return delayed

    with patch.object(Binder, "command", command):
        yield


def no_opening() -> AbstractContextManager[object]:
    """A run trusts the halos that there were before the fields were set."""
    return patch.object(Plan, "opening", property(lambda plan: ((),) * plan.n_phases))


@contextmanager
def one_buffer_loaded() -> Iterator[None]:
    """The field is loaded into one buffer, so that the other lacks the fixed cells."""
    load = computation.Computation.load

    def partly(self: computation.Computation, init: Callable[[TileView], None]) -> None:
        to_set = Plan.to_set
        with patch.object(Plan, "to_set", lambda *arguments: to_set(*arguments)[:1]):
            load(self, init)

    with patch.object(computation.Computation, "load", partly):
        yield
