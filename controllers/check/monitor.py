# SPDX-License-Identifier: MIT
"""Watches the operations of a plan while they are executed, in a shadow of all its memories.

Each operation is done twice: by its command, and with the stamps of the cells that it moves.  The
stamps of a message travel in a second message beside it.  A launch must find in every cell that
its stage reads the value of that very cell and of the step before.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial, reduce
from itertools import chain

import numpy as np

from controllers.check.cells import NEVER, Bits, Elements, Numbers, bits_of
from controllers.check.complaints import first_cell, garbled, misplaced, unordered
from controllers.check.finding import Complaint
from controllers.check.ordering import HOST, Clocks, Traced, VectorClock, traced, untraced
from controllers.check.part import Array, Reader, Touched, content_of, joined, put
from controllers.check.versions import Versions
from controllers.device.event import AllOf, Command, Event
from controllers.engine.network import MessageEnd, message_tags
from controllers.executor.executor import Executor
from controllers.plan import MemoryCells, Operation, Plan, TileKey
from controllers.plan.moved import moved
from controllers.plan.operation import Memory
from hitmap.comm import Communicator
from hitmap.shape import Shape

# Does a launch after these events, while all devices are idle; says what is wrong with it.
LoneLaunch = Callable[[Sequence[Event]], "tuple[Event, Complaint | None]"]


class Monitor:
    """The shadow of the places of one rank, and the first complaint about what they do."""

    def __init__(
        self, plan: Plan, executors: Mapping[int, Executor], comm: Communicator
    ) -> None:
        self.plan = plan
        self.step = 0
        self.first = 0      # the time step that the engine's step 0 stands for
        self.complaint: Complaint | None = None
        self.complaint_step = 0
        program = plan.program
        extensions = {field.name: plan.extension(field.name) for field in program.fields}
        domains = (plan.layout_of(field).domain for field in extensions)
        domain = reduce(Shape.hull, domains)    # of all fields, so that stamps are told apart
        self.versions = Versions(
            plan.sweeps, domain, program.renames, plan.host_tasks, extensions
        )
        self._executors, self._comm, self._tags = executors, comm, message_tags(plan)
        self._messages: list[MessageEnd] = []
        self._cells: dict[Memory, Elements] = {}
        every = chain(plan.operations, *plan.opening)
        mine = [o for o in every if o.place in plan.places or o.verb == "combine"]
        threads = {HOST: False} | {self._thread(o): o.on_device for o in mine}
        self.clocks = Clocks(list(threads))
        self._on_devices = np.array([*threads.values()])

    def cells(self, memory: Memory) -> Elements:
        """The shadow of a memory."""
        if memory not in self._cells:
            if isinstance(memory, TileKey):
                n_elements = self.plan.geometry(memory.field, memory.place).n_elements
            else:
                n_elements = self.plan.bundles[memory.bundle].n_elements
            self._cells[memory] = Elements(n_elements)
        return self._cells[memory]

    def busy(self, key: TileKey) -> Bits:
        """Elements of a tile that messages may read or write now; all devices are idle."""
        known = np.where(self._on_devices, self.clocks.latest, self.clocks.host)
        return self.cells(key).busy(known)

    def forget(self, key: TileKey) -> None:
        """A tile holds nothing."""
        self.cells(key).forget()

    def loaded(self, key: TileKey, field: str, values: Array, holds: Bits, n_steps: int) -> None:
        """The owned cells of a tile have these values, `field` after `n_steps` where `holds`."""
        cells, owned = self.cells(key), self.plan.owned(field, key.place)
        stamps = self.versions.stamps(field, owned, n_steps * self.versions.n_sweeps)
        where = self.plan.geometry(key.field, key.place).strided(owned)
        cells.put(where, np.stack([np.where(holds, stamps, NEVER), bits_of(values)]))

    def finished(self, n_done: int) -> None:
        """All is complete: owned cells must be those after `n_done` steps, as the engine counts."""
        self.clocks.saw_all()
        time = (n_done + self.first) * self.versions.n_sweeps
        by_host = (field for task in self.plan.host_tasks for field in task.writes)
        program = self.plan.program
        lasting = {field.name for field in program.fields}
        for field in dict.fromkeys((*program.written, *program.renames, *by_host)):
            if field not in lasting:    # what nobody needs as the step ends
                continue
            for place in self.plan.places:
                key = self.plan.newest(field, n_done, place)
                (part,) = self.parts(MemoryCells(key, (self.plan.owned(field, place),)), field)
                self.expect(part, time, f"place {place} ends with")

    def wrote(self, key: TileKey, box: Shape, values: Array) -> None:
        """A launch has given the cells `box` these values."""
        where = self.plan.geometry(key.field, key.place).strided(box)
        where.view(self.cells(key).bits)[...] = bits_of(values)

    def compare(
        self, key: TileKey, field: str, box: Shape, values: Array, apart_from: Bits
    ) -> None:
        """Complain where cells of `field` in memory have other bits than the shadow."""
        (part,) = self.parts(MemoryCells(key, (box,)), field)
        known = part.where.view(part.cells.stamps) != NEVER
        wrong = known & (bits_of(values) != part.where.view(part.cells.bits)) & ~apart_from
        self.complain(garbled(part, wrong, key.place, self.versions))

    def close(self) -> None:
        """Give back what belongs to MPI."""
        for message in self._messages:
            message.close()

    def launch(self, operation: Operation, launch: LoneLaunch) -> Command:
        """The command of a launch."""
        assert operation.sweep is not None
        sweep = self.plan.sweeps[operation.sweep]
        used = {use.version.field: (use.version, access.memory)
                for use, access in zip(sweep.uses, operation.reads)}  # fmt: skip
        over = operation.launched
        # what it reads follows from the program, not from what the plan says
        sources = [(version, part) for node in sweep.stage.reads
                   for version, memory in (used[node.field],)
                   for part in self.parts(MemoryCells(memory, (over.shift(node.offset),)),
                                           node.field)]  # fmt: skip
        targets = [(update.version, part)
                   for update, written in zip(sweep.updates, operation.writes)
                   for part in self.parts(written, update.version.field)]  # fmt: skip
        thread = self._thread(operation)
        number = self.clocks.number(thread)
        reader = f"the launch of {sweep.name} at place {operation.place} reads"

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            events, after = untraced(wait_for)
            clock = self.clocks.tick(thread, after)
            for version, part in sources:
                self.order(operation, part, part.cells.read(part.where, clock, number))
                self.expect(part, self.versions.time(self.step, version), reader)
            for version, target in targets:
                self.order(operation, target, target.cells.write(target.where, clock, number))
                self._claim(operation, target, self.versions.time(self.step, version))
            event, complaint = launch(events or ())
            self.complain(complaint)
            return Traced(event, clock, self.clocks)

        return command

    def move(self, operation: Operation, real: Command) -> Command:
        """The command of a copy of any kind, within this rank."""
        taken = self._moved(operation, operation.reads)
        given = self._moved(operation, operation.writes)
        thread = self._thread(operation)

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            events, after = untraced(wait_for)
            clock = self.clocks.tick(thread, after)
            self._read(operation, taken, clock)
            self._write(operation, given, clock, content_of(taken))
            return Traced(real(events), clock, self.clocks)

        return command

    def folded(self, operation: Operation, real: Command) -> Command:
        """The command that merges what was folded, of no cell."""
        return partial(traced, self.clocks, self._thread(operation), real)

    def fill(self, operation: Operation, real: Command, read: Reader) -> Command:
        """The command that makes cells outside the domain; `read` says what is there then."""
        versions, thread = {v.field: v for v in operation.versions}, self._thread(operation)
        fields = dict(zip((access.memory for access in operation.writes), versions, strict=True))
        device = self._executors[operation.place]
        opens = operation.number >= len(self.plan.operations)
        is_next = opens or operation.launch == self.plan.n_launches     # the next step begins so
        sources, targets = (
            [part for access in each for part in self.parts(access, fields[access.memory])]
            for each in (operation.reads, operation.writes)
        )

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            events, after = untraced(wait_for)
            clock = self.clocks.tick(thread, after)
            times = {f: self.versions.time(self.step + (is_next and not one.number), one)
                     for f, one in versions.items()}  # fmt: skip
            self._read(operation, sources, clock)
            for part in sources:
                self.expect(part, times[part.field], f"the fill of place {operation.place} reads")
            event = real(events)
            device.flush()      # else what the fill waits for might never begin
            event.wait()
            parts = [(part.field, part.box) for part in targets]
            stamps = [self.versions.stamps(field, box, times[field]) for field, box in parts]
            self._write(operation, targets, clock, joined(stamps, [read(*part) for part in parts]))
            return Traced(event, clock, self.clocks)

        return command

    def message(self, operation: Operation, real: Command) -> Command:
        """The command of a message, with its second one."""
        sends = operation.verb == "send"
        assert operation.bundle is not None
        bundle = self.plan.bundles[operation.bundle]
        peer = bundle.target if sends else bundle.source
        parts = self._moved(operation, operation.reads if sends else operation.writes)
        content = np.full((2, sum(part.where.n_cells for part in parts)), NEVER, np.int64)
        rank, tag = self.plan.locations[peer].rank, self._tags[bundle.number]
        shadow = MessageEnd(self._comm, [content.reshape(-1)], rank, tag, sends=sends)
        self._messages.append(shadow)
        thread = self._thread(operation)

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            clock = self.clocks.tick(thread)
            if sends:
                self._read(operation, parts, clock)
                content[...] = content_of(parts)
                return Traced(AllOf([real(None), shadow(None)]), clock, self.clocks)
            self._write(operation, parts, clock, np.full_like(content, NEVER))
            both = AllOf([real(None), shadow(None)])
            return Traced(both, clock, self.clocks, lambda: put(parts, content))

        return command

    def complain(self, complaint: Complaint | None) -> None:
        """Keep the first complaint; later ones may follow from it."""
        if complaint is not None and self.complaint is None:
            self.complaint, self.complaint_step = complaint, max(0, self.step)

    def _read(self, operation: Operation, parts: Sequence[Touched], clock: VectorClock) -> None:
        number = self.clocks.number(self._thread(operation))
        for part in parts:
            self.order(operation, part, part.cells.read(part.where, clock, number))

    def _write(
        self, operation: Operation, parts: Sequence[Touched], clock: VectorClock, content: Numbers
    ) -> None:
        number = self.clocks.number(self._thread(operation))
        for one in parts:
            self.order(operation, one, one.cells.write(one.where, clock, number))
        put(parts, content)

    def order(self, operation: Operation, part: Touched, early: Bits) -> None:
        """Complain where an operation need not come after what it depends on."""
        self.complain(unordered(operation, part, early, self.versions))

    def expect(self, part: Touched, time: int, who: str) -> None:
        """Complain where the cells of `part` do not hold what they must at `time`."""
        self.complain(misplaced(part, time, who, self.versions))

    def _claim(self, operation: Operation, target: Touched, time: int) -> None:
        """A launch gives its cells the values of `time`, which must be its to give, once."""
        assert operation.sweep is not None
        sweep = self.plan.sweeps[operation.sweep]
        who = f"the launch of {sweep.name} at place {operation.place} writes {target.field}"
        allowed = self.plan.computed(operation.sweep, operation.phase, operation.place)
        if target.box not in allowed:
            what = f"{who} at {target.box}, the cells of its place to be computed are {allowed}"
            self.complain(Complaint("place", what, target.field, target.box.lower))
        stamps = self.versions.stamps(target.field, target.box, time)
        held = target.where.view(target.cells.stamps)
        twice = held == stamps
        if twice.any():
            cell = first_cell(target, twice, self.versions)
            what = f"{who} at {cell} a second time in this step"
            self.complain(Complaint("overlap", what, target.field, cell))
        held[...] = stamps

    def parts(self, access: MemoryCells, field: str = "") -> list[Touched]:
        """The cells of a tile that an access has, box by box.

        field: of which they are, where the tile is also another's.
        """
        memory, cells = access.memory, self.cells(access.memory)
        assert isinstance(memory, TileKey), "staging memory is only copied"
        geometry = self.plan.geometry(memory.field, memory.place)
        name = field or memory.field
        return [Touched(cells, geometry.strided(box), box, name) for box in access.cells]

    def _moved(self, operation: Operation, accesses: Sequence[MemoryCells]) -> list[Touched]:
        """The cells that an operation moves, box by box, in the order of its message."""
        return [
            Touched(self.cells(what.memory), where, box, what.field)
            for what in moved(self.plan, operation, accesses)
            for where, box in zip(what.runs, what.boxes)
        ]

    def _thread(self, operation: Operation) -> Hashable:
        """What does an operation, one after another."""
        if operation.lane == "host":
            return HOST
        if operation.lane == "network":
            return operation.verb, operation.bundle, operation.phase
        return id(self._executors[operation.place]), operation.lane
