# SPDX-License-Identifier: MIT
"""Expressions: what one stage computes for one cell, as a graph whose equal nodes are one object.

A graph is built of reads at constant offsets, constants, values that are given
(`controllers.program.given`) and the functions of one table (`controllers.program.functions`);
operators and NumPy's functions on its nodes build larger ones (`controllers.program.node`).  It is
evaluated exactly as written: nothing is reordered, folded or contracted; but a node that is used
several times is computed once.  All walks are loops, not recursions, and linear in the number of
nodes: a sum over a 7x7x7x7 pattern is 2400 levels deep, and 60 levels of x + x are 2^60 paths.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import TypeVar

from controllers.program.element import Outcome
from controllers.program.functions import FUNCTIONS, SYMBOLS
from controllers.program.given import Coordinate, Index, Scalar
from controllers.program.node import (
    Application,
    Constant,
    Expression,
    Given,
    Node,
    Operand,
    Read,
    Symbol,
    ordered,
    where,
)

__all__ = [
    "Application", "SYMBOLS", "Constant", "Coordinate", "Expression", "Given", "Index", "Node",
    "Operand", "Outcome", "Read", "Scalar", "Symbol", "count", "evaluate", "evaluate_all", "flops",
    "reads", "walk", "where",
]  # fmt: skip

T = TypeVar("T")


def evaluate(
    expression: Expression,
    read: Callable[[Read], T],
    constant: Callable[[float], T],
    operation: Callable[..., T],
    shared: Callable[[T], T] | None = None,
    given: Callable[[Given], T] | None = None,
    outcome: Callable[[Outcome, Sequence[T]], T] | None = None,
) -> T:
    """The value of an expression, given what its leaves and its operations mean.

    The one walk that the reference (on arrays) and the generator (on text) share: each node once,
    operands before their operation, the left one first.  `operation` gets the symbol and the
    values of the operands; `shared` makes of the value of an operation that is used several times
    what is used instead; `given` is for scalars, indices and coordinates, where there may be some,
    `outcome` for what element functions set, with the values of all that these are given.
    A value is dropped after its last use.

    >>> tree = (Read("u", (0,)) + Read("u", (1,))) / 2
    >>> evaluate(tree, lambda read: f"u{read.offset[0]}", str, lambda s, a, b: f"({a} {s} {b})")
    '((u0 + u1) / 2)'
    """
    (value,) = evaluate_all((expression,), read, constant, operation, shared, given, outcome)
    return value


def evaluate_all(
    expressions: Sequence[Expression],
    read: Callable[[Read], T],
    constant: Callable[[float], T],
    operation: Callable[..., T],
    shared: Callable[[T], T] | None = None,
    given: Callable[[Given], T] | None = None,
    outcome: Callable[[Outcome, Sequence[T]], T] | None = None,
) -> list[T]:
    """The values of several expressions; what they share is computed once, see `evaluate`."""
    order = ordered(*expressions)
    left = Counter(expressions)     # uses to come
    left.update(chain.from_iterable(node.operands for node in order))
    values: dict[Expression, T] = {}
    for node in order:
        if isinstance(node, Read):
            values[node] = read(node)
        elif isinstance(node, Constant):
            values[node] = constant(node.value)
        elif isinstance(node, Given):
            values[node] = _of_given(node, values, given, outcome)
        else:
            value = operation(node.symbol, *[values[operand] for operand in node.operands])
            values[node] = shared(value) if shared and left[node] > 1 else value
        for operand in node.operands:
            left[operand] -= 1
            if not left[operand]:
                del values[operand]
    return [values[expression] for expression in expressions]


def _of_given(
    node: Given,
    values: Mapping[Expression, T],
    given: Callable[[Given], T] | None,
    outcome: Callable[[Outcome, Sequence[T]], T] | None,
) -> T:
    if isinstance(node, Outcome) and outcome is not None:
        return outcome(node, [values[operand] for operand in node.operands])
    if isinstance(node, Outcome) or given is None:
        raise ValueError(f"an expression cannot have {node} here; leave it out")
    return given(node)


def walk(*expressions: Expression) -> list[Expression]:
    """All nodes, each once, an operation before its operands, the left one first."""
    found: dict[Expression, None] = {}
    todo = [*reversed(expressions)]
    while todo:
        node = todo.pop()
        if node not in found:
            found[node] = None
            todo += node.operands[::-1]
    return [*found]


def reads(*expressions: Expression) -> tuple[Read, ...]:
    """The distinct reads, in order of first use.

    >>> reads(Read("u", (1,)) + Read("v", (0,)) * Read("u", (1,)))
    (Read(field='u', offset=(1,)), Read(field='v', offset=(0,)))
    """
    return tuple(node for node in walk(*expressions) if isinstance(node, Read))


def count(*expressions: Expression) -> Counter[Symbol]:
    """How many operations of each symbol there are; one that is used several times counts once.

    >>> sorted(count((Read("u", (0,)) + Read("u", (1,))) / 2).items())
    [('+', 1), ('/', 1)]
    """
    return Counter(node.symbol for node in walk(*expressions) if isinstance(node, Application))


def flops(operations: Counter[Symbol]) -> int:
    """What so many operations cost, as the table of functions says."""
    return sum(n * FUNCTIONS[symbol].flops for symbol, n in operations.items())
