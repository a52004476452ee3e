# SPDX-License-Identifier: MIT
"""Stages: the parallel updates of which a step is made.

Which cells are computed follows from the *declared* offsets of a stage, which may be larger than
what it reads (EPSILOD's rule, DESIGN.md "Boundaries").
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from controllers.program.boundary import KEPT, Boundary
from controllers.program.element import Element
from controllers.program.expression import (
    Application,
    Expression,
    Given,
    Outcome,
    Read,
    Symbol,
    walk,
)
from controllers.program.fold import Fold, expressions_of, with_expressions
from controllers.program.identifier import check_identifier
from controllers.program.offsets import Offsets, check_offsets
from hitmap.argument import wrong
from hitmap.shape import Shape

Boundaries: TypeAlias = Mapping[str, Boundary]


@dataclass(frozen=True, eq=False)
class Stage:
    """One parallel update of one or several fields: `Stage("flow", {"u": new_u, "v": new_v}, box)`.

    `updates` says what each field gets, in each cell that is computed.  They are simultaneous: all
    of them read the values that the fields have when the stage begins.  `offsets` are declared: the
    inclusive first and last one per axis; every read must lie in them.
    `folds` are numbers, by name, that it makes of the same values in all cells that it computes;
    the stages after it may use each as a `Scalar`.  A stage may have folds alone.
    like: of a stage without updates, a field that lies where it computes; else the first it reads.
    `overwrites`: by updated field, the field whose memory its new values are stored in, cell by
    cell: it is read at the cell alone, and each cell is computed once.  Whoever plans says so.
    `rings`: axes beyond whose ends cells are computed again, which are given what they are given
    there, as the index.  Whoever plans says that, too.
    `follows`: by updated field, the one whose values of before it gets, in the cells that are not
    computed, too (`controllers.program.following`).
    Two stages are equal when they share the very same expression objects.
    """

    name: str
    updates: Mapping[str, Expression]
    offsets: Offsets
    folds: Mapping[str, Fold] = field(default_factory=dict)
    like: str = ""
    overwrites: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    rings: tuple[int, ...] = field(default=(), kw_only=True)
    follows: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        check_identifier(self.name, "stage")
        if not isinstance(self.updates, Mapping):
            raise wrong("updates", "a mapping of fields to expressions", self.updates)
        object.__setattr__(self, "updates", dict(self.updates))     # the caller's may change
        self._check_folds()
        check_offsets(self.offsets, f"stage {self.name!r}")
        for read in self.reads:
            inside = len(read.offset) == len(self.offsets) and all(
                low <= step <= high for step, (low, high) in zip(read.offset, self.offsets)
            )
            if not inside:
                raise ValueError(
                    f"stage {self.name!r} reads {read.field!r} at {read.offset}, outside its "
                    f"declared offsets {self.offsets}; declare larger ones"
                )

    def _check_folds(self) -> None:
        if not isinstance(self.folds, Mapping):
            raise wrong("folds", "a mapping of names to folds", self.folds)
        object.__setattr__(self, "folds", dict(self.folds))
        for name, fold in self.folds.items():
            check_identifier(name, "fold")
            if not isinstance(fold, Fold):
                raise wrong(f"fold {name!r}", "a Fold", fold, 'as Fold("max", expression)')
        if self.updates and self.like:
            raise ValueError(
                f"stage {self.name!r} computes where the fields lie that it updates; leave "
                f"like={self.like!r} out"
            )
        if not self.updates and not self.folds:
            raise ValueError(f"stage {self.name!r} updates no field; give at least one, or a fold")
        if not self.updates and not self.like and not self.reads:
            raise ValueError(
                f"stage {self.name!r} folds values of no field, {', '.join(self.folds)}; say where "
                f"its cells are by a field, as like='u'"
            )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stage) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        values = tuple((field, id(value)) for field, value in self.updates.items())
        folds, over = tuple(self.folds.items()), tuple(self.overwrites.items())
        more = self.like, self.rings, tuple(self.follows.items())
        return self.name, self.offsets, self.rim, values, folds, over, *more

    @cached_property
    def expressions(self) -> tuple[Expression, ...]:
        """What it computes: the values of its updates, then what it folds and where."""
        return *self.updates.values(), *expressions_of(self.folds)

    def with_expressions(self, values: Sequence[Expression]) -> Stage:
        """The same with others, in the order of `expressions`."""
        folds = with_expressions(self.folds, values[len(self.updates) :])
        return replace(self, updates=dict(zip(self.updates, values)), folds=folds)

    @cached_property
    def nodes(self) -> tuple[Expression, ...]:
        """All nodes of its expressions, each once; see `expression.walk`."""
        return tuple(walk(*self.expressions))

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Its distinct reads, in order of first use."""
        return tuple(node for node in self.nodes if isinstance(node, Read))

    @cached_property
    def given(self) -> tuple[Given, ...]:
        """The distinct scalars, indices, coordinates and outcomes that it uses, by first use."""
        return tuple(node for node in self.nodes if isinstance(node, Given))

    @cached_property
    def elements(self) -> tuple[Element, ...]:
        """The distinct element functions in OpenCL C that it calls, in order of first use."""
        found = (node.element for node in self.nodes if isinstance(node, Outcome))
        return tuple(dict.fromkeys(found))

    @cached_property
    def operations(self) -> Counter[Symbol]:
        """How many operations of each symbol one cell takes; what is shared counts once."""
        return Counter(node.symbol for node in self.nodes if isinstance(node, Application))

    @cached_property    # asked for at each read of an expression
    def fields_read(self) -> tuple[str, ...]:
        """The fields it reads, in order of first use; each once."""
        return tuple(dict.fromkeys(read.field for read in self.reads))

    @property
    def rim(self) -> Offsets:
        """How far beyond the cells of a place it computes, see `Part`; none."""
        return ()

    @property
    def summary(self) -> str:
        """For people: its name, what it sets, and what it folds."""
        sets = [f"sets {', '.join(self.updates)}"] if self.updates else []
        folds = [f"folds {', '.join(self.folds)}"] if self.folds else []
        return f"{self.name} {' and '.join(sets + folds)}"

    @property
    def stored(self) -> tuple[str, ...]:
        """The fields that it updates in memory; kernels also have others, which stand for folds."""
        return tuple(self.updates)

    @property
    def home(self) -> str:
        """A field that lies where it computes."""
        return next(iter(self.updates), self.like) or self.fields_read[0]

    @property
    def writes(self) -> str:
        """The field it updates; ValueError where there are several, or none."""
        return self._one_update[0]

    @property
    def expression(self) -> Expression:
        """What the field that it updates gets; ValueError where there are several, or none."""
        return self._one_update[1]

    @cached_property
    def _one_update(self) -> tuple[str, Expression]:
        if len(self.updates) > 1:
            raise ValueError(
                f"stage {self.name!r} updates several fields ({', '.join(self.updates)}), which "
                f"only stages of one field can do here; write one stage per field"
            )
        if not self.updates:
            folds = ", ".join(self.folds)
            raise ValueError(f"stage {self.name!r} updates no field, it folds {folds} alone")
        (update,) = self.updates.items()
        return update

    def updated(
        self, domain: Shape, periodic: tuple[bool, ...], boundaries: Boundaries | None = None
    ) -> Shape:
        """The cells this stage computes; see `Program.updated`.

        All fields that it updates lie at the same location (`Program.by_location`).
        """
        if not len(self.offsets) == len(domain.extent) == len(periodic):
            raise ValueError(
                f"stage {self.name!r} has {len(self.offsets)} axes, got a domain of "
                f"{len(domain.extent)} and {len(periodic)} boundaries; give one per axis"
            )
        known = boundaries or {}
        domain = known.get(self.home, KEPT).points(domain, periodic)
        ends = [
            tuple(0 if ring else self._margin(axis, upper, known) for upper in (0, 1))
            for axis, ring in enumerate(periodic)
        ]
        lower = tuple(first + margin for first, (margin, _) in zip(domain.lower, ends))
        upper = tuple(last - margin for last, (_, margin) in zip(domain.upper, ends))
        return Shape(lower, tuple(max(a, b) for a, b in zip(lower, upper)))

    def _margin(self, axis: int, upper: int, boundaries: Boundaries) -> int:
        """How many cells before an end are not computed."""
        wall = any((axis, upper) in boundaries.get(f, KEPT).walls for f in self.updates)
        ends = {field: self.ends(field, boundaries)[axis] for field in self.fields_read}
        past = {field: high if upper else -low for field, (low, high) in ends.items()}
        targets = (*self.updates,) or (self.home,)
        concerned = {f for f, n in past.items() if n > 0} or {*past} or {*targets}
        if all(f in boundaries and boundaries[f].side(axis)[upper].extends for f in concerned):
            return int(wall)
        low, high = self.offsets[axis]
        if len({boundaries.get(f, KEPT).half for f in (*past, *targets)}) > 1:
            return max(int(wall), *past.values())   # offsets are from one location to another
        return max(int(wall), high if upper else -low)

    def ends(self, field: str, boundaries: Boundaries) -> Offsets:
        """Per axis, how far the outermost cells read a field below its first and above its last.

        These are the first and the last offset where its location is that of what is computed;
        the last one of n + 1 points reads beyond n cells at the offset 0.
        """
        own, theirs = (boundaries.get(f, KEPT) for f in (self.home, field))
        offsets = [read.offset for read in self.reads if read.field == field]
        more = (own.is_half(a) - theirs.is_half(a) for a in range(len(self.offsets)))
        along = zip(*offsets)
        return tuple((min(steps), max(steps) + n) for steps, n in zip(along, more))


