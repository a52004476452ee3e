# SPDX-License-Identifier: MIT
"""One step of the reference, on whole arrays: its stages, folds, repeats, and what lies outside."""
from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.program.boundary import Boundary
from controllers.program.dtypes import given_dtype
from controllers.program.expression import Given, Read
from controllers.program.extension import Line
from controllers.program.fold_values import Result, operands, results_of
from controllers.program.offsets import Offsets
from controllers.program.program import Program
from controllers.program.repeat import Repeat
from controllers.program.scalars import TIME, TIME_STEP
from controllers.program.stage import Stage
from controllers.program.surroundings import Surroundings
from controllers.program.values import values_of
from hitmap.shape import Shape

Arrays = dict[str, npt.NDArray[Any]]
Seen = Mapping[str, tuple[npt.NDArray[Any], tuple[int, ...]]]


class ReferenceStep:
    """A step of a program in the making.

    now: the fields; no array is changed that they were at first, but some are handed on.
    folds: what was folded so far.  counts: how often the stages of each repeat were done.
    number: of the step.  longest: `dt` is at most so long, where it is computed in the step.
    """

    def __init__(
        self,
        program: Program,
        before: Mapping[str, npt.NDArray[Any]],
        around: Surroundings,
        number: int,
        longest: float,
    ) -> None:
        self._program, self._before, self._around = program, before, around
        self._number, self._longest = number, longest
        self.now: Arrays = dict(before)
        self.folds: dict[str, Result] = {}
        self.counts: dict[str, int] = {}

    def run(self) -> None:
        """Do all of it."""
        repeats = {one.first: one for one in self._program.repeats}
        number = 0
        while number < len(self._program.stages):
            if number in repeats:
                self._repeat(repeats[number])
                number = repeats[number].end
            else:
                self._stage(number)
                number += 1
        renames = self._program.renames
        self.now |= {new: self._before[old] for new, old in renames.items()}

    @property
    def results(self) -> dict[str, Result]:
        """Those of the program that are known by now."""
        known = self._around.numbers
        return {
            name: self.folds.get(name, known[name])
            for name in self._program.results if name in known
        }  # fmt: skip

    def _repeat(self, repeat: Repeat) -> None:
        for count in range(1, repeat.at_most + 1):
            for number in range(repeat.first, repeat.end):
                self._stage(number)
            self.counts[repeat.name] = count
            if repeat.asks(count) and repeat.holds(self._seen(count)):
                break

    def _seen(self, count: int) -> SimpleNamespace:
        time = self._around.numbers[TIME]
        return SimpleNamespace(**self.results, step=self._number, time=time, count=count)

    def _stage(self, number: int) -> None:
        program, positions = self._program, self._around.positions
        values: dict[str, tuple[Shape, npt.NDArray[Any]]] = {}
        folds: dict[str, Result] = {}
        for stage in program.by_location[number]:
            boundaries = program.boundaries
            box = stage.updated(positions.domain, positions.periodic, boundaries)
            made, found = _made(program, stage, box, self.now, self._around)
            values |= {field: (box, value) for field, value in made.items()}
            folds |= found
        now = self.now
        for field, (box, value) in values.items():  # only now: all updates read the old values
            now[field] = now[field].copy()
            now[field][box.slices(positions.domain.lower)] = value
        if folds:
            self.folds |= folds
            numbers = {name: float(value) for name, value in folds.items()}
            known = program.rules.after(self._around.numbers, numbers, self._longest)
            self._around.change(known)

    @property
    def dt(self) -> float:
        """How long it was."""
        return self._around.numbers.get(TIME_STEP, 0.0)


def _made(
    program: Program,
    stage: Stage,
    box: Shape,
    now: Mapping[str, npt.NDArray[Any]],
    around: Surroundings,
) -> tuple[Arrays, dict[str, Result]]:
    """What the cells of `box` become in the fields that a stage updates, and what it folds."""
    boundaries, periodic = program.boundaries, around.positions.periodic
    seen: Seen = {
        field: extended(
            now[field], field, boundaries[field], stage.ends(field, boundaries), around
        )
        for field in stage.fields_read
    }

    def read(node: Read) -> npt.NDArray[Any]:
        array, first = seen[node.field]
        return neighbours(array, box.shift(first), periodic, node)

    def given(node: Given) -> Any:
        return around.value(node, box, given_dtype(stage, program.dtypes))

    made = {
        field: values_of(expression, read, program.dtypes[field], given)
        for field, expression in stage.updates.items()
    }
    taken = operands(stage, box, read, given, program.dtypes)
    points = boundaries[stage.home].points(around.positions.domain, periodic)
    return made, results_of(taken, box, points)


def extended(
    array: npt.NDArray[Any],
    field: str,
    boundary: Boundary,
    ends: Offsets,
    around: Surroundings | None = None,
) -> tuple[npt.NDArray[Any], tuple[int, ...]]:
    """A field with the cells outside from the first to the last offset, and where it begins then.

    Axis 0 is extended first, then axis 1 over that, and so on.

    >>> corner = Boundary.of([("mirror", "keep"), ("fixed:9", "keep")], 2)
    >>> wide, first = extended(np.array([[1, 2], [3, 4]]), "u", corner, ((-1, 1), (-1, 1)))
    >>> wide.tolist(), first
    ([[9, 1, 2], [9, 1, 2], [9, 3, 4]], (1, 1))
    """
    first = [0] * array.ndim
    for axis, (low, high) in enumerate(ends):
        line = Line(field, axis, array.ndim, array.shape[axis], boundary.side(axis))
        below = max(0, -low) if line.has(-1) else 0
        above = max(0, high) if line.has(line.length) else 0
        if below or above:
            array = _longer(array, line, below, above, tuple(first), around)
        first[axis] = below
    return array, tuple(first)


def _longer(
    array: npt.NDArray[Any],
    line: Line,
    below: int,
    above: int,
    first: tuple[int, ...],
    around: Surroundings | None,
) -> npt.NDArray[Any]:
    """`array`, which has so many cells `first`, with more below and above along one axis."""
    box, dtype = Shape.of_extent(array.shape).shift(tuple(-n for n in first)), str(array.dtype)
    slabs = {at: array.take([at], line.axis) for at in range(line.length)}

    def slab(at: int) -> npt.NDArray[Any]:
        if at not in slabs:
            stage, here = line.stage(at), box.slab(line.axis, at, at + 1)
            real = given_dtype(stage, dtype)
            given = None if around is None else partial(around.value, box=here, dtype=real)
            made = values_of(
                stage.expression, lambda r: slab(at + r.offset[line.axis]), dtype, given
            )
            slabs[at] = np.broadcast_to(made, slabs[0].shape)
        return slabs[at]

    return np.concatenate([slab(at) for at in range(-below, line.length + above)], line.axis)


def neighbours(
    array: npt.NDArray[Any], box: Shape, periodic: tuple[bool, ...], read: Read
) -> npt.NDArray[Any]:
    """What the cells of `box` see in `array` at the offset of `read`; a periodic axis wraps.

    >>> neighbours(np.array([1, 2, 3]), Shape((0,), (3,)), (True,), Read("u", (-1,))).tolist()
    [3, 1, 2]
    """
    ends = zip(box.lower, box.upper, read.offset)
    indices = [np.arange(lower + step, upper + step) for lower, upper, step in ends]
    for axis, wraps in enumerate(periodic):
        if wraps:
            indices[axis] %= array.shape[axis]
    seen: npt.NDArray[Any] = array[np.ix_(*indices)]
    return seen
