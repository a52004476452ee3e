# SPDX-License-Identifier: MIT
"""One-off programs: assignments and folds, bound to the tiles of a computation, to be done again.

A plan of its own says which halos are exchanged first.  Its fields are the tiles of the computation
where these have room for the halo; else, a copy in tiles of its own, made anew each time.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from functools import reduce
from operator import and_

import numpy as np

from controllers.array.lowering import FOLD, PREFIX, TARGET, Lowered
from controllers.array.source import ArraySource, FieldSource, HeldSource, Source
from controllers.device.event import Command, Event
from controllers.engine import Engine, RunLog
from controllers.executor.executor import Executor, Folding
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.choices import Choices
from controllers.kernel.registry import SPECIALISED
from controllers.memory.tile import Tile
from controllers.plan import ChunkPlan, Plan, TileKey
from controllers.program.accumulator import Accumulator, Result
from controllers.program.application import no_cells
from controllers.program.program import Program
from hitmap.agreement import on_all_ranks
from hitmap.comm import Communicator
from hitmap.region import Region
from hitmap.shape import Shape
from hitmap.strided import Geometry


class OneOffPlan(Plan):
    """The plan of a one-off program, whose fields lie as those of another plan do, their homes."""

    def __init__(
        self, program: Program, main: Plan, homes: Mapping[str, str], only_rank: int
    ) -> None:
        self._main, self._homes = main, dict(homes)
        super().__init__(
            program, main.layout, main.periodic, main.locations, overlap="off", only_rank=only_rank
        )
        self.wide = {field for field in homes if not self._has_room(field)}
        for field in self.wide:
            del self._homes[field]

    def geometry(self, field: str, place: int) -> Geometry:
        """That of the tiles of its home, if it has one."""
        if field in self._homes:
            return self._main.geometry(self._homes[field], place)
        return super().geometry(field, place)

    def _has_room(self, field: str) -> bool:
        """Whether the tiles of its home have all cells that are read, at all places."""
        return all(
            self.full(field, place) in self._main.geometry(self._homes[field], place).box
            for place, owned in enumerate(self.layout_of(field).owned)
            if not owned.empty
        )


class LightFold:
    """The commands of folds, and what comes of them on all ranks.  empties: each of no cell."""

    def __init__(
        self, launches: Sequence[Command], parts: Sequence[Folding],
        empties: Mapping[str, Accumulator],
    ) -> None:  # fmt: skip
        self.commands = [*launches, *(part.reading for part in parts)]
        self._parts, self._empties = parts, empties

    def found(self, comm: Communicator) -> dict[str, Accumulator]:
        """Once the commands are complete, by name.  Collective."""
        parts = [part.accumulators for part in self._parts]
        if len(parts) == comm.size == 1:
            return dict(parts[0])
        mine = {
            name: reduce(Accumulator.merged, [part[name] for part in parts]) if parts else empty
            for name, empty in self._empties.items()
        }
        if comm.size == 1:
            return mine
        everyone = comm.allgather({name: one.words for name, one in mine.items()})
        return {
            name: reduce(
                Accumulator.merged,
                (Accumulator(one.kind, one.dtype, rank[name]) for rank in everyone),
            )
            for name, one in mine.items()
        }


class OneOffEngine(Engine):
    """One that runs a single step again and again; it reads fields that others set."""

    def launches(self) -> list[Command] | None:
        """The commands of a step, where launches are all there is to do; None elsewhere."""
        if any(self._opening) or not all(task.launches and task.is_free for task in self._tasks):
            return None
        return [self._binder.command(task.operation) for task in self._tasks]

    def folding(self) -> LightFold | None:
        """The folds of a program that needs no halo, without messages but for their results."""
        if self.plan.bundles or not self.plan.program.folds:
            return None
        operations = [task.operation for task in self._tasks]
        parts = [self._binder.folding(one.takes[0]) for one in operations if one.verb == "fold"]
        launches = [self._binder.command(one) for one in operations if one.verb == "launch"]
        (sweep,) = self.plan.sweeps
        return LightFold(launches, parts, no_cells(self.plan.program, sweep))

    def tell(self, numbers: Mapping[str, float]) -> None:
        """The scalars of the next step."""
        self._binder.tell(numbers)

    @property
    def launched(self) -> list[int]:
        """The place of each of the `launches`."""
        return [task.operation.place for task in self._tasks]

    def once(self, numbers: Mapping[str, float], log: RunLog | None = None) -> None:
        """Run the step: fields have been set since the last time."""
        self.numbers.parameters = {**numbers}
        self.loaded()
        self.run(1, log=log)


class OneOff:
    """An assignment or a fold that is bound: the tiles of fields are those that were newest then.
    """

    def __init__(
        self,
        made: Lowered,
        main: Engine,
        executors: Mapping[int, Executor],
        comm: Communicator,
    ) -> None:
        if isinstance(main.plan, ChunkPlan):
            raise on_all_ranks(ValueError(
                "array expressions are computed on fields that stay on their devices, and these "
                "pass through in chunks; take the cells as an array first, by np.asarray"
            ))  # fmt: skip
        sources = made.sources      # not kept: values that nobody looks at any more free tiles
        self._said = {name: _name(source) for name, source in sources.items()}
        homes = {name: source.home for name, source in sources.items()}
        self.plan = OneOffPlan(made.program, main.plan, homes, comm.rank)
        assert self.plan.n_phases == 1, "a target is written once"
        found = {
            TileKey(name, 0, place): _tile(source, main, place)
            for name, source in sources.items()
            for place in self.plan.places
        }
        adopted = {key: tile for key, tile in found.items() if key.field not in self.plan.wide}
        self._engine = OneOffEngine(self.plan, executors, comm, adopted)
        self._names = [f"{PREFIX}{n}" for n in range(len(made.program.scalars))]
        self._executors = list(dict.fromkeys(executors[place] for place in self.plan.places))
        self._before = [
            _copied(executors[key.place], tile, self._engine.tiles[key],
                    [self.plan.owned(key.field, key.place)])
            for key, tile in found.items() if key.field in self.plan.wide
        ]  # fmt: skip
        self._after = [*_spreading(made, main, executors, self.plan)]
        self._fold, self._comm = self._engine.folding(), comm
        launches = self._engine.launches() if self._fold is None else self._fold.commands
        self._commands = None if launches is None else [*launches, *self._after]

    def __str__(self) -> str:
        """What it does, and which fields are copied before, for people."""
        sweep, target = self.plan.sweeps[0], self._said.get(TARGET)
        what = ", ".join(fold.kind for fold in sweep.stage.folds.values())
        what = f"{what} of" if target is None else f"{target} ="
        read = {name: self._said[name] for name in sweep.stage.fields_read}
        wide = sorted({read[name] for name in self.plan.wide & {*read}})
        copied = f"; first copied, as the tiles have no room for the halo: {', '.join(wide)}"
        reads = ", ".join(dict.fromkeys(read.values()))
        return f"{what} an expression of {reads} over {sweep.cells}{copied if wide else ''}"

    @property
    def is_light(self) -> bool:
        """Whether it is nothing but commands in the queues of its devices."""
        return self._commands is not None

    def run(self, numbers: Sequence[float]) -> list[Event]:
        """Do it with these arguments; what is under way then.  Collective.

        Unless it `is_light`, nothing may be under way before.
        """
        for command in self._before:
            command(None)
        if self._commands is not None:
            if numbers:
                self._engine.tell(dict(zip(self._names, numbers)))
            events = [command(None) for command in self._commands]
        else:
            for executor in self._executors if self._before else ():
                executor.wait(keep=self)
            self._engine.once(dict(zip(self._names, numbers)))
            events = [command(None) for command in self._after]
        for executor in self._executors:
            executor.flush()
        return events

    @property
    def result(self) -> Result:
        """What the fold has given, on every rank, once it is complete.  Collective."""
        if self._fold is not None:
            return self._fold.found(self._comm)[FOLD].value
        return self._engine.folds.results[FOLD]

    def close(self) -> None:
        """Give back what belongs to MPI."""
        self._engine.close()


def specialised(executor: Executor) -> Executor:
    """The same device with kernels that are generated, whatever computes the steps."""
    if not isinstance(executor, OpenCLExecutor) or executor.kernel == SPECIALISED:
        return executor
    other = copy(executor)
    other.kernel, other.choices = SPECIALISED, Choices(executor.device)
    return other


def _name(source: Source) -> str:
    return source.name if isinstance(source, (FieldSource, ArraySource)) else "held values"


def _tile(source: Source, main: Engine, place: int) -> Tile:
    if isinstance(source, HeldSource):
        return source.tiles[place]
    assert isinstance(source, FieldSource)
    return main.newest(source.name, place)


def _spreading(
    made: Lowered, main: Engine, executors: Mapping[int, Executor], plan: Plan
) -> list[Command]:
    """Copies to the other buffers: cells that some writer does not compute are read from any."""
    target = made.sources.get(TARGET)
    if not isinstance(target, FieldSource):
        return []
    field, cells = target.name, plan.sweeps[-1].cells
    region = Region.of([cells])
    writings = main.plan.liveness.writings(field)
    if writings:
        region = region - reduce(and_, writings)
    found = []
    for place in plan.places:
        newest, *others = main.to_set(field, place)
        boxes = (region & plan.owned(TARGET, place)).boxes
        found += [_copied(executors[place], newest, tile, boxes) for tile in others if boxes]
    return found


def _copied(executor: Executor, source: Tile, target: Tile, boxes: Sequence[Shape]) -> Command:
    itemsize = np.dtype(target.dtype).itemsize
    moves = [(source.strided(box), target.strided(box)) for box in boxes]
    return executor.copy_command(source.linear, target.linear, itemsize, *moves)
