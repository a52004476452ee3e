# SPDX-License-Identifier: MIT
"""From the operations of a plan to commands: tiles, staging memory, kernels and messages."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.device.event import Command, Event, HostEvent, in_order
from controllers.engine.network import MessageEnd
from controllers.executor.executor import DeviceExecutor, Executor
from controllers.memory.tile import Linear, Tile
from controllers.plan import MemoryCells, Operation, Plan, PlanMemory, StagingKey, TileKey
from controllers.program.surroundings import Surroundings
from hitmap.comm import Communicator
from hitmap.strided import Strided, packed


class Binder:
    """Binds the operations of one rank; owns its tiles, staging memory and MPI requests."""

    def __init__(
        self, plan: Plan, executors: Mapping[int, Executor], comm: Communicator
    ) -> None:
        self.plan = plan
        self.executors = executors
        self.messages: list[MessageEnd] = []
        self._comm = comm
        self._tags = message_tags(plan)
        self.around = {place: self.surroundings() for place in plan.places}
        self.tiles: dict[TileKey, Tile] = {}
        self._staging: dict[StagingKey, Linear] = {}
        self._dtypes = {memory.key: memory.dtype for memory in plan.memories}
        for memory in plan.memories:
            self._allocate(memory)

    def command(self, operation: Operation) -> Command:
        """The command of `operation`, with all its arguments set."""
        if operation.verb == "launch":
            return self.launch(operation)
        if operation.verb == "fill":
            return self._fill(operation)
        if operation.verb == "host":
            return self._host_task(operation)
        if operation.verb in ("send", "receive"):
            return self._message(operation)
        (source,), (target,) = operation.reads, operation.writes
        if operation.verb == "download":
            download = self._device(operation.place).download_command
            return download(self._linear(source), self._run(source), self._host(target))
        if operation.verb == "upload":
            upload = self._device(operation.place).upload_command
            return upload(self._host(source), self._linear(target), self._run(target))
        return self._copy(operation, source, target)

    def surroundings(self) -> Surroundings:
        """What one place is given next to its cells, as it begins."""
        return Surroundings.usual(self.plan.program, self.plan.layout.domain, self.plan.periodic)

    def tell(self, numbers: Mapping[str, float]) -> None:
        """The scalars with which all places begin a run."""
        for around in self.around.values():
            around.change(numbers)

    @property
    def staging(self) -> Mapping[StagingKey, Linear]:
        """The memories for packed cells."""
        return self._staging

    def close(self) -> None:
        """Free the MPI requests."""
        for message in self.messages:
            message.close()
        self.messages.clear()

    def launch(self, operation: Operation, n_steps: int | None = None) -> Command:
        """The command of a launch, of as many time steps as the plan has or of `n_steps`."""
        assert operation.sweep is not None
        sweep = self.plan.sweeps[operation.sweep]
        read = [self.tiles[_tile_key(access)] for access in operation.reads]
        written = [self.tiles[_tile_key(access)] for access in operation.writes]
        return self.executors[operation.place].launch_command(
            self.plan.program,
            sweep if n_steps is None else self.plan.shortened(sweep, n_steps),
            dict(zip((use.version.field for use in sweep.uses), read, strict=True)),
            dict(zip(sweep.writes, written, strict=True)),
            operation.writes[0].cells[0],
            self.around[operation.place],
        )

    def _fill(self, operation: Operation) -> Command:
        (access,) = operation.writes
        tile, extension = _tile_key(access), self.plan.extension(_tile_key(access).field)
        assert extension is not None, "a field that goes on outside"
        fill = self.executors[operation.place].fill_command
        around = self.around[operation.place]
        return fill(self.plan.program, extension, self.tiles[tile], access.cells, around)

    def _host_task(self, operation: Operation) -> Command:
        task = operation.task
        assert task is not None
        fields, accesses = (*task.reads, *task.writes), (*operation.reads, *operation.writes)
        cells = {
            field: self.tiles[_tile_key(access)].view(access.cells[0])
            for field, access in zip(fields, accesses, strict=True)
        }
        return _by_host(lambda: task.work(cells))

    def _copy(self, operation: Operation, source: MemoryCells, target: MemoryCells) -> Command:
        """Box by box, by a kernel or by the host; packs and unpacks too."""
        ends = zip(self._parts(source), self._parts(target), strict=True)
        taken, given = self._linear(source), self._linear(target)
        if operation.lane == "compute":
            executor = self.executors[operation.place]
            itemsize = self._itemsize(target)
            return in_order([executor.copy_command(taken, given, itemsize, move) for move in ends])
        moves = [(a.view(self._memory(source)), b.view(self._memory(target))) for a, b in ends]

        def move() -> None:
            for cells, room in moves:
                np.copyto(room, cells)

        return _by_host(move)

    def _itemsize(self, access: MemoryCells) -> int:
        return np.dtype(self._dtypes[access.memory]).itemsize

    def _message(self, operation: Operation) -> Command:
        assert operation.transfer is not None
        transfer = self.plan.transfers[operation.transfer]
        sends = operation.verb == "send"
        (access,) = operation.reads if sends else operation.writes
        ends = transfer.message.source, transfer.message.target
        peer = ends[sends]
        message = MessageEnd(
            self._comm,
            self._host(access),
            self.plan.locations[peer].rank,
            self._tags[transfer.number],
            sends=sends,
            name=f"message {transfer.number} of {transfer.field}, place {ends[0]} to {ends[1]},",
        )
        self.messages.append(message)
        return message

    def _linear(self, access: MemoryCells) -> Linear:
        """The memory of `access`, as commands of its controller want it."""
        if isinstance(access.memory, TileKey):
            return self.tiles[access.memory].linear
        return self._staging[access.memory]

    def _memory(self, access: MemoryCells) -> npt.NDArray[Any]:
        """The memory of `access` as a flat host array."""
        if isinstance(access.memory, TileKey):
            host = self.tiles[access.memory].host
            assert host is not None, "the plan touches host memory alone from the host"
            return host
        memory = self._linear(access)
        assert isinstance(memory, np.ndarray), "staging of the host"
        return memory

    def _host(self, access: MemoryCells) -> npt.NDArray[Any]:
        """The cells of `access`, one contiguous run, as a flat host array."""
        run = self._run(access)
        return self._memory(access)[run.first : run.first + run.n_cells]

    def _run(self, access: MemoryCells) -> Strided:
        """Where the cells of `access`, one contiguous run, lie."""
        if isinstance(access.memory, TileKey):
            return self.tiles[access.memory].strided(access.cells[0])
        return packed(access.cells)[0]

    def _parts(self, access: MemoryCells) -> Sequence[Strided]:
        """Where the boxes of an access lie, those of a message in its order."""
        if isinstance(access.memory, TileKey):
            return [self.tiles[access.memory].strided(box) for box in access.cells]
        return packed(self.plan.transfers[access.memory.message].message.halo)

    def _allocate(self, memory: PlanMemory) -> None:
        key, place, dtype = memory.key, memory.home, np.dtype(memory.dtype)
        if isinstance(key, TileKey):
            self.tiles[key] = self.executors[place].tile(memory.geometry, dtype)
        elif key.on_device:
            n_cells = memory.geometry.n_elements
            self._staging[key] = self._device(place).device_staging(n_cells, dtype)
        else:
            self._staging[key] = self.executors[place].staging(memory.geometry.n_elements, dtype)

    def _device(self, place: int) -> DeviceExecutor:
        executor = self.executors[place]
        assert not executor.shares_host, "transfers belong to devices with memory of their own"
        return executor  # type: ignore[return-value]


def _by_host(work: Callable[[], None]) -> Command:
    def command(wait_for: Sequence[Event] | None = None) -> Event:
        start = time.perf_counter_ns()
        work()
        return HostEvent(start, time.perf_counter_ns())

    return command


def _tile_key(access: MemoryCells) -> TileKey:
    assert isinstance(access.memory, TileKey), "kernels work on tiles"
    return access.memory


def message_tags(plan: Plan) -> dict[int, int]:
    """Message tags: the position among the messages between the same two ranks."""
    used: dict[tuple[int, int], int] = {}
    tags: dict[int, int] = {}
    for transfer in plan.transfers:
        message = transfer.message
        ranks = (plan.locations[message.source].rank, plan.locations[message.target].rank)
        tags[transfer.number] = used.get(ranks, 0)
        used[ranks] = tags[transfer.number] + 1
    return tags
