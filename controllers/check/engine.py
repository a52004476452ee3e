# SPDX-License-Identifier: MIT
"""The engine of the checked mode: the same one, with a monitor beside every task."""
from __future__ import annotations

import math
from collections.abc import Container, Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from controllers.check.finding import Complaint, raise_first
from controllers.check.memory import TileMemory, differ, junk, unlike_bits
from controllers.check.monitor import Monitor
from controllers.check.part import Array, Reader
from controllers.check.sweep import SweepLaunch
from controllers.check.task import TaskWatch
from controllers.device.event import Command, Event
from controllers.engine import Engine, Progress, RepeatingEngine, RunLog
from controllers.engine.combination import Combining
from controllers.engine.looks import Looks, run_in_pieces
from controllers.engine.task import Task
from controllers.executor.executor import Executor
from controllers.memory.tile import Tile
from controllers.plan import Operation, Plan, StagingKey, TileKey
from controllers.plan.fill import fills_of
from controllers.plan.plan import Part
from controllers.program.application import cells_outside
from hitmap.comm import Communicator
from hitmap.shape import Shape
from hitmap.strided import Strided

AT_ONCE = 64    # steps until the ranks compare what they have found


class CheckedEngine(Engine):
    """Raises `CheckError` on all ranks after a run in which any of them has found a fault."""

    def __init__(
        self, plan: Plan, executors: Mapping[int, Executor], comm: Communicator,
        tiles: Mapping[TileKey, Tile] | None = None,
    ) -> None:  # fmt: skip
        self._comm, self._shadows = comm, comm.Dup()
        self._monitor = Monitor(plan, executors, self._shadows)
        super().__init__(plan, executors, comm, tiles)
        self._poison({} if tiles is None else tiles)

    def loaded(self, n_steps: int = 0) -> None:
        """The owned cells of a field, or of all, have been set; halos hold nothing any more."""
        super().loaded(n_steps)
        self._monitor.first = n_steps - self._n_done
        self._believe(n_steps)

    def begin_anew(self, looks: bool) -> None:
        super().begin_anew(looks)
        self._believe(0)

    def _believe(self, n_steps: int) -> None:
        """What owned cells hold is right, after so many steps; nothing else is there."""
        for key, tile in self.tiles.items():
            executor, owned = self.executors[key.place], self.plan.owned(key.field, key.place)
            memory, field = TileMemory(executor, tile), self._held(key)
            self._monitor.forget(key)
            if field is None:
                memory.write(np.full(memory.n_elements, junk(tile.dtype)))
                continue
            # buffers that do not hold the same were not all loaded
            values = executor.move_from(tile, owned)
            unlike = differ(values, executor.move_from(self.newest(field, key.place), owned))
            self._monitor.loaded(key, field, values, ~unlike, n_steps)
            memory.write(np.where(memory.mask([owned]), memory.read(), junk(tile.dtype)))

    def run(
        self,
        n_steps: int,
        progress: Progress | None = None,
        log: RunLog | None = None,
        until: float = math.inf,
        looks: Looks | None = None,
    ) -> None:
        """Run `n_steps` steps, some at a time; `CheckError` on all ranks.  Collective."""
        if looks is not None:
            run_in_pieces(self, n_steps, progress, log, until, looks)
            return
        for done in range(0, n_steps, AT_ONCE):

            def tell(so_far: int, _: int, before: int = done) -> None:
                if progress is not None:
                    progress(before + so_far, n_steps)

            wanted = self.n_steps + min(AT_ONCE, n_steps - done)
            super().run(wanted - self.n_steps, tell, log, until)
            self._look()
            raise_first(self._comm, *self._complaint)
            if self.n_steps < wanted:
                return

    def close(self) -> None:
        """Give back what belongs to MPI."""
        self._monitor.close()
        super().close()
        self._shadows.Free()

    def _look(self) -> None:
        """What the owned cells hold now is what will be looked at."""
        self._monitor.finished(self._n_done)
        for field, place in product(self.plan.liveness.pools, self.plan.places):
            key, owned = self.plan.newest(field, self._n_done, place), self.plan.owned(field, place)
            values = self.executors[place].move_from(self.tiles[key], owned)
            self._monitor.compare(key, field, owned, values, np.zeros(owned.extent, np.bool_))

    @property
    def _complaint(self) -> tuple[Complaint | None, int]:
        """What was found first, and in which step of the program."""
        found, step = self._monitor.complaint, self._monitor.complaint_step
        if found is None or self.whole is None:
            return found, step
        what = f"{found.what} (in round {step} of this part of the step)"
        return replace(found, what=what), self.whole.n_steps

    def _held(self, key: TileKey) -> str | None:
        """The field that a tile holds between two steps, or held; None where any may have."""
        if not self.plan.liveness.shares(key.field):
            return key.field
        names = (f for f, pool in self.plan.liveness.pools.items() if pool == key.field)
        return next((f for f in names if self.tiles[key] is self.newest(f, key.place)), None)

    def _task(self, operation: Operation) -> Task:
        monitor = self._monitor
        if operation.verb == "combine":
            combination = self._binder.combination(operation, self.folds.comm, self.folds.take)
            return Combining(operation, monitor.folded(operation, combination), combination)
        command = self._binder.command(operation)
        if operation.verb == "launch":
            also = self._binder.folding_launch(operation)
            folding = None if also is None else self._launch(operation, also)
            return _Watched(operation, self._launch(operation, command), monitor, folding)
        if operation.verb == "fold":
            return _Watched(operation, monitor.folded(operation, command), monitor)
        if operation.verb == "fill":
            made = monitor.fill(operation, command, self._reader(operation))
            return _Watched(operation, made, monitor)
        if operation.verb == "host":
            watch = TaskWatch(
                monitor, operation, command, lambda key, box: self.tiles[key].view(box)
            )
            return _Watched(operation, watch, monitor)
        if operation.lane == "network":
            return _Watched(operation, monitor.message(operation, command), monitor)
        return _Watched(operation, monitor.move(operation, command), monitor)

    def _launch(self, operation: Operation, command: Command) -> Command:
        around = self._binder.around[operation.place]
        launch = SweepLaunch(
            self._monitor, self.executors, self.tiles, operation, command, around
        )
        return self._monitor.launch(operation, launch)

    def _reader(self, operation: Operation) -> Reader:
        """What reads cells that an operation has made outside the domain; they must be right."""
        names, executor = (v.field for v in operation.versions), self.executors[operation.place]
        around, fills = self._binder.around[operation.place], fills_of(self.plan, operation)
        each = dict(zip(names, fills.items(), strict=True))

        def read(field: str, box: Shape) -> Array:
            key, (extension, dtype, *_) = each[field]

            def cells_of(cells: Shape) -> Array:
                return executor.move_from(self.tiles[key], cells)

            values = cells_of(box)
            unlike = unlike_bits(values, cells_outside(extension, cells_of, box, dtype, around))
            if unlike.any():
                at = np.unravel_index(int(np.argmax(unlike)), unlike.shape)
                cell = tuple(int(n) + lower for n, lower in zip(at, box.lower))
                what = f"{key.field} at {cell}, outside the domain, is not what its boundary says"
                self._monitor.complain(Complaint("bits", what, key.field, cell))
            return values

        return read

    def _poison(self, filled: Container[TileKey]) -> None:
        """Fresh memory holds junk, to be seen where it is read."""
        for key, tile in self.tiles.items():
            if key in filled:
                continue
            memory = TileMemory(self.executors[key.place], tile)
            memory.write(np.full(memory.n_elements, junk(tile.dtype)))
        for wanted in self.plan.memories:
            if isinstance(wanted.key, StagingKey):
                n_cells = wanted.geometry.n_elements
                poison = np.full(n_cells, junk(np.dtype(wanted.dtype)))
                linear = self._binder.staging[wanted.key]
                if isinstance(linear, np.ndarray):
                    linear[...] = poison
                    continue
                upload = self.executors[wanted.home].upload_command  # type: ignore[attr-defined]
                upload(poison, linear, Strided(0, (1,), (n_cells,)))(None).wait()


class CheckedRepeatingEngine(RepeatingEngine):
    """Checks each part of a step by itself, on what the parts before have left."""

    def part_engine(self, part: Part, tiles: Mapping[TileKey, Tile]) -> Engine:
        engine = CheckedEngine(part.plan, self.executors, self._comm, tiles)
        engine.be_part_of(self)
        return engine


class _Watched(Task):
    """Tells the monitor in which step it is started."""

    __slots__ = ("_monitor",)

    def __init__(
        self,
        operation: Operation,
        command: Command,
        monitor: Monitor,
        folding: Command | None = None,
    ) -> None:
        super().__init__(operation, command, folding)
        self._monitor = monitor

    def start(self, step: int) -> Event:
        self._monitor.step = step + self._monitor.first
        return super().start(step)
