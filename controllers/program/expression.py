# SPDX-License-Identifier: MIT
"""Expression trees: what one stage computes for one cell.

A tree is built of reads at constant offsets, constants, and the four operations; `+ - * /` on its
nodes build larger ones.  It is evaluated exactly as written: nothing is reordered, folded or
contracted.  All walks here are loops, not recursions: a sum over a 7x7x7x7 pattern is a tree 2400
levels deep.
"""
from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeVar, Union, get_args

T = TypeVar("T")
Symbol = Literal["+", "-", "*", "/"]
SYMBOLS: tuple[Symbol, ...] = get_args(Symbol)


class Node:
    """What the three kinds of node share: the operators that build larger trees."""

    __slots__ = ()

    def __add__(self, other: Operand) -> Operation:
        return Operation("+", _node(self), _node(other))

    def __radd__(self, other: Operand) -> Operation:
        return Operation("+", _node(other), _node(self))

    def __sub__(self, other: Operand) -> Operation:
        return Operation("-", _node(self), _node(other))

    def __rsub__(self, other: Operand) -> Operation:
        return Operation("-", _node(other), _node(self))

    def __mul__(self, other: Operand) -> Operation:
        return Operation("*", _node(self), _node(other))

    def __rmul__(self, other: Operand) -> Operation:
        return Operation("*", _node(other), _node(self))

    def __truediv__(self, other: Operand) -> Operation:
        return Operation("/", _node(self), _node(other))

    def __rtruediv__(self, other: Operand) -> Operation:
        return Operation("/", _node(other), _node(self))


@dataclass(frozen=True)
class Read(Node):
    """The value of `field` at the cell that is computed plus `offset` (cells per axis)."""

    field: str
    offset: tuple[int, ...]


@dataclass(frozen=True)
class Constant(Node):
    """A finite number; where it is used it is rounded once to the dtype of the written field.

    Whole numbers are kept exactly, for integer fields.
    """

    value: float

    def __post_init__(self) -> None:
        if isinstance(self.value, float) and not math.isfinite(self.value):
            raise ValueError(f"a constant must be a finite number, got {self.value}; replace it")


# eq=False: comparing and hashing by value would recurse through deep trees; an operation is equal
# to itself alone.
@dataclass(frozen=True, eq=False, repr=False)
class Operation(Node):
    """One rounded operation on two operands, the left one evaluated first."""

    symbol: Symbol
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        if self.symbol not in SYMBOLS:
            raise ValueError(f"an operation is one of {' '.join(SYMBOLS)}, got {self.symbol!r}")

    def __repr__(self) -> str:  # shallow, for the same reason
        return f"<{type(self.left).__name__} {self.symbol} {type(self.right).__name__}>"


Expression = Union[Read, Constant, Operation]
Operand = Union[Node, float]


def _node(operand: Operand) -> Expression:
    if isinstance(operand, (Read, Constant, Operation)):
        return operand
    if isinstance(operand, (int, float)) and not isinstance(operand, bool):
        return Constant(operand)
    raise TypeError(f"an operand is a read, a constant, an operation or a number, got {operand!r}")


def evaluate(
    expression: Expression,
    read: Callable[[Read], T],
    constant: Callable[[float], T],
    operation: Callable[[Symbol, T, T], T],
) -> T:
    """The value of a tree, given what its leaves and its operations mean.

    The one walk that the reference (on arrays) and the generator (on text) share: operands before
    their operation, the left one first.

    >>> tree = (Read("u", (0,)) + Read("u", (1,))) / 2
    >>> evaluate(tree, lambda read: f"u{read.offset[0]}", str, lambda s, a, b: f"({a} {s} {b})")
    '((u0 + u1) / 2)'
    """
    todo: list[Expression | Symbol] = [expression]
    values: list[T] = []
    while todo:
        item = todo.pop()
        if isinstance(item, Operation):
            todo += (item.symbol, item.right, item.left)
        elif isinstance(item, Read):
            values.append(read(item))
        elif isinstance(item, Constant):
            values.append(constant(item.value))
        else:
            right = values.pop()
            left = values.pop()
            values.append(operation(item, left, right))
    (value,) = values
    return value


def walk(expression: Expression) -> Iterator[Expression]:
    """All nodes, an operation before its operands, the left one first."""
    todo = [expression]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, Operation):
            todo += (node.right, node.left)


def reads(expression: Expression) -> tuple[Read, ...]:
    """The distinct reads, in order of first use.

    >>> reads(Read("u", (1,)) + Read("v", (0,)) * Read("u", (1,)))
    (Read(field='u', offset=(1,)), Read(field='v', offset=(0,)))
    """
    return tuple(dict.fromkeys(node for node in walk(expression) if isinstance(node, Read)))


def count(expression: Expression) -> Counter[str]:
    """How many operations of each symbol the tree holds.

    >>> sorted(count((Read("u", (0,)) + Read("u", (1,))) / 2).items())
    [('+', 1), ('/', 1)]
    """
    return Counter(node.symbol for node in walk(expression) if isinstance(node, Operation))
