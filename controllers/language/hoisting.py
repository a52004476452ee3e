# SPDX-License-Identifier: MIT
"""Arithmetic among scalars alone is taken out of expressions: the host does it, once per step.

What is left of it in an expression is a scalar of its own.  A comparison of scalars becomes one that
is 1 or 0, so that it is decided in float64, too.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from controllers.program.expression import Constant, Expression, Operation, Scalar, where
from controllers.program.node import ordered


def hoisted(
    expressions: Mapping[str, Expression], name: Callable[[Expression], str]
) -> dict[str, Expression]:
    """The expressions with a scalar in place of all that is computed of scalars alone.

    `name` gives the name of the scalar that is to be what an expression says; the same one for the
    same expression.
    """
    roots = [*expressions.values()]
    order = ordered(*roots)
    alone = _of_scalars_alone(order)
    found: dict[Expression, Expression] = {}

    def rewritten(node: Expression) -> Expression:
        if node not in alone or not isinstance(node, Operation):
            return found.get(node, node)
        if node.is_condition:
            return Operation("!=", Scalar(name(where(node, 1, 0))), Constant(0))
        return Scalar(name(node))

    for node in order:
        if isinstance(node, Operation) and node not in alone:
            found[node] = Operation(node.symbol, *map(rewritten, node.operands))
    return {key: rewritten(root) for key, root in expressions.items()}


def _of_scalars_alone(order: Sequence[Expression]) -> set[Expression]:
    """Those of the nodes that read no field, index or coordinate, but some scalar."""
    numbers: set[Expression] = set()
    alone: set[Expression] = set()
    for node in order:
        if isinstance(node, Operation):
            if not numbers.issuperset(node.operands):
                continue
            if not alone.isdisjoint(node.operands):
                alone.add(node)
        elif isinstance(node, Scalar):
            alone.add(node)
        elif not isinstance(node, Constant):
            continue
        numbers.add(node)
    return alone
