# SPDX-License-Identifier: MIT
"""What is written of a field: which of its cells, as what, along which dimensions."""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.engine import Engine
from controllers.fields.cells import section_of
from controllers.fields.selection import Selection
from controllers.memory.buffers import Buffers
from controllers.memory.tile import Tile
from controllers.plan import Plan
from controllers.settings.domain import place_of
from controllers.settings.initial import Place
from controllers.settings.outputs import Output
from hitmap.conversion import with_one_nan
from hitmap.layout import Layout
from hitmap.section import Section
from hitmap.shape import Shape
from hitmap.strided import Strided

MOST_BYTES, FEWEST_BYTES = 1 << 24, 1 << 18     # of a chunk, where the field has as many


@dataclass(frozen=True, eq=False)
class Axis:
    """A dimension of variables, and where its cells lie: coordinates, or indices without a grid.

    spacing: from one cell to the next.
    """

    name: str
    along: npt.NDArray[Any]
    spacing: float


@dataclass(frozen=True)
class Variable:
    """Cells of a field, `section`, along `axes`, written as `dtype`; chunk: cells along each."""

    field: str
    section: Section
    axes: tuple[Axis, ...]
    at: dict[str, float]        # where the axes lie that were dropped
    dtype: np.dtype[Any]
    chunk: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.section.shape

    def kept(self, box: Shape) -> Shape:
        """A box of positions without the axes that were dropped."""
        return Shape(self._without(box.lower), self._without(box.upper))

    def owned(self, engine: Engine) -> tuple[Shape, ...]:
        """Which positions each place of all ranks has, with the axes that were dropped."""
        return self.section.divided(engine.plan.layout_of(self.field)).owned

    def boxes(self, engine: Engine) -> list[Shape]:
        """The same without these axes, of the places that have any."""
        return [self.kept(box) for box in self.owned(engine) if not box.empty]

    def lies(self, tile: Tile, box: Shape) -> Strided:
        """Where the cells at these positions are in a tile, without the axes that were dropped."""
        steps = [cells.step for cells in self.section.ranges]
        found = tile.strided(self.section.cells(box)).stepped(steps)
        return Strided(found.first, self._without(found.pitches), self._without(found.extent))

    def part(self, engine: Engine, place: int, box: Shape) -> Part:
        """The cells at these positions, which a place of this rank owns: a view, or a copy."""
        cells = section_of(engine, self.field, place, self.section, box)
        return Part(self, self.kept(box), cells.reshape(self.kept(box).extent))

    def plain(self, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Some cells as they are written: with one NaN, of its dtype."""
        with np.errstate(over="ignore"):
            return with_one_nan(cells).astype(self.dtype, copy=False)

    def _without(self, per_axis: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(n for n, gone in zip(per_axis, self.section.dropped) if not gone)


@dataclass(frozen=True)
class Part:
    """Cells of a box of positions of a variable.

    arrival: done when they are there, if they are on their way.  pool: whose memory they are
    in, if it is that of nobody else.
    """

    variable: Variable
    box: Shape
    cells: npt.NDArray[Any]
    arrival: Future[None] | None = None
    pool: Buffers | None = None

    def plain(self) -> npt.NDArray[Any]:
        """The cells as they are written."""
        return self.variable.plain(self.cells)

    def copied(self, buffers: Buffers) -> Part:
        """The same in memory of its own."""
        return Part(self.variable, self.box, buffers.copied(self.cells), pool=buffers)

    def arrived(self) -> Part:
        """Itself, when the cells are there."""
        if self.arrival is not None:
            self.arrival.result()
        return self

    def give(self) -> None:
        """Nobody needs the cells any more."""
        if self.pool is not None:
            self.pool.give(self.cells)


def parts_of(
    variables: Sequence[Variable], engine: Engine, most: int | None = None
) -> Iterator[Part]:
    """All cells of variables that the places of this rank own, place by place.

    most: rows of chunks at a time; None for all cells of a variable and a place at once.
    """
    for place in engine.executors:
        for one in variables:
            box = one.owned(engine)[place]
            for slab in _slabs(box, one.chunk[0] * most if most else None):
                yield one.part(engine, place, slab)


def variables_of(plan: Plan, fields: Sequence[str], wanted: Output) -> tuple[Variable, ...]:
    """What is written of some fields; ValueError or TypeError for what cannot be."""
    found, known = [], dict[str, Axis]()
    for name in _chosen(fields, wanted.fields):
        layout = plan.layout_of(name)
        place = place_of(plan.program, name, layout.domain.extent)
        section = _section(place, layout.domain.extent, wanted)
        half = place.half or (False,) * len(section.ranges)
        axes, at = [], {}
        for n, cells in enumerate(section.ranges):
            axis = place.axes.axes[n]
            along = _along(place, n, cells)
            if section.dropped[n]:
                at[axis] = along[0].item()
            else:
                spacing = place.axes.spacing[n] * abs(cells.step)
                axes.append(_shared(known, f"{axis}_half" if half[n] else axis, along, spacing))
        dtype = np.dtype(plan.program.field(name).dtype)
        if wanted.dtype is not None and dtype.kind == "f":
            dtype = np.dtype(wanted.dtype)
        chunk = _chunk(section, layout, dtype.itemsize)
        found.append(Variable(name, section, tuple(axes), at, dtype, chunk))
    taken = {*known, "step", "t"} & {one.field for one in found}
    if taken or {*known} & {"step", "t"}:
        both = ", ".join(sorted(taken or {*known} & {"step", "t"}))
        raise ValueError(
            f"output: {both} would be the name of a variable and of a coordinate; rename the field "
            f"or the axis"
        )
    return tuple(found)


def _chosen(fields: Sequence[str], wanted: tuple[str, ...] | None) -> list[str]:
    if wanted is None:
        return [*fields]
    found = []
    for name in wanted:
        parts = [one for one in fields if one == name or one.startswith(f"{name}_")]
        parts = [name] if name in parts else parts
        if not parts:
            raise ValueError(f"output: there is no field {name!r}; there are {', '.join(fields)}")
        found += parts
    return [*dict.fromkeys(found)]


def _section(place: Place, extent: tuple[int, ...], wanted: Output) -> Section:
    names = place.axes.axes
    strides = wanted.stride if not isinstance(wanted.stride, int) else {}
    for axis in strides:
        if axis not in names:
            raise ValueError(f"output: there is no axis {axis!r}; there are {', '.join(names)}")
    for axis, part in wanted.where.items():
        if isinstance(part, slice) and part.step is not None:
            raise ValueError(f"output: {axis}= is a slice with a step; give stride= for that")
    ranges, dropped = [], []
    for axis, chosen in zip(names, Selection(place, extent, wanted.where).chosen):
        stride = strides.get(axis, 1) if strides else wanted.stride
        ranges.append(range(int(chosen[0]), int(chosen[-1]) + 1)[:: int(stride)])   # type: ignore
        dropped.append(axis in wanted.where and not isinstance(wanted.where[axis], slice))
    if all(dropped):
        raise ValueError(
            "output: one cell alone is no array; leave an axis whole, or sample by run.record"
        )
    return Section(tuple(ranges), tuple(dropped))


def _along(place: Place, axis: int, cells: range) -> npt.NDArray[Any]:
    if place.grid is None:
        return np.array(cells, np.int64)
    return place.along(axis, 0, cells[-1] + 1)[cells.start :: cells.step]


def _shared(
    known: dict[str, Axis], name: str, along: npt.NDArray[Any], spacing: float
) -> Axis:
    """The axis of this name, or of one with a number, that has these cells."""
    own, number = name, 1
    while own in known and not np.array_equal(known[own].along, along):
        number += 1
        own = f"{name}_{number}"
    return known.setdefault(own, Axis(own, along, spacing))


def _chunk(section: Section, layout: Layout, itemsize: int) -> tuple[int, ...]:
    """Cells of a chunk along each axis that is kept: as places are cut, of a handy size."""
    owned = [one for one in section.divided(layout).owned if not one.empty]
    axes = [n for n, gone in enumerate(section.dropped) if not gone]
    whole = [section.extent[n] for n in axes]
    chunk = [max(one.extent[n] for one in owned) for n in axes]
    at = 0
    while math.prod(chunk) * itemsize > MOST_BYTES and max(chunk) > 1:
        if chunk[at] > 1:
            chunk[at] = -(-chunk[at] // 2)
        else:
            at += 1
    for n in reversed(range(len(axes))):
        while chunk[n] < whole[n] and math.prod(chunk) * itemsize < FEWEST_BYTES:
            chunk[n] = min(2 * chunk[n], whole[n])
    return tuple(chunk)


def _slabs(box: Shape, rows: int | None) -> Iterator[Shape]:
    """A box cut at multiples of so many rows; nothing of an empty one."""
    if box.empty:
        return
    if rows is None:
        yield box
        return
    first = box.lower[0]
    while first < box.upper[0]:
        end = min(box.upper[0], (first // rows + 1) * rows)
        yield Shape((first, *box.lower[1:]), (end, *box.upper[1:]))
        first = end
