# SPDX-License-Identifier: MIT
"""Kernels on one device, given arrays: in the host's memory where it computes there."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from controllers.controller.access import Access
from controllers.controller.commands import Commands
from controllers.controller.launches import Given, Launches
from controllers.controller.tied_tile import TiedTile
from controllers.device.device import Device
from controllers.executor.contexts import may_meet
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.variant import Kernel
from controllers.language.each import Each
from controllers.memory.tile import Tile
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
        image = partial(memories.image, memory=self.memory)
        self._tile = TilesInPlace(self.executor).of if in_place else image

    def begin(self, job: Job) -> bool:
        """Enqueue a kernel that was launched on these arrays before, if no cell has to be moved.

        In any thread, while nothing is done here; `run` then waits for its end.
        """
        if job.replicas is not None:
            return False
        if self._memories.any and not self._memories.are_there(job.touches, self.memory):
            return False
        launch = self._bound(job, is_built=True)
        if launch is None:
            return False
        job.launched = Launched(self._commands, launch)
        return True

    def begin_beside(self, job: Job, *, in_turn: bool) -> bool:
        """Enqueue it while another one is done, if no cell has to be moved for it.

        In the lane's thread.  in_turn: it is done after that one; else, where the host's cores
        compute, those begin it that have nothing left to do of the other one.
        """
        are_there = not self._memories.any or self._memories.are_there(job.touches, self.memory)
        if not are_there or self._launches.checked is not None:
            return False
        if not (in_turn or self._polls) and may_meet(
            self.executor.device, [touch.origin.shape for touch in job.touches]
        ):
            self.executor.compute_lane.alternate()
        job.launched = self._launched(job)
        return True

    def run(self, job: Job, soon: Callable[[], None] | None = None) -> tuple[None, float]:
        """Launch the kernel, if that was not begun, and wait for it; its seconds."""
        if job.launched is None:
            begin_s = time.perf_counter()
            self._memories.before(job.touches, self.memory, job.replicas)
            job.moved_s = time.perf_counter() - begin_s
        try:
            launched = job.launched or self._launched(job)
            seconds = launched.wait(job.seconds, naps=self._polls, soon=soon)
        finally:
            self._memories.after(job.touches, self.memory, job.replicas)
        if job.sent:
            self._memories.send(job.touches, self.memory)
        return None, seconds

    def _launched(self, job: Job) -> Launched:
        launch = self._bound(job)
        assert launch is not None, "it has been built by now"
        return Launched(self._commands, launch)

    def _bound(self, job: Job, *, is_built: bool = False) -> Launch | None:
        """The launch of a kernel, with its numbers; if it has to be built already, None else."""
        numbers = numbers_of(job)
        tiles = [self._tile(touch.datum) for touch in job.touches]
        bound, given, launch = self._known.get(job, tiles, numbers)
        if launch is None:
            if is_built and not bound.launches:     # over other rows, or with other numbers
                return None
            launch = self._prepared(job, tiles, numbers)
            if self._launches.checked is None:      # which looks at each launch
                self._known.add(bound, given, launch, job)
        launch.tell(numbers)
        return launch

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
