# SPDX-License-Identifier: MIT
"""A stage's expression cut into what can be computed when: planes arrive one after another.

A cell reads its own field on several planes (its offsets along axis 0).  While plane r arrives,
the part of the expression that needs nothing beyond it is computed, for each of the planes of
targets that it is part of, and kept until the rest arrives.  So of a sum over 3 x 3 cells, in C
order, two partial sums are kept per cell, and only the arriving plane is read.

    plane      r-1            r              r+1              order of the sum
    target r   a + 4b + c     + 4d + 20e     + 4f + ... / 40
               kept           kept           done
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from controllers.expression import Constant, Expression, Operation, Read, Symbol, evaluate
from controllers.program import Stage

KEPT = "kept"   # the field of reads that stand for a kept value; no identifier is like it


class _Part(NamedTuple):
    """A subtree: when it is complete (the highest plane it reads; None: any time), and itself."""

    arrival: int | None
    tree: Expression


@dataclass(frozen=True)
class Value:
    """A value per cell that is kept for `depth` planes, the older ones too."""

    tree: Expression
    arrival: int    # complete when the plane of the target plus it has arrived
    depth: int
    raw: bool       # a cell of the arriving plane as it is


@dataclass(frozen=True)
class Pipeline:
    """What is computed when plane r arrives: the result of target plane r - lag, then `values`.

    A read of the field KEPT has the offset (number of the value, planes since it was computed).
    """

    result: Expression
    lag: int
    values: tuple[Value, ...]

    @classmethod
    def of(cls, stage: Stage, streams: bool) -> Pipeline:
        """That of a stage whose planes arrive along axis 0, or, not `streams`, all at once."""
        cut = _Cut(stage, streams)
        whole = evaluate(
            stage.expression, cut.read, lambda value: _Part(None, Constant(value)), cut.operation
        )
        values = [
            Value(tree, arrival, cut.depths[number], isinstance(tree, Read))
            for number, (arrival, tree) in enumerate(cut.kept)
        ]
        return cls(whole.tree, whole.arrival or 0, tuple(values))

    def order(self) -> list[tuple[int, Value]]:
        """The values with their numbers; each comes before those that it is computed from."""
        return sorted(enumerate(self.values), key=lambda pair: (pair[1].raw, -pair[1].arrival))


class _Cut:
    """Joins parts, bottom up; what is complete before its partner becomes a kept value."""

    def __init__(self, stage: Stage, streams: bool) -> None:
        self.field, self.streams, self.n_axes = stage.writes, streams, len(stage.shape)
        self.kept: list[tuple[int, Expression]] = []
        self.depths: list[int] = []
        self._raw: dict[tuple[int, ...], int] = {}

    def read(self, node: Read) -> _Part:
        return _Part(self._plane(node) if node.field == self.field else None, node)

    def operation(self, symbol: Symbol, left: _Part, right: _Part) -> _Part:
        arrivals = [part.arrival for part in (left, right) if part.arrival is not None]
        arrival = max(arrivals, default=None)
        trees = (self._until(arrival, part) for part in (left, right))
        return _Part(arrival, Operation(symbol, *trees))

    def _until(self, arrival: int | None, part: _Part) -> Expression:
        if arrival is None or part.arrival is None or part.arrival == arrival:
            return part.tree
        number, delay = self._number(part), arrival - part.arrival
        self.depths[number] = max(self.depths[number], delay)
        return Read(KEPT, (number, delay, *(0,) * (self.n_axes - 2)))

    def _number(self, part: _Part) -> int:
        """The number of a kept value; cells at one place of a plane are kept once."""
        assert part.arrival is not None
        tree, arrival = part.tree, part.arrival
        if isinstance(tree, Read) and tree.field == self.field:
            known = self._raw.setdefault(tree.offset[1:], len(self.kept))
            if known < len(self.kept):
                return known
        self.kept.append((arrival, tree))
        self.depths.append(0)
        return len(self.kept) - 1

    def _plane(self, node: Read) -> int:
        return node.offset[0] if self.streams else 0
