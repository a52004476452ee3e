# SPDX-License-Identifier: MIT
"""Functions on cores of the host, given arrays, and numbers for the futures of other tasks."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from controllers.arbiter.held import Own, held_by_task
from controllers.device.device import reference_device
from controllers.executor.reference import ReferenceExecutor
from controllers.language.each import Each
from controllers.memory.tile import Tile
from controllers.pool.job import Job
from controllers.pool.memories import Memories
from controllers.pool.newest import HOST_MEMORY
from controllers.pool.side.given import argument, named_tiles, numbers_of
from controllers.pool.side.items import ItemLaunch
from hitmap.strided import Geometry

_NONE = frozenset[str]()


class HostSide:
    """Calls functions with views of the host's arrays: those that are read are read-only."""

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    def begin(self, job: Job) -> bool:
        """Never: functions are for the pool's threads."""
        return False

    def begin_beside(self, job: Job, *, in_turn: bool) -> bool:
        """Never."""
        return False

    def run(self, job: Job, soon: Callable[[], None] | None = None) -> tuple[Any, float]:
        """What the function returns, unless it did some rows alone; and its seconds."""
        begin_s = time.perf_counter()
        self._memories.before(job.touches, HOST_MEMORY)
        job.moved_s = time.perf_counter() - begin_s
        call = _items if isinstance(job.variant.body, Each) else _function
        begin_s = time.perf_counter()
        try:
            units = frozenset(lane.unit for lane in job.lanes if lane.unit) if job.lanes else _NONE
            with held_by_task(Own(units, job.cores)):
                found = call(job)
        finally:
            self._memories.after(job.touches, HOST_MEMORY, job.replicas)
        return found if job.rows is None else None, time.perf_counter() - begin_s

    def close(self) -> None:
        """It has nothing of its own."""


def _function(job: Job) -> Any:
    """What a function returns for the arrays of a job."""
    variant, views = job.variant, iter(job.touches)
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
    return function(*args, **kwargs)


def _items(job: Job) -> None:
    """Compute the items of a job in NumPy."""
    body = job.variant.body
    assert isinstance(body, Each), "a function of items"
    tiles = [
        Tile(Geometry.dense(one.datum.box), one.datum.dtype, one.datum.flat, None)
        for one in job.touches
    ]  # fmt: skip
    executor = ReferenceExecutor(reference_device())
    launch = ItemLaunch(executor, body, named_tiles(job.touches, tiles), job.rows)
    launch.tell(numbers_of(job))
    launch.command(None)
    launch.end()