@dataclass(frozen=True, eq=False, kw_only=True)
class Part(Stage):
    """What remains of a stage, or what is computed before it: values that it reads again.

    whole: the stage as it is described, which says what cells are computed.
    rim: of temporary values, per axis the first and the last offset at which the cells of the
        whole need them: each place computes so far around its own cells, instead of an exchange.
    """

    whole: Stage
    rim: Offsets = ()

    @property
    def home(self) -> str:
        return self.whole.home

    def updated(
        self, domain: Shape, periodic: tuple[bool, ...], boundaries: Boundaries | None = None
    ) -> Shape:
        """The cells this part computes, with a rim also beyond the domain."""
        return around(self.rim, self.whole.updated(domain, periodic, boundaries))


def around(rim: Offsets, cells: Shape) -> Shape:
    """The cells at the offsets of a rim from some of `cells`; without a rim, they themselves.

    >>> str(around(((-1, 0), (0, 2)), Shape((0, 0), (4, 4))))
    '[-1:4, 0:6]'
    """
    if not rim or cells.empty:
        return cells
    low, high = zip(*rim)
    return cells.grow(tuple(-first for first in low), high)


def sample(stages: Iterable[Stage]) -> Shape:
    """A domain so large that each of some stages, of so many axes, computes some cells of it."""
    stages = [*stages]
    most = max(abs(step) for stage in stages for axis in stage.offsets for step in axis)
    return Shape.of_extent((3 + 2 * most,) * len(stages[0].offsets))
