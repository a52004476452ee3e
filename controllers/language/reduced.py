# SPDX-License-Identifier: MIT
"""Folds while a step is traced: one number of all cells, a leaf in the expressions that use it.

As soon as it is known which stage does the fold, a `Scalar` takes its place.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from controllers.language.half_points import Half
from controllers.program.expression import (
    Coordinate,
    Expression,
    Index,
    Outcome,
    Read,
    walk,
)
from controllers.program.fold import CONDITIONS, FoldKind
from controllers.program.interning import Known
from controllers.program.node import Constant, Given
from controllers.program.stored_values import replaced


class Reduced(Given):
    """A fold of values that lie at `half`: see `Fold`.

    beside: the fold whose cells it covers, None for those where its own operand is defined.
    everywhere: whether it covers cells that its step does not compute, too.
    """

    __slots__ = ("kind", "operand", "over", "half", "beside", "everywhere")
    _known: ClassVar[Known[Given]] = Known()

    kind: FoldKind
    operand: Expression
    over: Expression | None
    half: Half
    beside: Reduced | None
    everywhere: bool

    def __new__(
        cls,
        kind: FoldKind,
        operand: Expression,
        over: Expression | None,
        half: Half,
        beside: Reduced | None = None,
        everywhere: bool = False,
    ) -> Reduced:
        # it keeps them, so ids stay theirs
        key = kind, id(operand), id(over), half, id(beside), everywhere
        known = cls._known.get(key)
        found = None if known is None else known()
        if found is None:
            new = object.__new__(cls)
            parts = kind, operand, over, half, beside, everywhere
            for name, part in zip(cls.__slots__, parts):
                object.__setattr__(new, name, part)
            found = cls._known.keep(key, new)
        return found  # type: ignore[return-value]

    @property
    def count(self) -> Reduced:
        """How many cells take part."""
        return Reduced("sum", Constant(1), self.over, self.half, self)

    @property
    def value(self) -> Expression:
        """What stands for it in expressions: itself, or the condition that it holds."""
        return self != 0 if self.kind in CONDITIONS else self

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """What it is made of."""
        return (self.operand,) if self.over is None else (self.operand, self.over)


def folds_in(expressions: Iterable[Expression]) -> list[Reduced]:
    """The folds in expressions, and those of which their operands are made, these first."""
    found: dict[Reduced, None] = {}
    for node in walk(*expressions):
        if isinstance(node, Reduced) and node not in found:
            found |= dict.fromkeys(folds_in(node.expressions))
            found[node] = None
    return [*found]


def everywhere(node: Expression) -> Expression:
    """The same with folds that cover all cells, of a condition that says which a step computes."""
    found: dict[Expression, Expression] = {}
    for one in folds_in([node]):
        operand, *over = replaced(one.expressions, found)
        beside = None if one.beside is None else found[one.beside]
        assert beside is None or isinstance(beside, Reduced), "it takes the place of a fold"
        found[one] = Reduced(one.kind, operand, over[0] if over else None, one.half, beside, True)
    (whole,) = replaced([node], found)
    return whole


def is_number(node: Expression) -> bool:
    """Whether an expression is one number in all cells, made of scalars, folds and numbers."""
    return not any(isinstance(one, (Read, Index, Coordinate, Outcome)) for one in walk(node))
