# SPDX-License-Identifier: MIT
"""Intermediate values that may be computed once per cell, written to memory, and read again."""
from __future__ import annotations

from typing import TypeVar

from controllers.language.struct import Struct, of_parts
from controllers.language.value import Value
from controllers.program.expression import Application, Read
from controllers.program.functions import STORED
from controllers.program.node import ordered
from hitmap.argument import wrong

V = TypeVar("V", Value, Struct)


def stored(expression: V) -> V:
    """The expression, whose values may be kept in memory for the neighbours that use them.

    That never changes a bit, also beyond the grid: there it is the expression of its inputs,
    extended by their rules.  Whether it pays is decided when the program is planned, or by
    `Computation(..., stored=)` (docs/programs.md).  A struct is stored component by component; what
    reads no field is nothing to keep.
    """
    if isinstance(expression, Struct):
        return of_parts(stored, expression)
    if not isinstance(expression, Value):
        raise wrong("stored", "what is computed of fields", expression, "leave numbers as they are")
    node = expression.node
    if node.is_condition:
        raise wrong("stored", "numbers", expression, "choose them by np.where(condition, 1, 0)")
    if isinstance(node, Read) or not any(isinstance(one, Read) for one in ordered(node)):
        return expression
    kept = Application(STORED, node)
    return Value(kept, expression.places, expression.depth + 1, expression.half)
