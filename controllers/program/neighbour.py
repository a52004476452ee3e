# SPDX-License-Identifier: MIT
"""An expression at a neighbour of the cell: all that it reads, seen from there."""
from __future__ import annotations

from controllers.program.expression import (
    Application,
    Coordinate,
    Expression,
    Index,
    Outcome,
    Read,
)
from controllers.program.node import ordered
from controllers.program.offsets import MAX_OFFSET


def shifted(expression: Expression, offset: tuple[int, ...]) -> Expression:
    """`expression` as the cell at `offset` has it.

    Reads, indices and coordinates are of the cell so far away; numbers are the same there.

    >>> shifted(Read("u", (0, 1)), (2, 0))
    Read(field='u', offset=(2, 1))
    """
    if not any(offset):
        return expression
    found: dict[Expression, Expression] = {}
    for node in ordered(expression):
        if isinstance(node, Application):
            found[node] = Application(node.symbol, *[found[operand] for operand in node.operands])
        else:
            found[node] = _leaf(node, offset)
    return found[expression]


def _leaf(node: Expression, offset: tuple[int, ...]) -> Expression:
    if isinstance(node, Read):
        at = tuple(a + b for a, b in zip(node.offset, offset))
        if max(map(abs, at)) > MAX_OFFSET:
            raise ValueError(
                f"the neighbour {at} of {node.field!r} is more than {MAX_OFFSET} cells away; use "
                f"smaller offsets"
            )
        return Read(node.field, at)
    if isinstance(node, Outcome):
        raise ValueError(
            f"{node.name!r} of {node.element.name!r} is written in OpenCL C and known in its own "
            f"cell alone, so that it has no neighbours; make it a step before this one"
        )
    if isinstance(node, Index):
        return Index(node.axis, node.offset + offset[node.axis])
    if isinstance(node, Coordinate):
        return Coordinate(node.axis, node.half, node.offset + offset[node.axis])
    return node
