# SPDX-License-Identifier: MIT
"""Executes a plan with NumPy, in any order that its edges allow: no device, no MPI, one process.

What a plan does not order may happen in any order, so a result that is right for many
random orders says that the plan waits for what it must.
"""
from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.plan import MemoryCells, Operation, Plan, TileKey
from controllers.plan.moved import moved
from controllers.program.application import apply_sweep, cells_outside
from controllers.program.surroundings import Surroundings
from hitmap import Region, Shape
from hitmap.strided import elements

Instance = tuple[int, int]  # (step, number of the operation)
Array = npt.NDArray[Any]


class Simulation:
    """The memories of all places of `plan`, and the instances of its operations still to run."""

    def __init__(self, plan: Plan, fields: Mapping[str, Array], rng: random.Random) -> None:
        self.plan, self.rng = plan, rng
        self.memory: dict[Any, Array] = {}
        self.channels: dict[int, deque[list[Array]]] = {}
        for memory in plan.memories:
            extent = memory.geometry.box.extent
            dtype = np.dtype(memory.dtype)
            empty = np.nan if dtype.kind == "f" else np.iinfo(dtype).max - 2
            self.memory[memory.key] = np.full(extent, empty, dtype)
        for field, values in fields.items():
            for place in plan.places:
                owned = plan.layout.owned[place]
                for key in plan.to_set(field, 0, place):
                    self._tile(key, owned)[...] = values[owned.slices(plan.layout.domain.lower)]

    def run(self, n_steps: int) -> dict[str, Array]:
        """The fields after `n_steps` steps."""
        if n_steps:
            self._run({(-1, o.number): o for o in self.plan.opening[0]})
        self._run(
            {
                (step, o.number): o
                for step in range(n_steps)
                for o in self.plan.operations
                if o.phase == step % self.plan.n_phases
            }
        )
        return {field.name: self._field(field.name, n_steps) for field in self.plan.program.fields}

    def _run(self, todo: dict[Instance, Operation]) -> None:
        while todo:
            ready = [instance for instance in todo if self._ready(instance, todo)]
            assert ready, "the plan does not progress"
            instance = self.rng.choice(ready)
            self._execute(todo.pop(instance))

    def _ready(self, instance: Instance, todo: dict[Instance, Operation]) -> bool:
        step, operation = instance[0], todo[instance]
        if any((step - e.steps_back, e.number) in todo for e in operation.after):
            return False
        if operation.verb == "receive" and not self.channels.get(_number(operation)):
            return False
        # messages of one channel keep their order, as MPI's do
        return operation.verb not in ("send", "receive") or not any(
            o.verb == operation.verb and o.bundle == operation.bundle and s < step
            for (s, _), o in todo.items()
        )

    def _execute(self, operation: Operation) -> None:
        if operation.verb == "launch":
            self._launch(operation)
        elif operation.verb == "fill":
            self._fill(operation)
        elif operation.verb == "send":
            parts = [cells.copy() for cells in self._cells(operation, operation.reads)]
            self.channels.setdefault(_number(operation), deque()).append(parts)
        elif operation.verb == "receive":
            self._put(operation, self.channels[_number(operation)].popleft())
        else:
            self._put(operation, [*self._cells(operation, operation.reads)])

    def _launch(self, operation: Operation) -> None:
        assert operation.sweep is not None
        sweep = self.plan.sweeps[operation.sweep]
        (over,) = operation.writes[0].cells
        fields = (use.version.field for use in sweep.uses)
        keys = {field: access.memory for field, access in zip(fields, operation.reads)}
        values = apply_sweep(
            sweep, lambda field, box: self._tile(keys[field], box), over, self.plan.program.dtypes,
            Surroundings.usual(self.plan.program, self.plan.layout.domain, self.plan.periodic),
        )  # fmt: skip
        for access, cells in zip(operation.writes, [*values.values()], strict=True):
            self._tile(access.memory, over)[...] = cells

    def _fill(self, operation: Operation) -> None:
        (written,) = operation.writes
        key = written.memory
        assert isinstance(key, TileKey)
        readable = Region.of(box for access in operation.reads for box in access.cells)

        def cells_of(box: Shape) -> Array:
            assert box in readable, f"{box} is read, the plan says {readable}"
            return self._tile(key, box)

        dtype = self.plan.program.field(key.field).dtype
        around = Surroundings.usual(self.plan.program, self.plan.layout.domain, self.plan.periodic)
        for box in written.cells:
            extension = self.plan.extension(key.field)
            assert extension is not None
            self._tile(key, box)[...] = cells_outside(extension, cells_of, box, dtype, around)

    def _tile(self, key: Any, cells: Shape) -> Array:
        box = self.plan.geometry(key.field, key.place).box
        assert cells in box, f"{cells} are not in the tile {box}"
        return self.memory[key][cells.slices(box.lower)]

    def _cells(self, operation: Operation, accesses: Sequence[MemoryCells]) -> Iterator[Array]:
        for what in moved(self.plan, operation, accesses):
            if isinstance(what.memory, TileKey):
                yield from (self._tile(what.memory, box) for box in what.boxes)
            else:
                dtype = self.plan.program.dtypes[what.field]
                staging = elements(self.memory[what.memory], dtype)
                yield from (run.view(staging) for run in what.runs)

    def _put(self, operation: Operation, parts: Sequence[Array]) -> None:
        for cells, values in zip(self._cells(operation, operation.writes), parts, strict=True):
            assert cells.dtype == values.dtype
            cells[...] = values.reshape(cells.shape)

    def _field(self, field: str, n_steps: int) -> Array:
        dtype = self.plan.program.field(field).dtype
        whole = np.zeros(self.plan.layout.domain.extent, dtype)
        for place in self.plan.places:
            owned = self.plan.layout.owned[place]
            key = self.plan.newest(field, n_steps, place)
            whole[owned.slices(self.plan.layout.domain.lower)] = self._tile(key, owned)
        return whole


def _number(operation: Operation) -> int:
    assert operation.bundle is not None
    return operation.bundle
