# SPDX-License-Identifier: MIT
"""Array expressions as programs: one stage that computes the cells of a box, no boundaries."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from controllers.array.source import Source
from controllers.array.term import Apply, Leaf, Number, Slid, Steps, Term, added
from controllers.program.boundary import KEEP, PERIODIC, Boundary
from controllers.program.expression import (
    Application,
    Constant,
    Expression,
    Index,
    Read,
    Scalar,
    where,
)
from controllers.program.offsets import Offsets
from controllers.program.program import Field, Program
from controllers.program.scalars import Parameter
from controllers.program.stage import Boundaries, Stage
from controllers.program.stage_check import Math
from hitmap.shape import Shape

TARGET, TEMPORARY = "target", "temporary"
PREFIX = "number_"      # of the arguments
Wall: TypeAlias = tuple[int, int]


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxStage(Stage):
    """A stage that computes the cells of a box, whatever it reads."""

    cells: Shape

    def updated(
        self, domain: Shape, periodic: tuple[bool, ...], boundaries: Boundaries | None = None
    ) -> Shape:
        """The box."""
        return self.cells


@dataclass(frozen=True)
class Assignment:
    """A term that goes to the cells of a target.

    sources: those that it reads, by the names of fields of the program.
    """

    program: Program
    target: Source
    sources: Mapping[str, Source]


def assignment(
    term: Term, target: Source, cells: Shape, periodic: Sequence[bool], walls: Sequence[Wall],
    math: Math,
) -> Assignment:  # fmt: skip
    """The program that gives the target's `cells` the values of `term`.

    walls: (axis, index) of cells where the target is 0, whatever it is given.  Where the target is
    read at other cells than the one that is written, its new values come by a temporary field.
    """
    lowering = _Lowering(cells.lower)
    value = lowering.expression(term)
    if lowering.offsets.get(target) == {(0,) * cells.n_axes}:   # in place
        lowering = _Lowering(cells.lower, target)
        value = lowering.expression(term)
    if value.is_condition:
        value = where(value, 1, 0)
    for axis, at in walls:
        if cells.lower[axis] <= at < cells.upper[axis]:
            value = where(Index(axis) == at, 0, value)
    names = lowering.names
    boundary = Boundary(tuple((PERIODIC, PERIODIC) if ring else (KEEP, KEEP) for ring in periodic))
    own = Field(TARGET, target.dtype, boundary, target.half)
    others = {source: name for source, name in names.items() if name != TARGET}
    fields = [own, *(Field(name, one.dtype, boundary, one.half) for one, name in others.items())]
    offsets = _offsets(set().union(*lowering.offsets.values()), cells.n_axes)
    stages: tuple[Stage, ...] = (BoxStage("assign", {TARGET: value}, offsets, cells=cells),)
    if target in others:
        fields.append(Field(TEMPORARY, target.dtype, boundary, target.half))
        here = ((0, 0),) * cells.n_axes
        copied = {TARGET: Read(TEMPORARY, (0,) * cells.n_axes)}
        stages = (
            BoxStage("assign", {TEMPORARY: value}, offsets, cells=cells),
            BoxStage("copy", copied, here, cells=cells),
        )
    scalars = {f"{PREFIX}{n}": Parameter(1.0) for n in range(len(term.numbers))}
    if {field.dtype for field in fields} <= {"uint8", "int16", "int32", "int64"}:
        math = "strict"     # as all arithmetic among integers
    program = Program("array", tuple(fields), stages, math, scalars=scalars)
    return Assignment(program, target, {name: source for source, name in others.items()})


class _Lowering:
    """Expressions of terms, for cells whose first one is `origin`."""

    def __init__(self, origin: Steps, target: Source | None = None) -> None:
        self.names: dict[Source, str] = {} if target is None else {target: TARGET}
        self.offsets: dict[Source, set[Steps]] = {}     # at which sources are read
        self._origin = origin
        self._n_numbers = 0

    def expression(self, term: Term) -> Expression:
        """Operands before their operation, the left one first, as `Term.numbers` has them."""
        return self._made(term, tuple(-first for first in self._origin))

    def _made(self, term: Term, steps: Steps) -> Expression:
        if isinstance(term, Slid):
            return self._made(term.term, added(steps, term.steps))
        if isinstance(term, Leaf):
            offset = added(steps, term.start)
            self.offsets.setdefault(term.source, set()).add(offset)
            return Read(self.names.setdefault(term.source, f"f{len(self.names)}"), offset)
        if isinstance(term, Number):
            return self._number(term)
        assert isinstance(term, Apply)
        return Application(term.symbol, *[self._made(one, steps) for one in term.operands])

    def _number(self, term: Number) -> Expression:
        if not term.numbers:
            return Constant(term.value)
        self._n_numbers += 1
        return Scalar(f"{PREFIX}{self._n_numbers - 1}")


def _offsets(found: set[Steps], n_axes: int) -> Offsets:
    """The hull of what is read and of the cell itself."""
    along = zip(*found, (0,) * n_axes)
    return tuple((min(steps), max(steps)) for steps in along)
