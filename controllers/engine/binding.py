# SPDX-License-Identifier: MIT
"""From the operations of a plan to commands: tiles, staging memory, kernels and messages."""
from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import groupby

from controllers.device.event import Command, in_order
from controllers.engine.combination import Combination, Told
from controllers.engine.file_use import announced
from controllers.engine.host_work import Assistants, by_host, copy_cells
from controllers.engine.large_message import LargeMessage, Line
from controllers.engine.memories import Memories
from controllers.engine.network import PIECE_NBYTES, MessageEnd, message_tags
from controllers.executor.executor import Digesting, Executor, Folding
from controllers.memory.tile import Tile
from controllers.plan import MemoryCells, Operation, Plan, TileKey
from controllers.plan.fill import fills_of
from controllers.plan.folding import combined, folds_at_times
from controllers.plan.moved import moved
from controllers.plan.operation import FoldKey
from controllers.program.accumulator import Accumulator
from controllers.program.application import no_cells
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap.comm import Communicator
from hitmap.region import Region
from hitmap.shape import Shape


class Binder(Memories):
    """Binds the operations of one rank; owns its tiles, staging memory and MPI requests."""

    def __init__(
        self,
        plan: Plan,
        executors: Mapping[int, Executor],
        comm: Communicator,
        tiles: Mapping[TileKey, Tile] | None = None,
    ) -> None:
        """`tiles` are there already; the others are allocated."""
        super().__init__(plan, executors, tiles)
        self.messages: list[MessageEnd | LargeMessage] = []
        self._lines: defaultdict[tuple[int, int, bool], Line] = defaultdict(deque)
        self._comm = comm
        self._tags = message_tags(plan)
        self.turns = {
            place: tuple(self.surroundings() for _ in range(plan.n_turns)) for place in plan.places
        }
        self.around = {place: first for place, (first, *_) in self.turns.items()}
        self._shared: dict[int, Command] = {}   # by the number in the first step
        self._foldings: dict[tuple[int, int], Folding] = {}     # by sweep and place
        self._assistants = Assistants()

    def command(self, operation: Operation) -> Command:
        """The command of `operation`, with all its arguments set; a launch that need not fold.

        Where steps of the period compute alike it is the same in all of them.
        """
        if not self.plan.computes_alike or operation.lane != "compute":
            return self._command(operation)
        number = operation.number % len(self.plan.computed_operations)
        if number not in self._shared:
            self._shared[number] = self._command(operation)
        return self._shared[number]

    def _command(self, operation: Operation) -> Command:
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
        for turns in self.turns.values():
            for around in turns:
                around.change(numbers)

    def close(self) -> None:
        """Free the MPI requests."""
        for message in self.messages:
            message.close()
        self.messages.clear()

    def release(self) -> None:
        """Let go of all memory."""
        super().release()
        self._foldings.clear()
        self._shared.clear()

    def launch(
        self, operation: Operation, n_steps: int | None = None, *, folds: bool = True,
        over: Shape | None = None, digesting: Digesting | None = None,
    ) -> Command:  # fmt: skip
        """The command of a launch, of as many time steps as the plan has or of `n_steps`.

        folds: whether it makes the folds of its sweep, too.  over: these of its cells alone.
        digesting: what takes the digest of the field that it updates; then it folds nothing.
        """
        assert operation.sweep is not None
        sweep = self.plan.sweep_at(operation.sweep, operation.launch, operation.place)
        read = [self._tile(_tile_key(access)) for access in operation.reads]
        written = [self._tile(_tile_key(access)) for access in operation.writes]
        folding: Folding | Digesting | None = digesting
        if folding is None and folds and operation.gives:
            folding = self.folding(operation.gives[0])
        return self.executors[operation.place].launch_command(
            self.plan.program,
            sweep if n_steps is None else self.plan.shortened(sweep, n_steps),
            dict(zip((use.version.field for use in sweep.uses), read, strict=True)),
            dict(zip(sweep.writes, written, strict=True)),
            operation.launched if over is None else over,
            self.turns[operation.place][operation.turn],
            folding,
            operation.part,
        )

    def folding_launch(self, operation: Operation) -> Command | None:
        """The other command of a launch that folds in some steps; or of one that folds apart."""
        if operation.verb != "launch":
            return None
        if not self.plan.folds_apart:
            at_times = folds_at_times(self.plan, operation)
            return self.launch(operation) if at_times else None
        over, own = operation.launched, self.plan.updated(self.plan.sweeps[0], operation.place)
        commands = [self.launch(operation, 1, over=over & own)] if operation.gives else []
        if not self.plan.steps_are_rounds:      # else halos are exchanged anew
            for box in (Region.of([over]) - own).boxes:
                commands.append(self.launch(operation, 1, folds=False, over=box))
        return in_order(commands) if commands else None

    def turned(self, operation: Operation) -> Command:
        """The command of a launch that computes no step: what it would compute stays as it was."""
        sweep, box = self.plan.sweeps[0], operation.launched
        used = [use.version.field for use in sweep.uses]
        executor, commands = self.executors[operation.place], []
        for field, written in zip(sweep.writes, operation.writes, strict=True):
            source = self._tile(_tile_key(operation.reads[used.index(field)]))
            target = self._tile(_tile_key(written))
            commands.append(executor.copy_command(
                source.linear, target.linear, self.plan.program.itemsize(field),
                (source.strided(box), target.strided(box)),
            ))  # fmt: skip
        return in_order(commands)

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
        fills = [(fill, self._tile(key)) for key, fill in fills_of(self.plan, operation).items()]
        around = self.turns[operation.place][operation.turn]
        return self.executors[operation.place].fill_command(self.plan.program, fills, around)

    def _host_task(self, operation: Operation) -> Command:
        task = operation.task
        assert task is not None
        fields, accesses = (*task.reads, *task.writes), (*operation.reads, *operation.writes)
        cells = {
            field: self._tile(_tile_key(access)).view(access.cells[0])
            for field, access in zip(fields, accesses, strict=True)
        }
        return by_host(lambda: task.work(cells))

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
        is_large = sum(cells.nbytes for cells, _ in moves) > PIECE_NBYTES
        if is_large and not self.executors[operation.place].shares_host:
            return self._assistants.copying(moves)  # who drives the device goes on
        return by_host(partial(copy_cells, moves))

    def _transfer(self, operation: Operation) -> Command:
        """Between a device and the host, run by run; one where the cells are packed."""
        device, is_up = self._device(operation.place), operation.verb == "upload"
        ends = operation.reads, operation.writes
        here, there = ends if is_up else ends[::-1]
        if all(isinstance(access.memory, TileKey) for access in (*here, *there)):
            return self._way(operation, here, there)
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

    def _way(
        self, operation: Operation, here: Sequence[MemoryCells], there: Sequence[MemoryCells]
    ) -> Command:
        """Between images on the host and a slot of the device, box by box."""
        device, is_up = self._device(operation.place), operation.verb == "upload"
        images, slots = (moved(self.plan, operation, end) for end in (here, there))
        pairs = [
            (self._memory(image.memory), self._linear(slot.memory), host, device_run)
            for image, slot in zip(images, slots, strict=True)
            for host, device_run in zip(image.runs, slot.runs, strict=True)
        ]
        bring = device.bring_command if is_up else device.retrieve_command
        used = [
            (self._tile(image.memory), run) for image in images for run in image.runs
            if isinstance(image.memory, TileKey)
        ]  # fmt: skip
        return announced(in_order([bring(*pair) for pair in pairs]), used, is_up=is_up)

    def _message(self, operation: Operation) -> Command:
        assert operation.bundle is not None
        bundle = self.plan.bundles[operation.bundle]
        sends = operation.verb == "send"
        ends = bundle.source, bundle.target
        peer = ends[sends]
        fields = " and ".join(transfer.field for transfer in operation.transfers)
        rank, tag = self.plan.locations[peer].rank, self._tags[bundle.number]
        end: Callable[..., MessageEnd | LargeMessage] = MessageEnd
        if bundle.nbytes > PIECE_NBYTES:
            end = partial(LargeMessage, self._assistants, self._lines[rank, tag, sends])
        message = end(
            self._comm, self._runs(operation), rank, tag, sends=sends,
            name=f"message {bundle.number} of {fields}, place {ends[0]} to {ends[1]},",
        )  # fmt: skip
        self.messages.append(message)
        return message


def _tile_key(access: MemoryCells) -> TileKey:
    assert isinstance(access.memory, TileKey), "kernels work on tiles"
    return access.memory
