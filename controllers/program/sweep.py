# SPDX-License-Identifier: MIT
"""Sweeps: one parallel unit of work, as everything below a program sees it.

A *version* of a field is a value, not a buffer: the field after one of its writings within a
step.  A sweep uses versions, each by a map from the box that is written to the region that is
read, and makes new ones.  A sweep of several time steps computes its cells from what lies so many
times the reach around them, so that halos are exchanged once for all of them.
"""
from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

from controllers.program.expression import Expression
from controllers.program.fold import Fold, within
from controllers.program.following import leader
from controllers.program.items import items_of
from controllers.program.maps import Here, Map, Near, Row, map_of_items
from controllers.program.mirrors import NO_MIRRORS, Mirrors
from controllers.program.stage import Boundaries, Stage, around
from controllers.program.steps import (
    cells_of,
    grown,
    mirrors_of,
    offsets_read,
    own_offsets,
    without_folds,
)
from hitmap.shape import Shape


@dataclass(frozen=True)
class Version:
    """A field after so many of its writings within a step; 0 is the field as the step begins."""

    field: str
    number: int

    def __str__(self) -> str:
        return f"{self.field} after {self.number} writings" if self.number else self.field


@dataclass(frozen=True)
class Use:
    """A version that a sweep reads, and where, given the box that it writes."""

    version: Version
    map: Map


@dataclass(frozen=True)
class Update:
    """A version that a sweep makes, and the value of each of its cells."""

    version: Version
    expression: Expression


@dataclass(frozen=True)
class Sweep:
    """What is read, what is written, over which cells, and how many time steps at once.

    stage: whose expressions are computed.
    uses: no two of one field, since expressions read a field by its name.
    cells: those it computes, in the coordinates of launched boxes; the others keep their value.
        On a periodic axis, all that boxes in the domain need; with a rim, also those of it.
    mirrors: at the ends of `cells`, where several steps copy what lies behind in between.
    completes: whether it makes cells that the sweep before it, or those before it that complete
        that one, left out of the versions that they make; it has none in common with these.
    folding: of several steps, the stage with its folds, which are those of a launch of one step.
    """

    stage: Stage
    uses: tuple[Use, ...]
    updates: tuple[Update, ...]
    cells: Shape
    count: int = 1
    mirrors: Mirrors = NO_MIRRORS
    completes: bool = False
    folding: Stage | None = None

    @classmethod
    def of(
        cls,
        stage: Stage,
        cells: Shape,
        count: int = 1,
        newest: Mapping[str, int] | None = None,
        mirrors: Mirrors = NO_MIRRORS,
        shorter: Container[str] = (),
    ) -> Sweep:
        """That of `stage`, reading the newest versions, 0 where `newest` says nothing.

        shorter: the fields that do not have all of `cells`, so that cells outside are read of them
        even where each is read at the cell alone.
        ValueError where several steps cannot be one sweep.
        """
        known = newest or {}
        if stage.folds:
            stage = replace(stage, folds=within(stage.folds, cells))
        uses = tuple(
            Use(Version(field, known.get(field, 0)), _map(stage, field, count, field in shorter))
            for field in stage.fields_read
        )
        updates = tuple(
            Update(Version(field, known.get(field, 0) + 1), expression)
            for field, expression in stage.updates.items()
        )
        if count > 1 and stage.folds:
            plain = without_folds(stage)
            return cls(plain, uses, updates, cells, count, mirrors, folding=stage)
        return cls(stage, uses, updates, cells, count, mirrors)

    @classmethod
    def over(
        cls,
        stage: Stage,
        domain: Shape,
        periodic: tuple[bool, ...],
        count: int = 1,
        boundaries: Boundaries | None = None,
    ) -> Sweep:
        """That of `stage` alone, for boxes in `domain`."""
        cells = cells_of(stage, stage.updated(domain, periodic, boundaries), periodic, count)
        return cls.of(stage, cells, count, mirrors=mirrors_of(stage, boundaries or {}, count))

    @property
    def name(self) -> str:
        """What people call it."""
        return self.stage.name

    @property
    def writes(self) -> tuple[str, ...]:
        """The fields of which it makes versions."""
        return tuple(update.version.field for update in self.updates)

    @property
    def folds(self) -> Mapping[str, Fold]:
        """The numbers that it makes of all the cells that it computes, by name."""
        return self.whole.folds

    @property
    def whole(self) -> Stage:
        """The stage with all that it folds."""
        return self.folding or self.stage

    @property
    def leader(self) -> str:
        """The field that each of several steps computes."""
        return leader(self.whole)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it reads, and those that it writes."""
        return *(use.version.field for use in self.uses), *self.writes

    @property
    def is_temporary(self) -> bool:
        """Whether each place computes what it reads of it by itself, so that none is exchanged."""
        return bool(self.stage.rim)

    @property
    def base(self) -> Shape:
        """The cells for which it is computed: its own, less the rim around them."""
        return around(tuple((-low, -high) for low, high in self.stage.rim), self.cells)

    def of_place(self, owned: Shape) -> Shape:
        """The cells that a place computes which owns these."""
        return around(self.stage.rim, owned & self.base)

    def use(self, field: str) -> Use | None:
        """What it reads of `field`."""
        return next((use for use in self.uses if use.version.field == field), None)

    def written(self, field: str, over: Shape) -> Shape:
        """What it writes of a field where it computes `over`."""
        items = items_of(self.stage)
        return over if items is None else Row(items.kind_of[field].extent[1]).region(over)

    def where(self, field: str, over: Shape) -> Shape:
        """What is launched of a field, which it reads or writes, to compute `over`."""
        use = self.use(field)
        if use is None or items_of(self.stage) is None:
            return self.written(field, over)
        return use.map.region(over)

    def needed(self, over: Shape, n_left: int) -> Shape:
        """The cells to compute in a time step, if `n_left` steps after it are to compute `over`."""
        return grown(self.whole, over, n_left) & self.cells

    def read(self, use: Use, over: Shape) -> Shape:
        """A box that holds all cells of a used version that may be read to compute `over`."""
        if self.count == 1:
            return use.map.region(over)
        if use.version.field == self.leader:
            return grown(self.whole, over, self.count) & grown(self.whole, self.cells, 1)
        single = _map(self.whole, use.version.field, 1)
        return single.region(self.needed(over, self.count - 1))


def _map(stage: Stage, field: str, count: int, is_shorter: bool = False) -> Map:
    """Where `count` steps read `field` around a cell."""
    items = items_of(stage)
    if items is not None:
        return map_of_items(items, field)
    if count > 1:
        return Near(offsets_read(stage, field, count))
    offsets = own_offsets(stage, field)
    return Near(offsets) if is_shorter or any(map(any, offsets)) else Here()
