# SPDX-License-Identifier: MIT
"""Executes a plan with NumPy, in any order that its edges allow: no device, no MPI, one process.

What a plan does not order may happen in any order, so a result that is right for many
random orders says that the plan waits for what it must.
"""
from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.plan import Access, Operation, Plan, StagingKey, TileKey
from controllers.program.reference import apply_stage
from hitmap import Shape
from hitmap.strided import packed

Instance = tuple[int, int]  # (step, number of the operation)


class Simulation:
    """The memories of all places of `plan`, and the instances of its operations still to run."""

    def __init__(self, plan: Plan, field: npt.NDArray[Any], rng: random.Random) -> None:
        self.plan, self.rng = plan, rng
        self.memory: dict[Any, npt.NDArray[Any]] = {}
        self.channels: dict[int, deque[npt.NDArray[Any]]] = {}
        for place in plan.places:
            box, owned = plan.geometry("u", place).box, plan.layout.owned[place]
            for level in range(plan.n_phases):
                tile = np.full(box.extent, np.nan, field.dtype)
                tile[owned.slices(box.lower)] = field[owned.slices(plan.layout.domain.lower)]
                self.memory[TileKey("u", level, place)] = tile

    def run(self, n_steps: int) -> npt.NDArray[Any]:
        """The field after `n_steps` steps; refreshes the halos before them, as the engine does."""
        n = self.plan.n_phases
        todo = {(-1, o.number): o for o in self.plan.operations if o.phase == n - 1 and o.refreshes}
        for step in range(n_steps):
            for o in self.plan.operations:
                if o.phase == step % n and not (o.refreshes and step == n_steps - 1):
                    todo[(step, o.number)] = o
        while todo:
            ready = [instance for instance in todo if self._ready(instance, todo)]
            assert ready, "the plan does not progress"
            instance = self.rng.choice(ready)
            self._execute(todo.pop(instance))
        return self._field(n_steps)

    def _ready(self, instance: Instance, todo: dict[Instance, Operation]) -> bool:
        step, operation = instance[0], todo[instance]
        if operation.verb == "receive" and not self.channels.get(_number(operation)):
            return False
        # messages of one channel keep their order, as MPI's do
        if operation.verb in ("send", "receive") and any(
            o.verb == operation.verb and o.transfer == operation.transfer and s < step
            for (s, _), o in todo.items()
        ):
            return False
        return not any((step - e.steps_back, e.number) in todo for e in operation.after)

    def _execute(self, operation: Operation) -> None:
        if operation.verb == "launch":
            self._launch(operation)
        elif operation.verb == "send":
            (access,) = operation.reads
            parts = [cells.copy() for cells in self._cells(access, operation)]
            self.channels.setdefault(_number(operation), deque()).append(_flat(parts))
        elif operation.verb == "receive":
            (access,) = operation.writes
            self._put(access, operation, self.channels[_number(operation)].popleft())
        else:
            (source,), (target,) = operation.reads, operation.writes
            self._put(target, operation, _flat(list(self._cells(source, operation))))

    def _launch(self, operation: Operation) -> None:
        assert operation.stage is not None
        stage = self.plan.program.stages[operation.stage]
        (written,) = operation.writes
        (over,) = written.cells
        reads = {access.memory.field: access.memory for access in operation.reads}
        value = apply_stage(
            stage,
            lambda read: self._tile(reads[read.field], over.shift(read.offset)),
            self.plan.program.dtype,
        )
        self._tile(written.memory, over)[...] = value

    def _tile(self, key: Any, cells: Shape) -> npt.NDArray[Any]:
        box = self.plan.geometry(key.field, key.place).box
        assert cells in box, f"{cells} are not in the tile {box}"
        return self.memory[key][cells.slices(box.lower)]

    def _cells(self, access: Access, operation: Operation) -> Iterator[npt.NDArray[Any]]:
        message = self.plan.transfers[_number(operation)].message
        if isinstance(access.memory, TileKey):
            yield from (self._tile(access.memory, box) for box in access.cells)
        else:
            yield from (part.view(self._staging(access.memory)) for part in packed(message.halo))

    def _staging(self, key: StagingKey) -> npt.NDArray[Any]:
        n_cells = self.plan.transfers[key.message].message.n_cells
        empty = np.full(n_cells, np.nan, self.plan.program.dtype)
        return self.memory.setdefault(key, empty)

    def _put(self, access: Access, operation: Operation, values: npt.NDArray[Any]) -> None:
        first = 0
        for cells in self._cells(access, operation):
            cells[...] = values[first : first + cells.size].reshape(cells.shape)
            first += cells.size
        assert first == values.size, "source and target have the same cells"

    def _field(self, n_steps: int) -> npt.NDArray[Any]:
        whole = np.full(self.plan.layout.domain.extent, np.nan, self.plan.program.dtype)
        for place in self.plan.places:
            owned = self.plan.layout.owned[place]
            key = TileKey("u", self.plan.level(n_steps), place)
            whole[owned.slices(self.plan.layout.domain.lower)] = self._tile(key, owned)
        return whole


def _number(operation: Operation) -> int:
    assert operation.transfer is not None
    return operation.transfer


def _flat(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    return np.concatenate([part.ravel() for part in parts])
