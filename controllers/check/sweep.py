# SPDX-License-Identifier: MIT
"""A sweep's launch under inspection: what it may touch follows from the program.

Of a generated kernel every result is compared with the reference; of a user's kernel all that is
known is what it reads and writes.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from controllers.check.executor import CheckedExecutor
from controllers.check.finding import Complaint, FaultKind
from controllers.check.inspection import Array, Inspection, Run, TileUse
from controllers.check.memory import Bits, TileMemory, unlike_bits
from controllers.check.monitor import Monitor
from controllers.device.event import Command, Event
from controllers.executor.executor import Executor
from controllers.kernel.variant import Kernel
from controllers.memory.tile import Tile
from controllers.plan import MemoryCells, Operation, TileKey
from controllers.program.dtypes import given_dtype
from controllers.program.element import is_specified
from controllers.program.expression import Given, Read, reads
from controllers.program.program import Program
from controllers.program.reference import values_of
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep


class SweepLaunch:
    """The launch of one operation: memories, runs, and what must come out."""

    def __init__(
        self,
        monitor: Monitor,
        executors: Mapping[int, Executor],
        tiles: Mapping[TileKey, Tile],
        operation: Operation,
        command: Command,
        around: Surroundings,
    ) -> None:
        assert operation.sweep is not None
        executor = executors[operation.place]
        self._program, self._sweep = monitor.plan.program, monitor.plan.sweeps[operation.sweep]
        self._over = operation.launched
        self._around = around
        self._executor, self._monitor = executor, monitor
        self._devices = [*dict.fromkeys(executors.values())]
        fields = [use.version.field for use in self._sweep.uses]
        self._keys = dict(zip(fields, _keys(operation.reads)))
        self._written = dict(zip(self._sweep.writes, _keys(operation.writes)))
        self._own = own = _own_kernel(executor, self._program, self._sweep)
        name = _called(self._sweep) if own is None else own.name
        sources = {field: self._source(field, tiles[key]) for field, key in self._keys.items()}
        targets = {field: self._target(field, tiles[key]) for field, key in self._written.items()}
        over = self._sweep.stage.overwrites     # one use of one memory
        for new, old in over.items():
            targets[new] = replace(targets[new], reads=sources.pop(old).reads)
        self._uses = [*sources.values(), *targets.values()]
        # of what is read, and of what is written, its number among the uses
        self._new = {field: len(sources) + n for n, field in enumerate(targets)}
        self._old = {field: n for n, field in enumerate(sources)}
        self._old |= {old: self._new[new] for new, old in over.items()}
        runs = [Run(0, lambda: command(None))]
        if own is not None:
            runs += self._more_runs(executor, tiles, command)
        elif self._sweep.stage.elements:
            runs.append(Run(1, lambda: command(None)))
        self._inspection = Inspection(name, self._uses, runs, self._hearing(name))

    def __call__(self, after: Sequence[Event]) -> tuple[Event, Complaint | None]:
        """Do the launch while all devices are idle; its event, and what is wrong with it."""
        for device in self._devices:
            device.flush()
        for event in after:
            event.wait()
        for device in self._devices:    # others' transfers use this one's tiles in host memory
            device.wait()
        keys = {n: self._keys[field] for field, n in self._old.items()}
        keys |= {n: self._written[field] for field, n in self._new.items()}
        busy = [self._widened(use, self._monitor.busy(keys[n]))
                for n, use in enumerate(self._uses)]  # fmt: skip
        event, complaint = self._inspection.run(busy)
        for field, n in self._old.items():
            use, values = self._uses[n], self._inspection.before[n]
            box = use.memory.tile.geometry.box
            apart_from = use.memory.view(busy[n] | ~use.reads, box)
            self._monitor.compare(keys[n], field, box, use.memory.view(values, box), apart_from)
        for field, values in self._results().items():
            self._monitor.wrote(self._written[field], self._over, values)
        return event, complaint or self._arithmetic()

    def _results(self) -> dict[str, Array]:
        """What each field that is written got."""
        after = self._inspection.after
        return {
            field: self._uses[n].memory.view(after[n], self._over)
            for field, n in self._new.items()
        }

    def _source(self, field: str, tile: Tile) -> TileUse:
        memory = TileMemory(self._executor, tile)
        boxes = [self._over.shift(offset) for offset in self._offsets(field)]
        return TileUse(field, field, memory, memory.mask(boxes), memory.mask([]))

    def _target(self, field: str, tile: Tile) -> TileUse:
        memory = TileMemory(self._executor, tile)
        return TileUse(f"{field}_new", field, memory, memory.mask([]), memory.mask([self._over]))

    def _offsets(self, field: str) -> list[tuple[int, ...]]:
        stage = self._sweep.stage
        if self._own is not None:
            return [*self._own.offsets(stage, field)]
        return [node.offset for node in stage.reads if node.field == field]

    def _more_runs(
        self, executor: Executor, tiles: Mapping[TileKey, Tile], command: Command
    ) -> list[Run]:
        """With other junk, and in another order."""
        runs = [Run(1, lambda: command(None))]
        if isinstance(executor, CheckedExecutor) and not executor.simulated:
            given, room = (
                {field: tiles[key] for field, key in keys.items()}
                for keys in (self._keys, self._written)
            )
            with executor.reversed():
                back = executor.launch_command(
                    self._program, self._sweep, given, room, self._over, self._around
                )
            runs.append(Run(0, lambda: back(None), reversed=True))
        return runs

    def _hearing(self, name: str) -> Callable[[], Complaint | None]:
        executor = self._executor
        if isinstance(executor, CheckedExecutor):
            return lambda: executor.heard(name, self._over, self._uses)
        return lambda: None

    def _widened(self, use: TileUse, busy: Bits) -> Bits:
        """Elements of the tile, as elements of its memory with guards."""
        return np.pad(busy, use.memory.guard) if use.memory.guard else busy

    def _arithmetic(self) -> Complaint | None:
        """A result that the reference does not have, or that is NaN though nothing read is."""
        before, dtypes = self._inspection.before, self._program.dtypes
        memories = {field: (self._uses[n].memory, before[n]) for field, n in self._old.items()}

        def read(node: Read) -> Array:
            memory, values = memories[node.field]
            return memory.view(values, self._over.shift(node.offset))

        def given(node: Given) -> Any:
            return self._around.value(node, self._over, given_dtype(self._sweep.stage, dtypes))

        for update in self._sweep.updates:
            field = update.version.field
            result = self._results()[field]
            if self._own is None and is_specified(update.expression):
                right = values_of(update.expression, read, dtypes[field], given)
                unlike = unlike_bits(result, np.broadcast_to(right, result.shape))
                if unlike.any():
                    return self._say("bits", field, unlike, "another value than the reference")
            if result.dtype.kind == "f":
                new = np.isnan(result)
                for node in reads(update.expression):
                    new &= ~np.isnan(read(node))
                if new.any():
                    return self._say("nan", field, new, "NaN, though nothing that it reads is")
        return None

    def _say(self, kind: FaultKind, field: str, where: Bits, what: str) -> Complaint:
        at = np.unravel_index(int(np.argmax(where)), where.shape)
        cell = tuple(int(n) + lower for n, lower in zip(at, self._over.lower))
        text = f"the launch of {self._sweep.name} gives {field} at {cell} {what}"
        return Complaint(kind, text, field, cell)


def _called(sweep: Sweep) -> str:
    """The name of a sweep, and where it is written, if that is OpenCL C."""
    where = ", ".join(element.where for element in sweep.stage.elements)
    return f"{sweep.name} ({where})" if where else sweep.name


def _own_kernel(executor: Executor, program: Program, sweep: Sweep) -> Kernel | None:
    """The user's kernel that computes a sweep; None where a generated one does."""
    kernel = getattr(executor, "kernel", None)
    is_own = isinstance(kernel, Kernel) and kernel.computes(program, sweep.stage)
    return kernel if is_own else None


def _keys(accesses: Iterable[MemoryCells]) -> list[TileKey]:
    return [one.memory for one in accesses if isinstance(one.memory, TileKey)]
