# SPDX-License-Identifier: MIT
"""The memories of a plan, allocated: tiles, images and slots of chunks, staging for messages."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.executor.executor import DeviceExecutor, Executor
from controllers.memory.scratch_file import ScratchFile, whole_pages
from controllers.memory.tile import Linear, Tile
from controllers.plan import ChunkPlan, MemoryCells, Plan, PlanMemory, SlotKey, StagingKey, TileKey
from controllers.plan.moved import Moved, moved
from controllers.plan.operation import Memory, Operation
from hitmap.strided import Strided, elements


class Memories:
    """Owns the tiles and the staging memory of one rank; cells of them as commands want them."""

    def __init__(
        self, plan: Plan, executors: Mapping[int, Executor],
        tiles: Mapping[TileKey, Tile] | None = None,
    ) -> None:  # fmt: skip
        """`tiles` are there already; the others are allocated."""
        self.plan = plan
        self.executors = executors
        self.tiles: dict[TileKey, Tile] = {**(tiles or {})}
        self._staging: dict[StagingKey, Linear] = {}
        missing = [memory for memory in plan.memories if memory.key not in self.tiles]
        self._file = _file_of(plan, missing)
        for memory in missing:
            self._allocate(memory)

    @property
    def staging(self) -> Mapping[StagingKey, Linear]:
        """The memories for packed cells."""
        return self._staging

    def release(self) -> None:
        """Let go of all memory."""
        self.tiles.clear()
        self._staging.clear()
        self._file = None

    def _cells(self, what: Moved, run: Strided) -> npt.NDArray[Any]:
        """Cells of a field in host memory, as a view."""
        return run.view(elements(self._memory(what.memory), self.plan.program.dtypes[what.field]))

    def _linear(self, key: Memory) -> Linear:
        """A memory, as commands of its controller want it."""
        return self._tile(key).linear if isinstance(key, TileKey) else self._staging[key]

    def _memory(self, key: Memory) -> npt.NDArray[Any]:
        """A memory as a flat host array."""
        if isinstance(key, TileKey):
            host = self._tile(key).host
            assert host is not None, "the plan touches host memory alone from the host"
            return host
        memory = self._linear(key)
        assert isinstance(memory, np.ndarray), "staging of the host"
        return memory

    def _host(self, access: MemoryCells) -> npt.NDArray[Any]:
        """The cells of `access`, one contiguous run, as a flat host array."""
        run = self._run(access)
        return self._memory(access.memory)[run.first : run.first + run.n_cells]

    def _runs(self, operation: Operation) -> list[npt.NDArray[Any]]:
        """What a message leaves or comes to, as flat host arrays: one, or one for each box."""
        accesses = operation.reads or operation.writes
        if not self.plan.sends_boxes:
            return [self._host(accesses[0])]
        return [
            self._cells(part, run).reshape(-1)
            for part in moved(self.plan, operation, accesses) for run in part.runs
        ]  # fmt: skip

    def _run(self, access: MemoryCells) -> Strided:
        """Where the cells of `access`, one contiguous run, lie: of staging memory all its parts."""
        if isinstance(access.memory, TileKey):
            return self._tile(access.memory).strided(access.cells[0])
        (first,), (end,) = access.cells[0].lower, access.cells[-1].upper
        return Strided(first, (1,), (end - first,))

    def _allocate(self, memory: PlanMemory) -> None:
        key, place, dtype = memory.key, memory.home, np.dtype(memory.dtype)
        if memory.in_file and isinstance(key, TileKey):
            assert self._file is not None, "made for those in it"
            host, part = self._file.part(memory.geometry.n_elements, dtype)
            self.executors[place].ledger.hold(host, memory.nbytes, "image files")
            self.tiles[key] = Tile(memory.geometry, dtype, host, None, part)
        elif isinstance(key, TileKey) and memory.kind == "image":
            host = self._device(place).image_memory(memory.geometry.n_elements, dtype)
            self.tiles[key] = Tile(memory.geometry, dtype, host, None)
        elif isinstance(key, TileKey):
            self.tiles[key] = self.executors[place].tile(memory.geometry, dtype)
        elif key.on_device:
            n_cells = memory.geometry.n_elements
            self._staging[key] = self._device(place).device_staging(n_cells, dtype)
        else:
            self._staging[key] = self.executors[place].staging(memory.geometry.n_elements, dtype)

    def _tile(self, key: TileKey) -> Tile:
        """A tile; of a chunk its room, seen as it lies there."""
        if not isinstance(key, SlotKey):
            return self.tiles[key]
        room = self.tiles[key.room]
        return Tile(self.plan.lies(key), room.dtype, room.host, room.buffer)

    def _device(self, place: int) -> DeviceExecutor:
        executor = self.executors[place]
        assert not executor.shares_host, "transfers belong to devices with memory of their own"
        return executor  # type: ignore[return-value]


def _file_of(plan: Plan, memories: Iterable[PlanMemory]) -> ScratchFile | None:
    """With room for those of `memories` that lie in files."""
    nbytes = sum(whole_pages(max(one.nbytes, 1)) for one in memories if one.in_file)
    if not nbytes:
        return None
    assert isinstance(plan, ChunkPlan), "images are of chunks"
    return ScratchFile(plan.images.folder, nbytes)
