# SPDX-License-Identifier: MIT
"""In which ways a job can be done: the variants of its task, in the lanes that they suit."""
from __future__ import annotations

import weakref
from collections.abc import Sequence

from controllers.language.each import Each
from controllers.memory.ledger import sizes
from controllers.pool.data import Touch
from controllers.pool.lane import Lane
from controllers.pool.task import Task
from controllers.pool.variant import Variant
from controllers.pool.way import Way


class Ways:
    """Those of all tasks, in the lanes of one pool."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self._lanes = lanes
        self._known: weakref.WeakKeyDictionary[Task, tuple[int, list[Way]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(self, task: Task, touches: Sequence[Touch], *, has_futures: bool) -> list[Way]:
        """Those for a job; ValueError where there is none."""
        ways = self._of_task(task)
        if not ways:
            raise ValueError(self._none_of(task))
        functions = [way for way in ways if way.variant.is_function]
        usable = ways
        if len(functions) < len(ways):
            if _overlap(touches) or any(one.at.geometry is None for one in touches):
                usable = functions
            elif has_futures:   # what they give may be arrays, which kernels do not take
                usable = functions or ways
            if not all(one.at.has_rows for one in touches):
                usable = [way for way in usable if not isinstance(way.variant.body, Each)]
        if not usable:
            raise ValueError(
                f"task {task.name!r} has kernels alone, which take arrays and slices of them whose "
                f"last axis has the step 1, in C order and of one dtype (of functions of items, "
                f"whose rows are whole), and which write no cell that is given twice; give a copy "
                f"of another one"
            )
        return _fitting(task, usable, touches)

    def _of_task(self, task: Task) -> list[Way]:
        count, ways = self._known.get(task, (0, []))
        if count != len(task.variants):
            ways = [
                Way(task.name, variant, lane, self._among(variant))
                for variant in task.variants for lane in self._lanes
                if variant.suits(lane.device) and self._has_devices(variant)
            ]  # fmt: skip
            self._known[task] = len(task.variants), ways
        return ways

    def _among(self, variant: Variant) -> tuple[Lane, ...]:
        """The lanes of the devices of which a function is given some."""
        return tuple(one for one in self._lanes if one.device and variant.may_have(one.device))

    def _has_devices(self, variant: Variant) -> bool:
        return len(self._among(variant)) >= variant.devices[0]

    def _none_of(self, task: Task) -> str:
        wanted = ", ".join(f"{one.name} ({one.place})" for one in task.variants)
        lanes = ", ".join(lane.name for lane in self._lanes)
        return (
            f"task {task.name!r} has the variants {wanted or 'none'}, of which none can be done on "
            f"{lanes}; add one, or open the pool with other devices"
        )


def _fitting(task: Task, ways: Sequence[Way], touches: Sequence[Touch]) -> list[Way]:
    """Those in whose lanes the arrays may be, each in one allocation; ValueError if none is."""
    largest = max((one.datum.box.n_cells * one.datum.dtype.itemsize for one in touches), default=0)
    found, most = [], 0
    for way in ways:
        device = way.lane.device
        if device is None or largest <= device.max_allocation_bytes:
            found.append(way)
        else:
            most = max(most, device.max_allocation_bytes)
    if found:
        return found
    needed, allowed = sizes(largest, most)
    raise ValueError(
        f"task {task.name!r} is given an array of {needed}, and drivers of the devices that could "
        f"do it allow at most {allowed} for one; give parts of it that are arrays by themselves, "
        f"or add a variant for cores"
    )


def _overlap(touches: Sequence[Touch]) -> bool:
    """Whether cells are written that the task is given as another argument, too.

    Kernels compute cells of a launch at once, and where nothing is read that they write, twice.
    """
    if len({one.datum for one in touches}) == len(touches):
        return False
    return any(
        one.writes and one is not other and one.datum is other.datum and one.box.meets(other.box)
        for one in touches for other in touches
    )  # fmt: skip
