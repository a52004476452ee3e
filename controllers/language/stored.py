# SPDX-License-Identifier: MIT
"""Intermediate values that are computed once per cell, and read by neighbours."""
from __future__ import annotations

from typing import TypeVar

from controllers.language.struct import Struct
from controllers.language.value import Value
from hitmap.argument import wrong

V = TypeVar("V", Value, Struct)


def stored(expression: V) -> V:
    """The expression itself, which is computed again wherever neighbours use it.

    It says that storing its values would be worth it; whether that is done never changes a bit, and
    so far it is not.
    """
    if not isinstance(expression, (Value, Struct)):
        raise wrong("stored", "what is computed of fields", expression, "leave numbers as they are")
    return expression
