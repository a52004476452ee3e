# SPDX-License-Identifier: MIT
"""From the operations of a plan to commands: tiles, staging memory, kernels and messages."""
from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.device.event import Command, Event, HostEvent, in_order
from controllers.engine.combination import Combination, Told
from controllers.engine.network import MessageEnd
from controllers.executor.executor import DeviceExecutor, Executor, Folding
from controllers.memory.tile import Linear, Tile
from controllers.plan import MemoryCells, Operation, Plan, PlanMemory, StagingKey, TileKey
from controllers.plan.fill import fills_of
from controllers.plan.folding import combined, folds_at_times
from controllers.plan.moved import Moved, moved
from controllers.plan.operation import FoldKey, Memory
from controllers.program.accumulator import Accumulator
from controllers.program.application import no_cells
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap.comm import Communicator
from hitmap.strided import Strided, elements


class Binder:
    """Binds the operations of one rank; owns its tiles, staging memory and MPI requests."""

    def __init__(
        self,
        plan: Plan,
        executors: Mapping[int, Executor],
        comm: Communicator,
        tiles: Mapping[TileKey, Tile] | None = None,
    ) -> None:
        """`tiles` are there already; the others are allocated."""
        self.plan = plan
        self.executors = executors
        self.messages: list[MessageEnd] = []
        self._comm = comm
        self._tags = message_tags(plan)
        self.around = {place: self.surroundings() for place in plan.places}
        self.tiles: dict[TileKey, Tile] = {**(tiles or {})}
        self._staging: dict[StagingKey, Linear] = {}
        self._foldings: dict[tuple[int, int], Folding] = {}     # by sweep and place
        for memory in plan.memories:
            if memory.key not in self.tiles:
                self._allocate(memory)

    def command(self, operation: Operation) -> Command:
        """The command of `operation`, with all its arguments set; a launch that need not fold."""
        if operation.verb == "launch":
            return self.launch(operation, folds=not folds_at_times(self.plan, operation))
        if operation.verb == "fold":
            return self.folding(operation.takes[0]).command
        if operation.verb == "fill":
            return self._fill(operation)
        if operation.verb == "host":
            return self._host_task(operation)
        if operation.verb in ("send", "receive"):
            return self._message(operation)
        if operation.verb not in ("download", "upload"):
            return self._copy(operation)
        return self._transfer(operation)

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

    def release(self) -> None:
        """Let go of all memory."""
        self.tiles.clear()
        self._staging.clear()
        self._foldings.clear()

    def launch(
        self, operation: Operation, n_steps: int | None = None, *, folds: bool = True
    ) -> Command:
        """The command of a launch, of as many time steps as the plan has or of `n_steps`.

        folds: whether it makes the folds of its sweep, too.
        """
        assert operation.sweep is not None
        sweep = self.plan.sweeps[operation.sweep]
        read = [self.tiles[_tile_key(access)] for access in operation.reads]
        written = [self.tiles[_tile_key(access)] for access in operation.writes]
        return self.executors[operation.place].launch_command(
            self.plan.program,
            sweep if n_steps is None else self.plan.shortened(sweep, n_steps),
            dict(zip((use.version.field for use in sweep.uses), read, strict=True)),
            dict(zip(sweep.writes, written, strict=True)),
            operation.launched,
            self.around[operation.place],
            self.folding(operation.gives[0]) if folds and operation.gives else None,
            operation.part,
        )

    def folding_launch(self, operation: Operation) -> Command | None:
        """The other command of a launch that folds in some steps; or of one that folds apart."""
        is_launch, apart = operation.verb == "launch", self.plan.folds_apart
        if not is_launch or not (apart or folds_at_times(self.plan, operation)):
            return None
        return self.launch(operation, 1 if apart else None)

    def combination(self, operation: Operation, comm: Communicator, told: Told) -> Combination:
        """The command that makes folds known to all ranks; `told` is told of them."""
        foldings = [self.folding(key) for key in operation.takes if key.of == "place"]
        empties: dict[str, Accumulator] = {}
        for number in combined(operation.gives):
            empties |= no_cells(self.plan.program, self._folded(number))
        return Combination(comm, foldings, empties, told)

    def folding(self, key: FoldKey) -> Folding:
        """What takes the folds of a sweep at a place."""
        number, place = at = key.sweep, key.home
        if at not in self._foldings:
            sweep, executor = self._folded(number), self.executors[place]
            boxes = [box for box, _ in self.plan.folded(sweep, place)]
            self._foldings[at] = executor.folding(self.plan.program, sweep, boxes)
        return self._foldings[at]

    def _folded(self, number: int) -> Sweep:
        """The sweep of a number as it is launched to fold: of one step."""
        return self.plan.shortened(self.plan.sweeps[number], 1)

    def _fill(self, operation: Operation) -> Command:
        fills = [(fill, self.tiles[key]) for key, fill in fills_of(self.plan, operation).items()]
        around = self.around[operation.place]
        return self.executors[operation.place].fill_command(self.plan.program, fills, around)

    def _host_task(self, operation: Operation) -> Command:
        task = operation.task
        assert task is not None
        fields, accesses = (*task.reads, *task.writes), (*operation.reads, *operation.writes)
        cells = {
            field: self.tiles[_tile_key(access)].view(access.cells[0])
            for field, access in zip(fields, accesses, strict=True)
        }
        return _by_host(lambda: task.work(cells))

    def _copy(self, operation: Operation) -> Command:
        """Box by box, by a kernel or by the host; packs and unpacks too."""
        ends = [
            (taken, given, run)
            for taken, given in zip(
                moved(self.plan, operation, operation.reads),
                moved(self.plan, operation, operation.writes),
                strict=True,
            )
            for run in zip(taken.runs, given.runs, strict=True)
        ]
        if operation.lane == "compute":
            copies = defaultdict(list)
            pairs = groupby(ends, lambda end: (end[0].memory, end[1].memory, end[0].field))
            for (a, b, field), each in pairs:
                runs = [run for _, _, run in each]
                itemsize = self.plan.program.itemsize(field)
                copies[itemsize].append((self._linear(a), self._linear(b), runs))
            copy = self.executors[operation.place].copies_command
            return in_order([copy(itemsize, alike) for itemsize, alike in copies.items()])
        moves = [(self._cells(a, run[0]), self._cells(b, run[1])) for a, b, run in ends]

        def move() -> None:
            for cells, room in moves:
                np.copyto(room, cells)

        return _by_host(move)

    def _transfer(self, operation: Operation) -> Command:
        """Between a device and the host, run by run; one where the cells are packed."""
        device, is_up = self._device(operation.place), operation.verb == "upload"
        ends = operation.reads, operation.writes
        here, there = ends if is_up else ends[::-1]
        if all(not isinstance(access.memory, TileKey) for access in there):
            pairs = [(self._linear(there[0].memory), self._run(there[0]), self._host(here[0]))]
        else:
            pairs = [
                (self._linear(tile.memory), run, self._cells(packed, part).reshape(-1))
                for tile, packed in zip(
                    moved(self.plan, operation, there), moved(self.plan, operation, here),
                    strict=True,
                )
                for run, part in zip(tile.runs, packed.runs, strict=True)
            ]
        return in_order([
            device.upload_command(host, linear, run) if is_up
            else device.download_command(linear, run, host)
            for linear, run, host in pairs
        ])  # fmt: skip

    def _cells(self, what: Moved, run: Strided) -> npt.NDArray[Any]:
        """Cells of a field in host memory, as a view."""
        return run.view(elements(self._memory(what.memory), self.plan.program.dtypes[what.field]))

    def _message(self, operation: Operation) -> Command:
        assert operation.bundle is not None
        bundle = self.plan.bundles[operation.bundle]
        sends = operation.verb == "send"
        (access,) = operation.reads if sends else operation.writes
        ends = bundle.source, bundle.target
        peer = ends[sends]
        fields = " and ".join(transfer.field for transfer in operation.transfers)
        message = MessageEnd(
            self._comm,
            self._host(access),
            self.plan.locations[peer].rank,
            self._tags[bundle.number],
            sends=sends,
            name=f"message {bundle.number} of {fields}, place {ends[0]} to {ends[1]},",
        )
        self.messages.append(message)
        return message

    def _linear(self, key: Memory) -> Linear:
        """A memory, as commands of its controller want it."""
        return self.tiles[key].linear if isinstance(key, TileKey) else self._staging[key]

    def _memory(self, key: Memory) -> npt.NDArray[Any]:
        """A memory as a flat host array."""
        memory = self.tiles[key].host if isinstance(key, TileKey) else self._staging[key]
        assert isinstance(memory, np.ndarray), "the plan touches host memory alone from the host"
        return memory

    def _host(self, access: MemoryCells) -> npt.NDArray[Any]:
        """The cells of `access`, one contiguous run, as a flat host array."""
        run = self._run(access)
        return self._memory(access.memory)[run.first : run.first + run.n_cells]

    def _run(self, access: MemoryCells) -> Strided:
        """Where the cells of `access`, one contiguous run, lie: of staging memory all its parts."""
        if isinstance(access.memory, TileKey):
            return self.tiles[access.memory].strided(access.cells[0])
        (first,), (end,) = access.cells[0].lower, access.cells[-1].upper
        return Strided(first, (1,), (end - first,))

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
    for bundle in plan.bundles:
        ranks = (plan.locations[bundle.source].rank, plan.locations[bundle.target].rank)
        tags[bundle.number] = used.get(ranks, 0)
        used[ranks] = tags[bundle.number] + 1
    return tags
