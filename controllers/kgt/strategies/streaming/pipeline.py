# SPDX-License-Identifier: MIT
"""A stage's expression, cut into what can be computed when planes arrive one after another.

A cell reads its own field on several planes (offsets along axis 0).  While plane r arrives, the
part of the expression that needs nothing beyond it is computed, for each of the planes that need
r, and kept until the rest arrives.  So of a sum over 3 x 3 cells in C order two partial sums are
kept per cell, and of the field only the arriving plane is looked at:

    plane        r - 1          r              r + 1            arrive
    target r     a + 4b + c     + 4d + 20e     + 4f + ... / 40
                 kept           kept           done
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controllers.program.expression import (
    Application,
    Constant,
    Expression,
    Read,
    Symbol,
    evaluate,
    reads,
)
from controllers.program.following import leading
from controllers.program.program import Stage

KEPT = "kept value"     # the field of reads that stand for one; no identifier is like it


class _Part(NamedTuple):
    """A subtree, complete when the plane of its target plus `arrival` arrives; None: any time."""

    arrival: int | None
    tree: Expression


@dataclass(frozen=True)
class Value:
    """A value per cell, computed when the plane of its target plus `arrival` arrives.

    It is kept for `depth` planes: so many of them at a time.  raw: a cell as it arrives.
    """

    tree: Expression
    arrival: int
    depth: int
    raw: bool


@dataclass(frozen=True)
class Pipeline:
    """What is computed when plane r arrives: the `result` of plane r - lag, then the `values`.

    A read of the field KEPT has the offset (number of the value, planes since it was computed).
    last, earlier: of a stage with a field that follows, the cells of plane r - lag and of plane
    r - 2 * lag, as they arrived: what that field is after this step, and what the next step reads.
    handed_late: items hand cells of a plane to each other so many planes after it has arrived.
    """

    result: Expression
    lag: int
    values: tuple[Value, ...]
    last: Expression | None = None
    earlier: Expression | None = None
    handed_late: int = 0

    @classmethod
    def of(cls, stage: Stage, streams: bool) -> Pipeline:
        """That of a stage whose planes arrive one by one, or, without `streams`, at once."""
        cut = _Cut(stage, streams)
        whole = evaluate(
            leading(stage).expression, cut.read, lambda value: _Part(None, Constant(value)),
            cut.operation, given=lambda node: _Part(None, node),
        )  # fmt: skip
        lag = cut.lag
        result = cut.until(lag, whole)
        last = earlier = None
        if stage.follows:
            arrived = cut.read(Read(cut.field, (0,) * cut.n_axes))
            last, earlier = cut.until(lag, arrived), cut.until(2 * lag, arrived)
        values = [
            Value(tree, arrival, cut.depths[number], isinstance(tree, Read))
            for number, (arrival, tree) in enumerate(cut.kept)
        ]
        return cls(result, lag, tuple(values), last, earlier, cut.handed_late)

    @property
    def center(self) -> int | None:
        """The number of the value that holds the cells of `lag` planes ago, if there is one."""
        for number, value in enumerate(self.values):
            if value.raw and value.depth >= self.lag and isinstance(value.tree, Read):
                if not any(value.tree.offset[1:]):
                    return number
        return None

    @property
    def n_kept(self) -> int:
        """Numbers that are kept per cell, at the edges of what is computed too."""
        return sum(value.depth for value in self.values) + (self.lag if self.center is None else 0)

    def order(self) -> list[tuple[int, Value]]:
        """The values with their numbers, each before those that it is computed from."""
        return sorted(enumerate(self.values), key=lambda pair: (pair[1].raw, -pair[1].arrival))


class _Cut:
    """Joins parts, bottom up; what is complete before its partner becomes a kept value."""

    def __init__(self, stage: Stage, streams: bool) -> None:
        lead = leading(stage)
        self.field, self.streams, self.n_axes = lead.writes, streams, len(stage.offsets)
        self.followers = stage.follows
        own = (read.offset[0] for read in lead.reads if read.field == self.field)
        self.lag = max([0, *own]) if streams else 0
        self.handed_late = self._handed_late(lead)
        self.kept: list[tuple[int, Expression]] = []
        self.depths: list[int] = []
        self._raw: dict[tuple[int, ...], int] = {}
        self._known: dict[Expression, int] = {}     # equal ones are one object

    def _handed_late(self, lead: Stage) -> int:
        """Where a field follows, an item keeps its own cells of a plane anyway, for long.

        If the cells beside them are read of one plane alone, as of a star, they are handed over
        when they are needed, and none of them is kept.
        """
        beside = {
            read.offset[0] for read in lead.reads
            if read.field == self.field and any(read.offset[1:])
        }  # fmt: skip
        if not self.followers or len(beside) != 1:
            return 0
        late = self.lag - beside.pop()
        return late if 0 < late <= 2 * self.lag else 0

    def read(self, node: Read) -> _Part:
        """A leaf: a cell of the stage's own field arrives with its plane."""
        if node.field in self.followers:    # it comes with the planes that are computed
            return _Part(self.lag, node)
        if node.field == self.field and self.handed_late and any(node.offset[1:]):
            return _Part(self.lag, node)
        if node.field != self.field:
            return _Part(None, node)
        return _Part(node.offset[0] if self.streams else 0, node)

    def operation(self, symbol: Symbol, *parts: _Part) -> _Part:
        """The operation takes place when all operands are complete."""
        arrivals = [part.arrival for part in parts if part.arrival is not None]
        arrival = max(arrivals, default=None)
        if arrival is None:
            return _Part(None, Application(symbol, *(part.tree for part in parts)))
        return _Part(arrival, Application(symbol, *(self.until(arrival, part) for part in parts)))

    def until(self, arrival: int, part: _Part) -> Expression:
        """The part at a later arrival: itself, or what is kept of it."""
        if part.arrival is None or part.arrival == arrival:
            return part.tree
        if self._is_late(arrival, part.tree):
            return evaluate(
                part.tree, lambda read: self._kept(arrival, self.read(read)), Constant,
                Application, given=lambda node: node,
            )
        return self._kept(arrival, part)

    def _is_late(self, arrival: int, tree: Expression) -> bool:
        """Whether a part is better computed when it is needed: of cells that are kept anyway.

        Where a field follows, these are the item's own ones of twice as many planes as `lag`.
        """
        return bool(self.followers) and all(
            node.field == self.field and not any(node.offset[1:])
            and 0 < arrival - node.offset[0] <= 2 * self.lag
            for node in reads(tree)
        )

    def _kept(self, arrival: int, part: _Part) -> Expression:
        """The part at a later arrival, as it was kept."""
        assert part.arrival is not None, "it is not there at any time"
        number, delay = self._number(part.arrival, part.tree), arrival - part.arrival
        self.depths[number] = max(self.depths[number], delay)
        return Read(KEPT, (number, delay, *(0,) * (self.n_axes - 2)))

    def _number(self, arrival: int, tree: Expression) -> int:
        """The number of a kept value; what arrives at one place of the plane is kept once."""
        if isinstance(tree, Read) and tree.field == self.field:
            known = self._raw.setdefault(tree.offset[1:], len(self.kept))
        else:
            known = self._known.setdefault(tree, len(self.kept))
        if known < len(self.kept):
            return known
        self.kept.append((arrival, tree))
        self.depths.append(0)
        return len(self.kept) - 1
