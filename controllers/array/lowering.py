# SPDX-License-Identifier: MIT
"""Array expressions as programs: one stage that computes the cells of a box, no boundaries."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from controllers.array.source import Source
from controllers.array.term import Apply, Leaf, Number, Slid, Steps, Term, added
from controllers.plan import Plan
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
from controllers.program.fold import Fold, FoldKind
from controllers.program.functions import INTEGERS
from controllers.program.offsets import Offsets
from controllers.program.program import Field, Program
from controllers.program.scalars import Parameter
from controllers.program.stage import Boundaries, Stage
from controllers.program.stage_check import Math
from hitmap.shape import Shape

TARGET, TEMPORARY, FOLD = "target", "temporary", "value"
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
class Lowered:
    """A program, and whose values the fields of it are, by name."""

    program: Program
    sources: Mapping[str, Source]


@dataclass(frozen=True)
class Setting:
    """What expressions of a computation are lowered for: its rings, its arithmetic."""

    periodic: tuple[bool, ...]
    math: Math

    def assignment(
        self, term: Term, target: Source, cells: Shape, walls: Sequence[Wall]
    ) -> Lowered:
        """The program that gives the target's `cells` the values of `term`.

        walls: (axis, index) of cells where the target is 0, whatever it is given.  Where the target
        is read at other cells than the one that is written, its new values come by a temporary
        field.
        """
        here = (0,) * cells.n_axes
        lowering = _Lowering(cells.lower)
        value = lowering.expression(term)
        if lowering.offsets.get(target) == {here}:      # in place
            lowering = _Lowering(cells.lower, target)
            value = lowering.expression(term)
        if value.is_condition:
            value = where(value, 1, 0)
        for axis, at in walls:
            if cells.lower[axis] <= at < cells.upper[axis]:
                value = where(Index(axis) == at, 0, value)
        offsets = lowering.declared
        names = {TARGET: target, **{n: s for s, n in lowering.names.items() if n != TARGET}}
        stages: tuple[Stage, ...] = (BoxStage("assign", {TARGET: value}, offsets, cells=cells),)
        more = []
        if target in lowering.names and lowering.names[target] != TARGET:
            more = [self._field(TEMPORARY, target)]
            stages = (
                BoxStage("assign", {TEMPORARY: value}, offsets, cells=cells),
                BoxStage("copy", {TARGET: Read(TEMPORARY, here)}, ((0, 0),) * len(here),
                         cells=cells),
            )  # fmt: skip
        return self._program(names, more, stages, term.numbers)

    def reads_elsewhere(self, term: Term, target: Source, cells: Shape) -> bool:
        """Whether cells of the target are read, at others than the one that is written."""
        if target not in term.sources:
            return False
        lowering = _Lowering(cells.lower)
        lowering.expression(term)
        return lowering.offsets[target] != {(0,) * cells.n_axes}

    def folding(self, kind: FoldKind, term: Term, over: Term | None, cells: Shape) -> Lowered:
        """The program that folds `term` over `cells`, or those where a condition holds."""
        lowering = _Lowering(cells.lower)
        value = lowering.expression(term)
        chosen = None if over is None else lowering.expression(over)
        names = {name: source for source, name in lowering.names.items()}
        folds = {FOLD: Fold(kind, value, chosen)}
        first = next(iter(names))
        stage = BoxStage("fold", {}, lowering.declared, folds, first, cells=cells)
        numbers = term.numbers if over is None else term.numbers + over.numbers
        return self._program(names, [], (stage,), numbers)

    def _program(
        self,
        names: Mapping[str, Source],
        more: Sequence[Field],
        stages: tuple[Stage, ...],
        numbers: Sequence[float],
    ) -> Lowered:
        fields = (*(self._field(name, source) for name, source in names.items()), *more)
        scalars = {f"{PREFIX}{n}": Parameter(1.0) for n in range(len(numbers))}
        whole = {field.dtype for field in fields} <= {*INTEGERS}
        math: Math = "strict" if whole else self.math
        program = Program("array", fields, stages, math, scalars=scalars)
        return Lowered(program, names)

    def _field(self, name: str, like: Source) -> Field:
        sides = tuple((PERIODIC, PERIODIC) if ring else (KEEP, KEEP) for ring in self.periodic)
        return Field(name, like.dtype, Boundary(sides), like.half)


def walls_of(plan: Plan, name: str) -> list[Wall]:
    """(axis, index) of the cells where a field is 0, whatever it is given."""
    domain, ends = plan.layout_of(name).domain, plan.program.field(name).boundary.walls
    return [(a, domain.upper[a] - 1 if upper else domain.lower[a]) for a, upper in ends]


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

    @property
    def declared(self) -> Offsets:
        """The hull of what is read and of the cell itself."""
        along = zip(*set().union(*self.offsets.values()), (0,) * len(self._origin))
        return tuple((min(steps), max(steps)) for steps in along)

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
