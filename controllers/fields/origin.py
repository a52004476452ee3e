# SPDX-License-Identifier: MIT
"""Cells that are assigned to others as they are: `u[::2, ::2] = v`, of one grid or of two.

Each goes from the place that owns it to the place that will, and no rank sees the others.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.array.operand import Frame
from controllers.engine import Engine
from controllers.fields.cells import dtype_of, put_section, section_of
from controllers.fields.field_access import FieldAccess
from controllers.memory.tile import Tile
from hitmap.conversion import with_one_nan
from hitmap.redistribute import Move, Redistribution
from hitmap.section import Section
from hitmap.shape import Shape
from hitmap.strided import Strided


@dataclass(frozen=True)
class Origin:
    """Some cells of a field."""

    field: FieldAccess
    section: Section

    @property
    def facts(self) -> tuple[object, ...]:
        """What is the same on all ranks."""
        return self.field.calls.owner, self.field.fields, self.section

    def goes_to(self, target: FieldAccess, section: Section) -> bool:
        """Whether they go to cells of `target` one by one, as they are, between the same ranks."""
        one, other = self.field.comm, target.comm
        if one.size != other.size or (one.size > 1 and one != other):
            return False
        return self._dtype == dtype_of(target._engine, target.fields[0]) and _frame(section).takes(
            _frame(self.section)
        )

    def check(self, target: FieldAccess) -> None:
        """RuntimeError, on all ranks alike, where they cannot be read as `target` is set."""
        state = self.field.state
        if state is not target.state:
            state.check_idle("read")
            state.meet("reads")
        state.check("read", "reads")

    def move_to(self, target: FieldAccess, section: Section) -> None:
        """Set the cells of `section` to these.  Collective.

        What stays on a controller that has memory of its own is copied there.
        """
        field = self.field
        before, after = self.section.divided(field._layout), section.divided(target._layout)
        moves = Redistribution(before, after, field._ranks, target._ranks)
        way = _Way(_End(field._engine, field.fields[0], self.section),
                   _End(target._engine, target.fields[0], section))  # fmt: skip
        if field.state is target.state and field.fields == target.fields:
            parts = {place: way.read(place, before.owned[place]).copy() for place in way.places}
            for place, cells in moves.apply(parts, target.comm, self._dtype).items():
                way.write(place, after.owned[place], cells)
            return
        way.stay(moves.within(target.comm.rank))
        moves.exchange(target.comm, self._dtype, way.read, way.write)

    @property
    def _dtype(self) -> np.dtype[Any]:
        return dtype_of(self.field._engine, self.field.fields[0])


def _frame(section: Section) -> Frame:
    return Frame(section.extent, section.dropped)


@dataclass(frozen=True)
class _End:
    """Cells of a field, as an engine has them."""

    engine: Engine
    field: str
    section: Section

    def strided(self, tile: Tile, positions: Shape) -> Strided:
        """Where the cells at these positions lie in a tile."""
        first = tuple(cells[n] for cells, n in zip(self.section.ranges, positions.lower))
        at = tile.strided(Shape(first, tuple(n + 1 for n in first)))
        steps = [cells.step for cells in self.section.ranges]
        pitches = tuple(pitch * step for pitch, step in zip(at.pitches, steps))
        return Strided(at.first, pitches, positions.extent)


@dataclass(frozen=True)
class _Way:
    """From one end to the other, by positions."""

    source: _End
    target: _End

    @property
    def places(self) -> list[int]:
        """Those of this rank that cells come from."""
        return [*self.source.engine.executors]

    def read(self, place: int, positions: Shape) -> npt.NDArray[Any]:
        end = self.source
        return with_one_nan(section_of(end.engine, end.field, place, end.section, positions))

    def write(self, place: int, positions: Shape, cells: npt.NDArray[Any]) -> None:
        end = self.target
        put_section(end.engine, end.field, place, end.section, positions, cells)

    def stay(self, moves: Sequence[Move]) -> None:
        """Those within this rank."""
        engine, copies = self.target.engine, []
        has_walls = any(engine.plan.walls(self.target.field))
        for move in moves:
            executor = engine.executors[move.target]
            is_near = self.source.engine.executors[move.source] is executor
            if move.box.empty:
                continue
            if not is_near or executor.shares_host or has_walls:
                self.write(move.target, move.box, self.read(move.source, move.box))
                continue
            old = self.source.engine.newest(self.source.field, move.source)
            taken = self.source.strided(old, move.box)
            for new in engine.to_set(self.target.field, move.target):
                ends = taken, self.target.strided(new, move.box)
                itemsize = new.dtype.itemsize
                copies.append(executor.copy_command(old.linear, new.linear, itemsize, ends))
                copies[-1](None)
        for executor in dict.fromkeys(engine.executors.values()) if copies else ():
            executor.wait(keep=copies)
