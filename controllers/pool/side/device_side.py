# SPDX-License-Identifier: MIT
"""Kernels on one device, given arrays: in the host's memory where it computes there."""
from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from controllers.controller.access import Access
from controllers.controller.commands import Commands
from controllers.controller.launches import Given, Launches
from controllers.controller.tied_tile import TiedTile
from controllers.device.device import Device
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.variant import Kernel
from controllers.language.each import Each
from controllers.memory.tile import Tile
from controllers.pool.data import Datum
from controllers.pool.job import Job
from controllers.pool.launched import KernelLaunch, Launch, Launched
from controllers.pool.memories import Memories
from controllers.pool.newest import HOST_MEMORY
from controllers.pool.side.given import named_tiles, numbers_of
from controllers.pool.side.items import ItemLaunch
from controllers.pool.side.known_launches import KnownLaunches, TilesInPlace
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
        self._known = KnownLaunches()
        self._polls = device.kind != "cpu"      # the driver, while it waits
        self._tile = TilesInPlace(self.executor).of if in_place else self._image

    def begin(self, job: Job) -> bool:
        """Enqueue a kernel that was launched like this before, if no cell has to be moved for it.

        In any thread, while nothing is done here; `run` then waits for its end.
        """
        if job.replicas is not None:
            return False
        if self._memories.any and not self._memories.are_there(job.touches, self.memory):
            return False
        numbers = numbers_of(job)
        tiles = [self._tile(touch.datum) for touch in job.touches]
        _, launch = self._known.get(job, tiles, numbers)
        if launch is None:
            return False
        launch.tell(numbers)
        job.launched = Launched(self._commands, launch)
        return True

    def run(self, job: Job) -> tuple[None, float]:
        """Launch the kernel, if that was not begun, and wait for it; its seconds."""
        if job.launched is None:
            begin_s = time.perf_counter()
            self._memories.before(job.touches, self.memory, job.replicas)
            job.moved_s = time.perf_counter() - begin_s
        try:
            launched = job.launched or self._launched(job)
            seconds = launched.wait(job.seconds if self._polls else 0.0)
        finally:
            self._memories.after(job.touches, self.memory, job.replicas)
        if job.sent:
            self._memories.send(job.touches, self.memory)
        return None, seconds

    def _launched(self, job: Job) -> Launched:
        numbers = numbers_of(job)
        tiles = [self._tile(touch.datum) for touch in job.touches]
        key, launch = self._known.get(job, tiles, numbers)
        if launch is None:
            launch = self._prepared(job, tiles, numbers)
            if self._launches.checked is None:      # which looks at each launch
                self._known.add(key, launch, job, tiles)
        launch.tell(numbers)
        return Launched(self._commands, launch)     # it has been built by now

    def _prepared(
        self, job: Job, tiles: Sequence[Tile], numbers: Mapping[str, Any]
    ) -> Launch:
        body, named = job.variant.body, named_tiles(job.touches, tiles)
        if isinstance(body, Each):
            return ItemLaunch(self.executor, body, named, job.rows)
        assert isinstance(body, Kernel), "what a device can do"
        given: dict[str, Given] = {**numbers}
        for name, (touch, tile) in named.items():
            tied = TiedTile(self._commands, tile.geometry, tile.dtype, "internal", tile, None)
            cells = tied.select(Shape.of_extent(touch.origin.shape))
            given[name] = Access(cells, touch.role)
        group = job.variant.group
        return KernelLaunch(self._launches.prepared(body, over_of(job), given, group)[0])

    def _image(self, datum: Datum) -> Tile:
        return self._memories.image(datum, self.memory)

    def close(self) -> None:
        """Nothing is under way any more."""
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
