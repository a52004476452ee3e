# SPDX-License-Identifier: MIT
"""A stage's launch under inspection: what it may touch follows from the program.

Of a generated kernel every result is compared with the reference; of a user's kernel all that is
known is what it reads and writes.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from controllers.check.executor import CheckedExecutor
from controllers.check.finding import Complaint, Kind
from controllers.check.inspection import Array, Inspection, Run, Use
from controllers.check.memory import Bits, TileMemory, differ
from controllers.check.monitor import Monitor
from controllers.device.event import Command, Event
from controllers.executor.executor import Executor
from controllers.kernel.variant import Kernel
from controllers.memory.tile import Tile
from controllers.plan import Operation, TileKey
from controllers.program.expression import Read, reads
from controllers.program.program import Program, Stage
from controllers.program.reference import apply_stage
from controllers.program.steps import Steps
from hitmap.shape import Shape


class StageLaunch:
    """The launch of one operation: memories, runs, and what must come out."""

    def __init__(
        self,
        monitor: Monitor,
        executor: Executor,
        tiles: Mapping[TileKey, Tile],
        operation: Operation,
        command: Command,
    ) -> None:
        assert operation.stage is not None
        (written,) = operation.writes
        assert isinstance(written.memory, TileKey)
        self._program = monitor.plan.program
        self._stage: Stage = self._program.stages[operation.stage]
        self._over: Shape = written.cells[0]
        self._executor, self._monitor = executor, monitor
        self._keys = {access.memory.field: access.memory for access in operation.reads
                      if isinstance(access.memory, TileKey)}  # fmt: skip
        self._written = written.memory
        self._own = own = _own_kernel(executor, self._program, self._stage)
        name = self._stage.name if own is None else own.name
        uses = [self._source(field, tiles[key]) for field, key in self._keys.items()]
        self._uses = [*uses, self._target(tiles[written.memory])]
        runs = [Run(0, lambda: command(None))]
        if own is not None:
            runs += self._more_runs(executor, tiles, operation.stage, command)
        self._inspection = Inspection(name, self._uses, runs, self._hearing(name))

    def __call__(self) -> tuple[Event, Complaint | None]:
        """Do the launch; its event, and what is wrong with it."""
        self._executor.wait()
        keys = [*self._keys.values(), self._written]
        busy = [self._widened(use, self._monitor.busy(key))
                for use, key in zip(self._uses, keys)]  # fmt: skip
        event, complaint = self._inspection.run(busy)
        for use, key, values, keep in zip(self._uses[:-1], keys, self._inspection.before, busy):
            box = use.memory.tile.geometry.box
            apart_from = use.memory.view(keep | ~use.reads, box)
            self._monitor.compare(key, box, use.memory.view(values, box), apart_from)
        target = self._uses[-1].memory.view(self._inspection.after[-1], self._over)
        self._monitor.wrote(self._written, self._over, target)
        return event, complaint or self._arithmetic()

    def _source(self, field: str, tile: Tile) -> Use:
        memory = TileMemory(self._executor, tile)
        boxes = [self._over.shift(offset) for offset in self._offsets(field)]
        return Use(field, field, memory, memory.mask(boxes), memory.mask([]))

    def _target(self, tile: Tile) -> Use:
        memory, field = TileMemory(self._executor, tile), self._stage.writes
        return Use(f"{field}_new", field, memory, memory.mask([]), memory.mask([self._over]))

    def _offsets(self, field: str) -> list[tuple[int, ...]]:
        if self._own is not None:
            return [*self._own.offsets(self._stage, field)]
        return [node.offset for node in reads(self._stage.expression) if node.field == field]

    def _more_runs(
        self, executor: Executor, tiles: Mapping[TileKey, Tile], stage: int, command: Command
    ) -> list[Run]:
        """With other junk, and in another order."""
        runs = [Run(1, lambda: command(None))]
        if isinstance(executor, CheckedExecutor) and not executor.simulated:
            given = {field: tiles[key] for field, key in self._keys.items()}
            with executor.reversed():
                back = executor.launch_command(
                    self._program, stage, given, tiles[self._written], self._over,
                    Steps(1, self._over),
                )  # fmt: skip
            runs.append(Run(0, lambda: back(None), reversed=True))
        return runs

    def _hearing(self, name: str) -> Callable[[], Complaint | None]:
        executor = self._executor
        if isinstance(executor, CheckedExecutor):
            return lambda: executor.heard(name, self._over, self._uses)
        return lambda: None

    def _widened(self, use: Use, busy: Bits) -> Bits:
        """Elements of the tile, as elements of its memory with guards."""
        return np.pad(busy, use.memory.guard) if use.memory.guard else busy

    def _arithmetic(self) -> Complaint | None:
        """A result that the reference does not have, or that is NaN though nothing read is."""
        before, after = self._inspection.before, self._inspection.after
        memories = {use.field: (use.memory, values) for use, values in zip(self._uses, before[:-1])}

        def read(node: Read) -> Array:
            memory, values = memories[node.field]
            return memory.view(values, self._over.shift(node.offset))

        result = self._uses[-1].memory.view(after[-1], self._over)
        if self._own is None:
            right = np.broadcast_to(
                apply_stage(self._stage, read, self._program.dtype), result.shape
            )
            unlike = differ(result, right)
            if result.dtype.kind == "f":    # which NaN it is, no one promises
                unlike &= ~(np.isnan(result) & np.isnan(right))
            if unlike.any():
                return self._say("bits", unlike, "another value than the reference")
        if result.dtype.kind != "f":
            return None
        new = np.isnan(result)
        for node in reads(self._stage.expression):
            new &= ~np.isnan(read(node))
        return self._say("nan", new, "NaN, though nothing that it reads is") if new.any() else None

    def _say(self, kind: Kind, where: Bits, what: str) -> Complaint:
        at = np.unravel_index(int(np.argmax(where)), where.shape)
        cell = tuple(int(n) + lower for n, lower in zip(at, self._over.lower))
        field = self._stage.writes
        text = f"the launch of {self._stage.name} gives {field} at {cell} {what}"
        return Complaint(kind, text, field, cell)


def _own_kernel(executor: Executor, program: Program, stage: Stage) -> Kernel | None:
    """The user's kernel that computes a stage; None where a generated one does."""
    kernel = getattr(executor, "kernel", None)
    return kernel if isinstance(kernel, Kernel) and kernel.computes(program, stage) else None
