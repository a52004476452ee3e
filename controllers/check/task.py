# SPDX-License-Identifier: MIT
"""The host's tasks under the monitor: what they find, and what they leave."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from controllers.check.cells import bits_of
from controllers.check.complaints import first_cell
from controllers.check.finding import Complaint
from controllers.check.monitor import Monitor
from controllers.check.ordering import HOST, Traced, untraced
from controllers.check.part import Array, Touched, joined, put
from controllers.device.event import Command, Event
from controllers.plan import MemoryCells, Operation, TileKey
from hitmap.shape import Shape

# The cells of a box of a tile, in host memory.
View: TypeAlias = Callable[[TileKey, Shape], Array]


class TaskWatch:
    """Watches one task of the host at one place."""

    def __init__(self, monitor: Monitor, operation: Operation, real: Command, view: View) -> None:
        task = operation.task
        assert task is not None
        self._monitor, self._operation, self._real, self._view = monitor, operation, real, view
        self._number = monitor.plan.host_tasks.index(task)
        self._taken = [*self._touched(task.reads, operation.reads)]
        self._given = [*self._touched(task.writes, operation.writes)]
        self._who = f"the host task {task.name} at place {operation.place}"

    def __call__(self, wait_for: Sequence[Event] | None = None) -> Event:
        """Do the task; what is wrong is the monitor's to know."""
        monitor, operation = self._monitor, self._operation
        events, after = untraced(wait_for)
        clock, thread = monitor.clocks.tick(HOST, after), monitor.clocks.number(HOST)
        for key, part in self._taken:
            monitor.order(operation, part, part.cells.read(part.where, clock, thread))
            monitor.expect(part, self._time(part), f"{self._who} reads")
            values = self._view(key, part.box)
            monitor.compare(key, part.field, part.box, values, np.zeros(values.shape, np.bool_))
        for _, part in self._given:
            monitor.order(operation, part, part.cells.write(part.where, clock, thread))
        event = self._real(events)
        for key, part in self._given:
            stamps = monitor.versions.stamps(part.field, part.box, self._time(part) + 1)
            put([part], joined([stamps], [self._view(key, part.box)]))
        for key, part in self._taken:
            monitor.complain(self._changed(key, part))
        return Traced(event, clock, monitor.clocks)

    def _touched(
        self, fields: Sequence[str], accesses: Sequence[MemoryCells]
    ) -> Iterator[tuple[TileKey, Touched]]:
        for field, access in zip(fields, accesses, strict=True):
            assert isinstance(access.memory, TileKey), "tasks work on tiles"
            for part in self._monitor.parts(access, field):
                yield access.memory, part

    def _time(self, part: Touched) -> int:
        """When the task finds a field."""
        versions = self._monitor.versions
        return versions.before_task(self._monitor.step, self._number, part.field)

    def _changed(self, key: TileKey, part: Touched) -> Complaint | None:
        """What is wrong where cells are not as they were that were to be read alone."""
        unlike = bits_of(self._view(key, part.box)) != part.where.view(part.cells.bits)
        if not unlike.any():
            return None
        cell = first_cell(part, unlike, self._monitor.versions)
        what = f"{self._who} writes {part.field} at {cell}, which it was given to read"
        return Complaint("read-only", what, part.field, cell)
