# SPDX-License-Identifier: MIT
"""From the operations of a plan to commands: tiles, staging memory, kernels and messages."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.device.event import Command, Event, HostEvent, in_order
from controllers.engine.network import Message
from controllers.executor.executor import DeviceExecutor, Executor
from controllers.memory.tile import Linear
from controllers.plan import Access, Operation, Plan, StagingKey, TileKey, Transfer
from hitmap.comm import Communicator
from hitmap.strided import Strided, packed


class Binder:
    """Binds the operations of one rank; owns its tiles, staging memory and MPI requests."""

    def __init__(
        self, plan: Plan, executors: Mapping[int, Executor], comm: Communicator
    ) -> None:
        self.plan = plan
        self.executors = executors
        self.messages: list[Message] = []
        self._comm = comm
        self._dtype = np.dtype(plan.program.dtype)
        self._staging: dict[StagingKey, Linear] = {}
        self._tags = message_tags(plan)
        self.tiles = {
            TileKey(field.name, level, place): executors[place].tile(
                plan.geometry(field.name, place), self._dtype
            )
            for field in plan.program.fields
            for level in range(plan.n_phases)
            for place in plan.places
        }

    def command(self, operation: Operation) -> Command:
        """The command of `operation`, with all its arguments set."""
        if operation.verb == "launch":
            return self.launch(operation)
        assert operation.transfer is not None
        transfer = self.plan.transfers[operation.transfer]
        if operation.verb in ("send", "receive"):
            return self._message(operation, transfer)
        (source,), (target,) = operation.reads, operation.writes
        if operation.verb == "download":
            download = self._device(operation.place).download_command
            return download(self._linear(source), self._run(source), self._host(target))
        if operation.verb == "upload":
            upload = self._device(operation.place).upload_command
            return upload(self._host(source), self._linear(target), self._run(target))
        return self._copy(operation, transfer, source, target)

    @property
    def staging(self) -> Mapping[StagingKey, Linear]:
        """The memories for packed cells, of the operations that are bound so far."""
        return self._staging

    def close(self) -> None:
        """Free the MPI requests."""
        for message in self.messages:
            message.close()
        self.messages.clear()

    def launch(self, operation: Operation, n_steps: int | None = None) -> Command:
        """The command of a launch, of as many time steps as the plan has or of `n_steps`."""
        assert operation.stage is not None
        (written,) = operation.writes
        keys = [_tile_key(access) for access in operation.reads]
        return self.executors[operation.place].launch_command(
            self.plan.program,
            operation.stage,
            {key.field: self.tiles[key] for key in keys},
            self.tiles[_tile_key(written)],
            written.cells[0],
            self.plan.time_steps(self.plan.program.stages[operation.stage], n_steps),
        )

    def _copy(
        self, operation: Operation, transfer: Transfer, source: Access, target: Access
    ) -> Command:
        """Box by box, by a kernel or by the host; packs and unpacks too."""
        ends = zip(self._parts(source, transfer), self._parts(target, transfer), strict=True)
        taken, given = self._linear(source), self._linear(target)
        if operation.lane == "compute":
            executor = self.executors[operation.place]
            itemsize = self._dtype.itemsize
            return in_order([executor.copy_command(taken, given, itemsize, move) for move in ends])
        return _host_copy(
            [(a.view(self._memory(source)), b.view(self._memory(target))) for a, b in ends]
        )

    def _message(self, operation: Operation, transfer: Transfer) -> Command:
        sends = operation.verb == "send"
        (access,) = operation.reads if sends else operation.writes
        ends = transfer.message.source, transfer.message.target
        peer = ends[sends]
        message = Message(
            self._comm,
            self._host(access),
            self.plan.locations[peer].rank,
            self._tags[transfer.number],
            sends=sends,
            name=f"message {transfer.number} of {transfer.field}, place {ends[0]} to {ends[1]},",
        )
        self.messages.append(message)
        return message

    def _linear(self, access: Access) -> Linear:
        """The memory of `access`, as commands of its controller want it."""
        if isinstance(access.memory, TileKey):
            return self.tiles[access.memory].linear
        if access.memory not in self._staging:
            self._staging[access.memory] = self._new_staging(access.memory)
        return self._staging[access.memory]

    def _memory(self, access: Access) -> npt.NDArray[Any]:
        """The memory of `access` as a flat host array."""
        if isinstance(access.memory, TileKey):
            host = self.tiles[access.memory].host
            assert host is not None, "the plan touches host memory alone from the host"
            return host
        memory = self._linear(access)
        assert isinstance(memory, np.ndarray), "staging of the host"
        return memory

    def _host(self, access: Access) -> npt.NDArray[Any]:
        """The cells of `access`, one contiguous run, as a flat host array."""
        run = self._run(access)
        return self._memory(access)[run.first : run.first + run.n_cells]

    def _run(self, access: Access) -> Strided:
        """Where the cells of `access`, one contiguous run, lie."""
        if isinstance(access.memory, TileKey):
            return self.tiles[access.memory].strided(access.cells[0])
        return packed(access.cells)[0]

    def _parts(self, access: Access, transfer: Transfer) -> Sequence[Strided]:
        """Where the boxes of a message lie, in its order."""
        if isinstance(access.memory, TileKey):
            return [self.tiles[access.memory].strided(box) for box in access.cells]
        return packed(transfer.message.halo)

    def _new_staging(self, key: StagingKey) -> Linear:
        place, n_cells = self.plan.home(key), self.plan.transfers[key.message].message.n_cells
        if key.on_device:
            return self._device(place).device_staging(n_cells, self._dtype)
        return self.executors[place].staging(n_cells, self._dtype)

    def _device(self, place: int) -> DeviceExecutor:
        executor = self.executors[place]
        assert not executor.shares_host, "transfers belong to devices with memory of their own"
        return executor  # type: ignore[return-value]


def _host_copy(moves: Sequence[tuple[npt.NDArray[Any], npt.NDArray[Any]]]) -> Command:
    copyto: Callable[[npt.NDArray[Any], npt.NDArray[Any]], None] = np.copyto

    def command(wait_for: Sequence[Event] | None = None) -> Event:
        start = time.perf_counter_ns()
        for taken, given in moves:
            copyto(given, taken)
        return HostEvent(start, time.perf_counter_ns())

    return command


def _tile_key(access: Access) -> TileKey:
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
