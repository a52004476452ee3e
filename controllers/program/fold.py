# SPDX-License-Identifier: MIT
"""Folds: reductions over the cells that a stage computes, each to one number.

A sum is the exact sum of its operands, rounded once to float64, so its order does not matter: any
layout and any device give the same bits.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from controllers.program.expression import Expression, Node
from hitmap.argument import wrong
from hitmap.shape import Shape

FoldKind = Literal["sum", "min", "max", "argmin", "argmax", "any", "all"]
CONDITIONS = ("any", "all")     # the folds of conditions; all others are of numbers
EXTREMES = ("min", "max", "argmin", "argmax")   # which no cells have none of

# A cell's place in C order is one number: so many bits per axis, by the number of axes.
PLACE_BITS = {1: 62, 2: 31, 3: 20, 4: 15}


@dataclass(frozen=True, eq=False)
class Fold:
    """One number of all cells that a stage computes: `Fold("max", abs(Read("u", (0, 0))))`.

    operand: what is folded, at the values that fields have when the stage begins: a number, for
        "any" and "all" a condition.
    over: a condition; cells where it is false do not take part.
    What comes out is, for "min" and "max", of the operand's dtype; for "sum" a float64; for
    "argmin" and "argmax" the cell's number in C order, from the first of the domain on; for "any"
    and "all" True or False.  NaN wins, and the first cell in C order of equal ones, as in NumPy.
    Two folds are equal when they share the very same expression objects.

    bits: of the number in which kernels keep where a cell is, by axis; () for the usual ones.
    """

    kind: FoldKind
    operand: Expression
    over: Expression | None = None
    bits: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in get_args(FoldKind):
            kinds = ", ".join(get_args(FoldKind))
            raise ValueError(f"a fold is one of {kinds}, got {self.kind!r}; choose one")
        if not isinstance(self.operand, Node):
            raise wrong("the operand of a fold", "an expression", self.operand)
        if self.operand.is_condition != (self.kind in CONDITIONS):
            takes = "a condition" if self.kind in CONDITIONS else "a number"
            remedy = "compare it" if self.kind in CONDITIONS else "use where(condition, 1, 0)"
            raise ValueError(f"{self.kind!r} folds {takes}, got {self.operand}; {remedy}")
        if self.over is not None and not getattr(self.over, "is_condition", False):
            raise wrong("`over` of a fold", "a condition", self.over, "compare it, as u > 0")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fold) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[object, ...]:
        return self.kind, id(self.operand), id(self.over), self.bits

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The operand, and the condition if there is one."""
        return (self.operand,) if self.over is None else (self.operand, self.over)


def expressions_of(folds: Mapping[str, Fold]) -> tuple[Expression, ...]:
    """All expressions of several folds, in order."""
    return tuple(one for fold in folds.values() for one in fold.expressions)


def with_expressions(folds: Mapping[str, Fold], values: Sequence[Expression]) -> dict[str, Fold]:
    """The same folds of other expressions, in the order of `expressions_of`."""
    left: Iterator[Expression] = iter(values)
    return {
        name: replace(
            fold, operand=next(left), over=None if fold.over is None else next(left)
        )
        for name, fold in folds.items()
    }


def within(folds: Mapping[str, Fold], cells: Shape) -> dict[str, Fold]:
    """The same folds, with as many bits for where a cell is as these cells need.

    One text serves all but the longest boxes.

    >>> from controllers.program.expression import Read
    >>> folds = {"top": Fold("argmax", Read("u", (0, 0, 0)))}
    >>> [within(folds, Shape.of_extent((n, 9, 2)))["top"].bits for n in (1 << 20, 1 << 21)]
    [(), (21, 4, 1)]
    """
    usual = PLACE_BITS.get(cells.n_axes, 0)
    if max(cells.upper) <= 1 << usual:
        return dict(folds)
    bits = tuple(max(1, n - 1).bit_length() for n in cells.upper)
    return {name: replace(fold, bits=bits) for name, fold in folds.items()}
