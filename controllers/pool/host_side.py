# SPDX-License-Identifier: MIT
"""Functions on cores of the host, given arrays, and numbers for the futures of other tasks."""
from __future__ import annotations

import time
from concurrent.futures import Future
from typing import Any

import numpy as np

from controllers.arbiter.held import Own, held_by_task
from controllers.controller.access import ArrayAccess
from controllers.pool.data import Touch
from controllers.pool.job import Job, TaskFuture
from controllers.pool.memories import Memories
from controllers.pool.newest import HOST_MEMORY

_NONE = frozenset[str]()


class HostSide:
    """Calls functions with views of the host's arrays: those that are read are read-only."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    def begin(self, job: Job) -> bool:
        """Never: functions are for the pool's threads."""
        return False

    def run(self, job: Job) -> tuple[Any, float]:
        """What the function returns, unless it did some rows alone; and its seconds."""
        variant, begin_s = job.variant, time.perf_counter()
        self._memories.before(job.touches, HOST_MEMORY)
        job.moved_s = time.perf_counter() - begin_s
        views = iter(job.touches)
        counts_rows = variant.counts_rows
        args = [argument(given, views, whole=counts_rows) for given in job.args]
        kwargs = {
            name: argument(given, views, whole=counts_rows) for name, given in job.kwargs.items()
        }
        if "cores" in variant.tells:
            kwargs["cores"] = job.cores
        if "devices" in variant.tells:
            kwargs["devices"] = tuple(lane.selector for lane in job.lanes)
        if counts_rows and job.rows is not None:
            kwargs["rows"] = slice(*job.rows)
        function: Any = variant.body
        begin_s = time.perf_counter()
        try:
            units = frozenset(lane.unit for lane in job.lanes if lane.unit) if job.lanes else _NONE
            with held_by_task(Own(units, job.cores)):
                found = function(*args, **kwargs)
        finally:
            self._memories.after(job.touches, HOST_MEMORY, job.replicas)
        return found if job.rows is None else None, time.perf_counter() - begin_s


def argument(given: Any, touches: Any, *, whole: bool = False) -> Any:
    """What a function gets for an argument; `touches` are those of arrays, in order.

    whole: of a part of a task, the array that it is a part of.
    """
    if isinstance(given, (np.ndarray, ArrayAccess)):
        touch: Touch = next(touches)
        view = (touch.origin if whole else touch.view).view()
        if not touch.writes:
            view.flags.writeable = False
        return view
    return value_of(given)


def value_of(given: Any) -> Any:
    """The result of a future that is done; anything else is itself."""
    return Future.result(given, 0) if isinstance(given, TaskFuture) else given
