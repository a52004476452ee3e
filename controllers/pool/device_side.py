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
from controllers.pool.launched import Launched
from controllers.pool.memories import Memories
from controllers.pool.newest import HOST_MEMORY
from hitmap.shape import Shape


class DeviceSide:
    """Launches kernels over the cells of arrays, counted from the first one that they are given.

    For one thread, but for `begin`; it waits for each kernel.
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

    def begin(self, job: Job) -> bool:
        """Enqueue a kernel that was launched like this before, if no cell has to be moved for it.

        In any thread, while nothing is done here; `run` then waits for its end.
        """
        if not isinstance(job.variant.body, Kernel) or job.replicas is not None:
            return False
        if not self._memories.are_there(job.touches, self.memory):
            return False
        numbers, tiles = _numbers(job), self._tiles(job)
        command = self._known.get(self._known.key(job, tiles, numbers))
        if command is None:
            return False
        self._memories.before(job.touches, self.memory)
        job.launched = Launched(self._commands, command)
        return True

    def run(self, job: Job) -> tuple[None, float]:
        """Launch the kernel, if that was not begun, and wait for it; its seconds."""
        body = job.variant.body
        if job.launched is None:
            begin_s = time.perf_counter()
            self._memories.before(job.touches, self.memory, job.replicas)
            job.moved_s = time.perf_counter() - begin_s
        try:
            if isinstance(body, Each):
                named = self._named(job, self._tiles(job))
                seconds = self._items.run(body, named, _numbers(job))
            else:
                assert isinstance(body, Kernel), "what a device can do"
                seconds = (job.launched or self._launched(job, body)).wait()
        finally:
            self._memories.after(job.touches, self.memory, job.replicas)
        if job.sent:
            self._memories.send(job.touches, self.memory)
        return None, seconds

    def _launched(self, job: Job, kernel: Kernel) -> Launched:
        numbers, tiles = _numbers(job), self._tiles(job)
        key = self._known.key(job, tiles, numbers)
        command = self._known.get(key)
        if command is None:
            command = self._prepared(job, kernel, tiles, numbers)
            if self._launches.checked is None:      # which looks at each launch
                self._known.add(key, command, job.variant, tiles.values())
        return Launched(self._commands, command)    # it has been built by now

    def _tiles(self, job: Job) -> dict[Datum, Tile]:
        return {datum: self._tile(datum) for datum in {one.datum: None for one in job.touches}}

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
            tile, geometry = tiles[touch.datum], touch.datum.seen(view).geometry
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
