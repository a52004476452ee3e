# SPDX-License-Identifier: MIT
"""Kernels on one device, given arrays: in the host's memory where it computes there."""
from __future__ import annotations

import time
from typing import Any

from controllers.controller.access import Access
from controllers.controller.commands import Commands
from controllers.controller.launches import Given, Launches
from controllers.controller.tied_tile import TiedTile
from controllers.device.device import Device
from controllers.device.event import Command
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.variant import Kernel
from controllers.language.each import Each
from controllers.memory.tile import Tile
from controllers.pool.data import Datum, Touch
from controllers.pool.host_side import value_of
from controllers.pool.items import ItemRuns
from controllers.pool.job import Job
from controllers.pool.known_launches import KnownLaunches, TilesInPlace
from controllers.pool.memories import Memories
from controllers.pool.newest import HOST_MEMORY
from hitmap.shape import Shape


class DeviceSide:
    """Launches kernels over the cells of arrays, counted from the first one that they are given.

    For one thread; it waits for each kernel.
    """

    def __init__(self, device: Device, memories: Memories, rank: int, **of_executor: Any) -> None:
        self.executor = OpenCLExecutor(device, **of_executor)
        self._memories = memories
        in_place = self.executor.shares_host and device.kind == "cpu"
        self.memory = HOST_MEMORY if in_place else memories.join(self.executor)
        self._commands = Commands(self.executor)
        self._launches = Launches(self._commands, rank)
        self._items = ItemRuns(self.executor)
        self._known, self._in_place = KnownLaunches(), TilesInPlace(self.executor)

    def run(self, job: Job) -> tuple[None, float]:
        """Launch the kernel, and wait for it; its seconds."""
        body, begin_s = job.variant.body, time.perf_counter()
        self._memories.before(job.touches, self.memory, job.replicas)
        job.moved_s = time.perf_counter() - begin_s
        tiles: dict[Datum, Tile] = {}
        for touch in job.touches:
            if touch.datum not in tiles:
                tiles[touch.datum] = self._tile(touch.datum)
        try:
            if isinstance(body, Each):
                seconds = self._items.run(body, self._named(job, tiles), _numbers(job))
            else:
                assert isinstance(body, Kernel), "what a device can do"
                seconds = self._launch(job, body, tiles)
        finally:
            self._memories.after(job.touches, self.memory, job.replicas)
        if job.sent:
            self._memories.send(job.touches, self.memory)
        return None, seconds

    def _launch(self, job: Job, kernel: Kernel, tiles: dict[Datum, Tile]) -> float:
        numbers = _numbers(job)
        key = self._known.key(job, tiles, numbers)
        command = self._known.get(key)
        if command is None:
            command = self._prepared(job, kernel, tiles, numbers)
            if self._launches.checked is None:      # which looks at each launch
                self._known.add(key, command, job.variant, tiles.values())
        begin_s = time.perf_counter()   # it has been built by now
        self._commands.issue(command, ()).wait()
        return time.perf_counter() - begin_s

    def _prepared(
        self, job: Job, kernel: Kernel, tiles: dict[Datum, Tile], numbers: dict[str, Any]
    ) -> Command:
        given: dict[str, Given] = {**numbers}
        for name, (touch, tile) in self._named(job, tiles).items():
            tied = TiedTile(self._commands, tile.geometry, tile.dtype, "internal", tile, None)
            cells = tied.select(Shape.of_extent(touch.origin.shape))
            given[name] = Access(cells, touch.role)
        return self._launches.prepared(kernel, over_of(job), given, job.variant.group)[0]

    def _named(self, job: Job, tiles: dict[Datum, Tile]) -> dict[str, tuple[Touch, Tile]]:
        """Touches with tiles whose cells are counted from the first one that each shows."""
        found = {}
        is_kernel = isinstance(job.variant.body, Kernel)
        for touch in job.touches:
            view = touch.origin if is_kernel else touch.view
            tile, geometry = tiles[touch.datum], touch.datum.relative(view)
            assert geometry is not None, "what a device was chosen for"
            found[touch.name] = touch, Tile(geometry, tile.dtype, tile.host, tile.buffer)
        return found

    def _tile(self, datum: Datum) -> Tile:
        if self.memory == HOST_MEMORY:
            return self._in_place.of(datum)
        return self._memories.image(datum, self.memory)

    def close(self) -> None:
        """Nothing is under way any more."""
        self._items.close()
        self._commands.close(None, keep=self)


def over_of(job: Job) -> Shape:
    """The cells of a launch: as many as the array has over which it is, from 0 on, or its rows."""
    wanted = job.variant.over
    for touch in job.touches:
        if touch.name == wanted or (not wanted and touch.writes):
            over = Shape.of_extent(touch.origin.shape)
            return over if job.rows is None else over.slab(0, *job.rows)
    raise ValueError(
        f"task {job.task.name!r}: the kernel writes no array over whose cells it could be "
        f"launched; say over= the name of a parameter, or that one is written"
    )


def _numbers(job: Job) -> dict[str, Any]:
    """The other arguments, by name."""
    named = job.task.named(job.args, job.kwargs)
    arrays = {touch.name for touch in job.touches}
    found = {name: value_of(given) for name, given in named if name not in arrays}
    for name, value in found.items():
        if getattr(value, "shape", ()) != ():
            raise ValueError(
                f"task {job.task.name!r}: {name!r} is a result with axes, which a kernel cannot "
                f"take; write it to an array that both tasks are given"
            )
    return found
