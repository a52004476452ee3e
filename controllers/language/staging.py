# SPDX-License-Identifier: MIT
"""What becomes of traced steps: stages, those of folds alone, scalars made of folds, repeats.

A fold that its own step uses is done in a stage before it; one that is only a result, or what `dt`
is made of, in the very stage that updates, if it covers the cells that this one computes.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import count
from operator import and_

from controllers.language.called import Called
from controllers.language.half_points import Half
from controllers.language.reduced import Reduced, folds_in
from controllers.language.step import Repeated, Step
from controllers.program.dtypes import given_dtype
from controllers.program.expression import (
    Application,
    Coordinate,
    Expression,
    Index,
    Read,
    Scalar,
    reads,
    where,
)
from controllers.program.field import Field
from controllers.program.fold import Fold
from controllers.program.location import by_location
from controllers.program.offsets import Offsets
from controllers.program.repeat import Repeat
from controllers.program.scalars import TIME_STEP
from controllers.program.stage import Stage
from controllers.program.stored_values import hull_of, replaced
from hitmap.shape import Shape

_LARGE = 1 << 20    # cells along an axis, more than any step reaches


@dataclass
class Staging:
    """Stages in order, each with its step; and the rules of scalars that are made of folds."""

    fields: Sequence[Field]
    shape: Sequence[int]    # of the grid, in cells
    taken: set[str]
    stages: list[tuple[Stage, Step]] = field(default_factory=list)
    rules: dict[str, Expression] = field(default_factory=dict)
    repeats: list[Repeat] = field(default_factory=list)
    _last: Repeated | None = None   # the last one that is repeated

    def __post_init__(self) -> None:
        self.n_axes = len(self.shape)
        self._boundaries = {one.name: one.boundary for one in self.fields}
        self._dtypes = {one.name: one.dtype for one in self.fields}
        cells = (False,) * self.n_axes
        self._halves = {one.name: one.half or cells for one in self.fields}
        self._domain = Shape.of_extent((_LARGE,) * self.n_axes)
        first = self.fields[0].boundary
        self._periodic = tuple(first.periodic(axis) for axis in range(self.n_axes))

    def add(self, traced: Called) -> None:
        """The stages of the next step."""
        dt = traced.numbers.get(TIME_STEP)
        folds = traced.folds
        names = self._names(folds, traced.numbers)
        scalars: dict[Expression, Expression] = {one: Scalar(name) for one, name in names.items()}
        of_dt = {} if dt is None else {dt: Scalar(TIME_STEP)}
        for name, node in traced.numbers.items():
            fold = _fold_of(node)
            if fold is None or names[fold] != name:
                (rule,) = replaced([node], scalars if name == TIME_STEP else scalars | of_dt)
                self.rules[name] = where(rule, 1, 0) if rule.is_condition else rule
        values = replaced(traced.updates.values(), scalars | of_dt)
        updates = dict(zip(traced.updates, values))
        own = Stage(traced.step.name, updates, self._hull(values)) if updates else None
        made = _Folding(self, traced, own, names, _used(traced))
        for one in folds:
            made.add(one, replaced(traced.parts(one), scalars | of_dt))
        first = len(self.stages)
        for stage in (*made.stages, *self._ends(own, traced.copies)):
            self.stages.append((self._named(stage), traced.step))
        if traced.within is not None:
            self._repeat(traced.within, first)

    def _ends(self, own: Stage | None, copies: Sequence[str]) -> Iterator[Stage]:
        """What copies the cells at the ends that `own` does not compute, nor changes."""
        found: dict[str, Expression] = {}
        for part in () if own is None else by_location(own, self._boundaries):
            inside = self._inside(part) if copies else None
            if inside is not None:
                found |= {
                    name: where(inside, Read(name, (0,) * self.n_axes), part.updates[name])
                    for name in copies if name in part.updates
                }  # fmt: skip
        if found and own is not None:
            yield Stage(f"{own.name}_ends", found, ((0, 0),) * self.n_axes)

    def _inside(self, stage: Stage) -> Expression | None:
        """The condition of the cells that a stage computes; None where these are all."""
        cells, half = self._cells(stage), self._halves[stage.home]
        bounds: list[Expression] = []
        for axis, n_cells in enumerate(self.shape):
            n_cells += half[axis] and not self._periodic[axis]
            low, left = cells.lower[axis], _LARGE - cells.upper[axis]
            bounds += [Index(axis) >= low] if low else []
            bounds += [Index(axis) < n_cells - left] if left else []
        return reduce(and_, bounds) if bounds else None

    def alone(self, name: str, fold: Fold, half: Half, step: str) -> Stage:
        """A stage of one fold, whose operand lies there; ValueError where no field does."""
        used = (read.field for read in reads(*fold.expressions))
        homes = [one for one in (*used, *self._halves) if self._halves[one] == half]
        if not homes:
            raise ValueError(
                f"step {step!r} folds values that lie where no field does; bring them to one, "
                f"by f.at(axis, 1/2)"
            )
        return Stage(step, {}, self._hull(fold.expressions), {name: fold}, like=homes[0])

    def joined(self, stage: Stage, one: Stage) -> Stage | None:
        """`stage` with the fold of another, which is of the same values; None for other cells."""
        both = replace(
            stage, offsets=_around(stage.offsets, one.offsets), folds={**stage.folds, **one.folds}
        )
        if self._halves[stage.home] != self._halves[one.home]:
            return None
        if not self._cells(both) == self._cells(stage) == self._cells(one):
            return None
        rounds = any(isinstance(node, Coordinate) for node in both.given)
        if rounds and given_dtype(both, self._dtypes) != given_dtype(stage, self._dtypes):
            return None
        return both

    def _cells(self, stage: Stage) -> Shape:
        first = by_location(stage, self._boundaries)[0]
        return first.updated(self._domain, self._periodic, self._boundaries)

    def _hull(self, expressions: Iterable[Expression]) -> Offsets:
        return hull_of(expressions, self.n_axes)

    def _names(
        self, folds: Sequence[Reduced], numbers: Mapping[str, Expression]
    ) -> dict[Expression, str]:
        """What each fold is called: as the result that it is, or else by a name of its own."""
        found: dict[Expression, str] = {}
        for name, node in numbers.items():
            fold = _fold_of(node)
            if name != TIME_STEP and fold is not None:
                found.setdefault(fold, name)
        for one in folds:
            if one not in found:
                names = (f"{one.kind}_{n}" for n in count(1))
                found[one] = next(name for name in names if name not in self.taken)
            self.taken.add(found[one])
        return found

    def _named(self, stage: Stage) -> Stage:
        """The stage, under a name that none has which does something else.

        Those that do the same have one name, so that one kernel computes them.
        """
        known = {one.name: one for one, _ in self.stages}
        names = (f"{stage.name}_{n}" if n > 1 else stage.name for n in count(1))
        named = (replace(stage, name=name) for name in names)
        return next(one for one in named if known.get(one.name, one) == one)

    def _repeat(self, within: Repeated, first: int) -> None:
        end = len(self.stages)
        if within is self._last:
            self.repeats[-1] = replace(self.repeats[-1], end=end)
        elif first < end:
            self._last = within
            known = [one.name for one in self.repeats]
            names = (f"{within.name}_{n}" if n > 1 else within.name for n in count(1))
            name = next(name for name in names if name not in known)
            self.repeats.append(
                Repeat(name, first, end, within.at_most, within.until, within.check_every)
            )


class _Folding:
    """The stages of one step: of folds alone, by how many folds they wait for, then its own."""

    def __init__(
        self,
        staging: Staging,
        traced: Called,
        own: Stage | None,
        names: Mapping[Expression, str],
        used: set[Reduced],
    ) -> None:
        self._staging, self._traced, self._own = staging, traced, own
        self._names, self._used = names, used
        self._before: dict[int, list[Stage]] = {}
        self._level: dict[Reduced, int] = {}

    @property
    def stages(self) -> list[Stage]:
        """All of them, in order."""
        before = [stage for _, stages in sorted(self._before.items()) for stage in stages]
        return before + ([] if self._own is None else [self._own])

    def add(self, one: Reduced, parts: Sequence[Expression]) -> None:
        """The next fold, made of `parts`, after those that it is made of."""
        inner = [self._level[other] for other in folds_in(self._traced.parts(one))]
        level = self._level[one] = 1 + max(inner, default=0)
        operand, *conditions = parts
        fold = Fold(one.kind, operand, reduce(and_, conditions) if conditions else None)
        name, step = self._names[one], self._traced.step.name
        stages = self._before.setdefault(level, [])
        if one.beside is not None:
            self._add_beside(name, fold, self._names[one.beside])
            return
        alone = self._staging.alone(name, fold, one.half, f"{step}_folds")
        if self._own is not None and one not in self._used:
            joined = self._staging.joined(self._own, alone)
            if joined is not None:
                self._own = joined
                return
        for at, stage in enumerate(stages):
            joined = self._staging.joined(stage, alone)
            if joined is not None:
                stages[at] = joined
                return
        stages.append(alone)

    def _add_beside(self, name: str, fold: Fold, other: str) -> None:
        """To the stage of another fold, which says what cells there are."""
        if self._own is not None and other in self._own.folds:
            self._own = replace(self._own, folds={**self._own.folds, name: fold})
        for stages in self._before.values():
            for at, stage in enumerate(stages):
                if other in stage.folds:
                    stages[at] = replace(stage, folds={**stage.folds, name: fold})


def _used(traced: Called) -> set[Reduced]:
    """The folds that updates or other folds need, so that they are done before."""
    parts = (part for one in traced.folds for part in traced.parts(one))
    found = {*folds_in([*traced.updates.values(), *parts])}
    found |= {one.beside for one in found if one.beside is not None}
    return found


def _fold_of(node: Expression) -> Reduced | None:
    """The fold that a number is, by itself or as a condition."""
    if isinstance(node, Reduced):
        return node
    if isinstance(node, Application) and isinstance(node.left, Reduced):
        return node.left if node is node.left.value else None
    return None


def _around(one: Offsets, other: Offsets) -> Offsets:
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, other))
