# SPDX-License-Identifier: MIT
"""The same computed on fields of other names."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from controllers.program.expression import Application, Expression, Outcome, Read
from controllers.program.node import ordered
from controllers.program.stage import Part, Stage


def under_names(stage: Stage, names: Mapping[str, str]) -> Stage:
    """A stage that reads and writes fields of other names; those without one keep theirs.

    >>> push = Stage("push", {"u": Read("u", (0,)) - Read("old", (1,))}, ((0, 1),))
    >>> under_names(push, {"old": "older"}).reads
    (Read(field='u', offset=(0,)), Read(field='older', offset=(1,)))
    """
    if names.keys().isdisjoint((*stage.fields_read, *stage.updates, stage.home)):
        return stage
    made = stage.with_expressions(_renamed(stage.expressions, names))
    made = replace(
        made,
        updates={names.get(field, field): value for field, value in made.updates.items()},
        like=names.get(made.like, made.like),
        overwrites=_both(made.overwrites, names),
        follows=_both(made.follows, names),
    )
    return replace(made, whole=under_names(made.whole, names)) if isinstance(made, Part) else made


def _both(pairs: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {names.get(a, a): names.get(b, b) for a, b in pairs.items()}


def _renamed(expressions: Sequence[Expression], names: Mapping[str, str]) -> list[Expression]:
    made: dict[Expression, Expression] = {}
    for node in ordered(*expressions):
        if isinstance(node, Read):
            made[node] = Read(names.get(node.field, node.field), node.offset)
        elif isinstance(node, Application):
            made[node] = Application(node.symbol, *(made[operand] for operand in node.operands))
        elif isinstance(node, Outcome):
            right = node.specification
            made[node] = Outcome(
                node.element.renamed(names), node.name, [made[one] for one in node.arguments],
                None if right is None else _renamed([right], names)[0],
            )  # fmt: skip
        else:
            made[node] = node
    return [made[expression] for expression in expressions]
