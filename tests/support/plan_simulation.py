# SPDX-License-Identifier: MIT
"""Executes a plan with NumPy, in any order that its edges allow: no device, no MPI, one process.

What a plan does not order may happen in any order, so a result that is right for many
random orders says that the plan waits for what it must.
"""
from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.plan import Operation, Plan, SlotKey, TileKey
from controllers.plan.fill import fills_of
from controllers.plan.moved import moved
from controllers.program.application import apply_sweep, cells_outside
from controllers.program.surroundings import Surroundings
from hitmap import Region, Shape
from hitmap.strided import Geometry, elements

Instance = tuple[int, int]  # (step, number of the operation)
Array = npt.NDArray[Any]


class Simulation:
    """The memories of all places of `plan`, and the instances of its operations still to run."""

    def __init__(self, plan: Plan, fields: Mapping[str, Array], rng: random.Random) -> None:
        self.plan, self.rng = plan, rng
        self.around = Surroundings.usual(plan.program, plan.layout.domain, plan.periodic)
        self.memory: dict[Any, Array] = {}
        self.geometries: dict[TileKey, Geometry] = {}               # of the tiles
        self.views: dict[tuple[int, bool], list[Array]] = {}        # of what operations move
        self.channels: dict[int, deque[list[Array]]] = {}
        for memory in plan.memories:
            dtype = np.dtype(memory.dtype)
            empty = np.nan if dtype.kind == "f" else np.iinfo(dtype).max - 2
            self.memory[memory.key] = np.full(memory.geometry.n_elements, empty, dtype)
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
        """All of `todo`, each time one of those that wait for nothing more."""
        waits, followers = _orders(todo)
        free = [instance for instance in todo if not waits[instance]]
        while free:
            ready = [n for n, instance in enumerate(free) if self._has_come(todo[instance])]
            assert ready, "the plan does not progress"
            chosen = self.rng.choice(ready)
            instance, free[chosen] = free[chosen], free[-1]
            free.pop()
            self._execute(todo.pop(instance))
            for follower in followers[instance]:
                waits[follower] -= 1
                if not waits[follower]:
                    free.append(follower)
        assert not todo, "the plan does not progress"

    def _has_come(self, operation: Operation) -> bool:
        """Whether the message has, if it receives one."""
        return operation.verb != "receive" or bool(self.channels.get(_number(operation)))

    def _execute(self, operation: Operation) -> None:
        if operation.verb == "launch":
            self._launch(operation)
        elif operation.verb == "fill":
            self._fill(operation)
        elif operation.verb == "send":
            parts = [cells.copy() for cells in self._cells(operation, is_written=False)]
            self.channels.setdefault(_number(operation), deque()).append(parts)
        elif operation.verb == "receive":
            self._put(operation, self.channels[_number(operation)].popleft())
        else:
            self._put(operation, self._cells(operation, is_written=False))

    def _launch(self, operation: Operation) -> None:
        assert operation.sweep is not None
        sweep = self.plan.sweeps[operation.sweep]
        (over,) = operation.writes[0].cells
        fields = (use.version.field for use in sweep.uses)
        keys = {field: access.memory for field, access in zip(fields, operation.reads)}
        values = apply_sweep(
            sweep, lambda field, box: self._tile(keys[field], box), over, self.plan.program.dtypes,
            self.around,
        )  # fmt: skip
        for access, cells in zip(operation.writes, [*values.values()], strict=True):
            self._tile(access.memory, over)[...] = cells

    def _fill(self, operation: Operation) -> None:
        reads = {access.memory: Region.of(access.cells) for access in operation.reads}
        for key, (extension, dtype, _, boxes) in fills_of(self.plan, operation).items():
            def cells_of(box: Shape, key: TileKey = key) -> Array:
                assert box in reads[key], f"{box} is read, the plan says {reads[key]}"
                return self._tile(key, box)

            for box in boxes:
                values = cells_outside(extension, cells_of, box, dtype, self.around)
                self._tile(key, box)[...] = values

    def _tile(self, key: Any, cells: Shape) -> Array:
        if key not in self.geometries:
            self.geometries[key] = self.plan.lies(key)
        lies, room = self.geometries[key], key.room if isinstance(key, SlotKey) else key
        assert cells in lies.box, f"{cells} are not in the tile {lies.box}"
        return lies.strided(cells).view(self.memory[room])

    def _cells(self, operation: Operation, is_written: bool) -> list[Array]:
        """What an operation moves, or moves it to."""
        key = operation.number, is_written
        if key not in self.views:
            self.views[key] = [*self._moved(operation, is_written)]
        return self.views[key]

    def _moved(self, operation: Operation, is_written: bool) -> Iterator[Array]:
        accesses = operation.writes if is_written else operation.reads
        for what in moved(self.plan, operation, accesses):
            if isinstance(what.memory, TileKey):
                yield from (self._tile(what.memory, box) for box in what.boxes)
            else:
                dtype = self.plan.program.dtypes[what.field]
                staging = elements(self.memory[what.memory], dtype)
                yield from (run.view(staging) for run in what.runs)

    def _put(self, operation: Operation, parts: list[Array]) -> None:
        for cells, values in zip(self._cells(operation, is_written=True), parts, strict=True):
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


def _orders(
    todo: Mapping[Instance, Operation],
) -> tuple[dict[Instance, int], dict[Instance, list[Instance]]]:
    """For how many others each one waits, and who waits for it.

    Messages of one channel keep their order, as MPI's do.
    """
    followers: dict[Instance, list[Instance]] = defaultdict(list)
    channels: dict[tuple[str, int], dict[int, list[Instance]]] = defaultdict(dict)
    waits = dict.fromkeys(todo, 0)
    for (step, number), operation in todo.items():
        awaited = {(step - edge.steps_back, edge.number) for edge in operation.after}
        if operation.verb in ("send", "receive"):
            earlier = channels[operation.verb, _number(operation)]
            awaited.update(*(one for other, one in earlier.items() if other < step))
            earlier.setdefault(step, []).append((step, number))
        for other in sorted(awaited & todo.keys()):
            waits[step, number] += 1
            followers[other].append((step, number))
    return waits, followers


def _number(operation: Operation) -> int:
    assert operation.bundle is not None
    return operation.bundle
