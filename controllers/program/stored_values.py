# SPDX-License-Identifier: MIT
"""Stored values in expressions: where they are, which are the same elsewhere, what they cost."""
from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from controllers.program.expression import Application, Expression, Outcome, reads
from controllers.program.functions import FUNCTIONS, STORED, Function
from controllers.program.neighbour import shifted
from controllers.program.node import ordered
from controllers.program.offsets import Offsets

Offset: TypeAlias = tuple[int, ...]
DIVISION, OF_THE_DRIVER = 8, 16     # operations as which these count, since devices take so long


@dataclass(frozen=True)
class Worth:
    """What decides whether a value is stored.

    least: operations that this must save for each byte that it moves.
    together: cells that share what they compute, along the last axis and the last but two.
    """

    least: float
    together: int = 1

    def cells(self, n_axes: int) -> list[Offset]:
        """Where those lie that share what they compute."""
        shared = {n_axes - 1, max(0, n_axes - 3)}
        counts = [self.together if axis in shared else 1 for axis in range(n_axes)]
        return [*product(*map(range, counts))]


def depths_of(expressions: Iterable[Expression]) -> dict[Expression, int]:
    """The stored values in expressions, and how deep: 1 where they hold no others."""
    inside: dict[Expression, int] = {}
    found: dict[Expression, int] = {}
    for node in ordered(*expressions):
        inside[node] = 0
        if isinstance(node, Application):
            inside[node] = max(inside[operand] for operand in node.operands)
            if node.symbol == STORED:
                inside[node] += 1
                found[node] = inside[node]
    return found


def inside(node: Expression) -> Expression:
    """The value that is stored."""
    assert isinstance(node, Application), "a stored value"
    return node.left


def centred(node: Expression) -> tuple[Expression, Offset]:
    """A value where its reads lie around the cell, the same for all neighbours; and how far off.

    What functions in OpenCL C give is known in the cell itself alone.
    """
    if is_of_element(node):
        return node, (0,) * len(reads(node)[0].offset)
    offsets = zip(*(read.offset for read in reads(node)))
    centre = tuple((min(axis) + max(axis)) // 2 for axis in offsets)
    return shifted(node, tuple(-step for step in centre)), centre


def is_of_element(node: Expression) -> bool:
    """Whether functions in OpenCL C take part in it."""
    return any(isinstance(one, Outcome) for one in ordered(node))


def replaced(
    expressions: Iterable[Expression], found: Mapping[Expression, Expression]
) -> list[Expression]:
    """The same expressions, with others for some of their nodes."""
    expressions = [*expressions]
    made: dict[Expression, Expression] = {}
    for node in ordered(*expressions):
        if node in found:
            made[node] = found[node]
        elif isinstance(node, Application):
            made[node] = Application(node.symbol, *[made[operand] for operand in node.operands])
        else:
            made[node] = node
    return [made[expression] for expression in expressions]


def hull_of(expressions: Iterable[Expression], n_axes: int) -> Offsets:
    """Per axis the first and the last offset of the reads, and of the cell itself."""
    here = (0,) * n_axes
    offsets = zip(here, *(read.offset for read in reads(*expressions)))
    return tuple((min(axis), max(axis)) for axis in offsets)


def cost_of(expressions: Iterable[Expression]) -> int:
    """Operations per cell; those that take devices long count as several."""
    nodes = (node for node in ordered(*expressions) if isinstance(node, Application))
    return sum(_weight(FUNCTIONS[node.symbol]) for node in nodes)


def _weight(function: Function) -> int:
    if not function.strict:
        return OF_THE_DRIVER
    return DIVISION if function.loose and function.flops else function.flops
