# SPDX-License-Identifier: MIT
"""What a stage computes in rows without the cells that it singles out, as `ct.point` does.

There `where(index == number & ..., one, other)` is `other`, by which the rest may be
computed in vectors.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from controllers.kgt.text.analysis import in_vectors
from controllers.kgt.text.given import given_text
from controllers.program.dtypes import Dtypes, dtype_of
from controllers.program.expression import Application, Constant, Expression, Index
from controllers.program.functions import FLOATS
from controllers.program.node import ordered
from controllers.program.program import Stage
from controllers.program.stored_values import replaced


def elsewhere(stage: Stage, dtypes: Dtypes, place: str = "item") -> tuple[Stage, str] | None:
    """The stage in the other rows, of floats and in vectors, and C text: whether a row is none.

    None where it singles out no cells, or would not be in vectors for that.  place: as in
    `given_text`.

    >>> from controllers.program.expression import Read, where
    >>> at = where((Index(0) == 7) & (Index(1) == 9), 1, 0)
    >>> stage = Stage("s", {"u": Read("u", (0, 0)) + 0.5 * at}, ((0, 0), (0, 0)))
    >>> found = elsewhere(Stage("s", {"u": Read("u", (0, 0)) * at}, ((0, 0), (0, 0))), "float32")
    >>> found[0].expression, found[1]
    (<Read * Constant>, '(lower_0 + item_0) == 7')
    >>> elsewhere(stage, "float32") is None     # 0.5 * 0: what is made of numbers alone is left
    True
    """
    if stage.rim or any(dtype_of(dtypes, field) not in FLOATS for field in stage.updates):
        return None
    rows: dict[Expression, str] = {}
    for node in ordered(*stage.updates.values()):
        outer = [one for one in _singled_out(node) if one[0].axis < len(stage.offsets) - 1]
        if outer:
            rows[node] = " && ".join(f"{given_text(i, stage, place)} == {n}" for i, n in outer)
    others: dict[Expression, Expression] = {node: node.operands[2] for node in rows}
    updates = replaced(stage.updates.values(), others)
    plain = replace(stage, updates=dict(zip(stage.updates, updates)))
    numbers = any(
        isinstance(node, Application) and all(isinstance(one, Constant) for one in node.operands)
        for node in ordered(*updates)
    )
    if not rows or numbers or not in_vectors(plain, dtypes):
        return None
    return plain, " || ".join(dict.fromkeys(rows.values()))


def _singled_out(node: Expression) -> list[tuple[Index, int]]:
    """The indices that an expression compares with numbers, where it is one that singles out."""
    if not (isinstance(node, Application) and node.symbol == "where"):
        return []
    condition, *values = node.operands
    if not all(isinstance(value, Constant) for value in values):
        return []
    found = [*_equal(condition)]
    return [one for one in found if one is not None] if None not in found else []


def _equal(node: Expression) -> Iterator[tuple[Index, int] | None]:
    """The index and the number of each comparison in a row of them; None for anything else."""
    if isinstance(node, Application) and node.symbol == "&":
        for operand in node.operands:
            yield from _equal(operand)
        return
    left, right = node.operands if isinstance(node, Application) and node.symbol == "==" else (0, 0)
    if isinstance(left, Index) and not left.offset and isinstance(right, Constant):
        yield (left, int(right.value)) if right.value == int(right.value) else None
    else:
        yield None
