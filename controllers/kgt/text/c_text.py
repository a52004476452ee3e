# SPDX-License-Identifier: MIT
"""C text of a value: how tightly it binds, where its line may be broken; how texts are joined."""
from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from controllers.kgt.text.lanes import Lanes
from controllers.program.dtypes import CONDITION, Kind
from controllers.program.functions import ATOM, Function, needed, strength

_OPERAND = re.compile(r"\{(\d)\}")


class Text(NamedTuple):
    """C text of a value, in parts between which a line may be broken.

    binding: how tightly its outermost operation binds.  n_leaves: reads and constants in it.
    constant: the value of one.  truth: it is an int that says yes or no, not a number.
    kind: what value it is.  type_name: of the C text, whose value stands for that one: an unsigned
    type, for signed integers of as many bits.  A weak constant has no text yet.
    """

    parts: tuple[str, ...]
    binding: int
    n_leaves: int
    constant: float | None = None
    truth: bool = False
    kind: Kind = CONDITION
    type_name: str = "int"

    @property
    def is_number(self) -> bool:
        """Whether it is a plain number, whose text depends on what it meets."""
        return self.kind.weak and self.constant is not None


class _Form(NamedTuple):
    """The text of a function, cut at its operands; all in parts."""

    operands: tuple[tuple[list[str], int, int], ...]    # the text before; number; how tight
    rest: list[str]
    binding: int


def plus(number: int) -> str:
    """C text that adds a number; none where that is 0.

    >>> plus(2), plus(-2), plus(0)
    (' + 2', ' - 2', '')
    """
    return f" {'-' if number < 0 else '+'} {abs(number)}" if number else ""


def joined(function: Function, text: str, operands: Sequence[Text]) -> Text:
    """A text of a function with its operands put in, in parentheses where they bind too loosely."""
    form = _form(function, text)
    parts: list[str] = []
    last, n_leaves = "", 0      # the part that is not complete yet
    for before, number, least in form.operands:
        operand = operands[number]
        n_leaves += operand.n_leaves
        last = _continued(parts, last, before)
        own = operand.parts if operand.binding >= least else _standing(operand, least)
        last = _continued(parts, last, own)
    parts.append(_continued(parts, last, form.rest))
    return Text(tuple(parts), form.binding, n_leaves, truth=function.gives_condition)


def _continued(parts: list[str], last: str, further: Sequence[str]) -> str:
    """The last part of a text that goes on with further ones; `parts` get those before it."""
    if len(further) == 1:
        return last + further[0]
    parts.append(last + further[0])
    parts += further[1:-1]
    return further[-1]


def converted(type_name: str, text: Text, lanes: Lanes) -> Text:
    """The value in another type."""
    before, after = lanes.conversion(type_name)
    parts = text.parts if after else _standing(text, ATOM)
    parts = (before + parts[0], *parts[1:])
    parts = (*parts[:-1], parts[-1] + after)
    return Text(parts, ATOM, text.n_leaves, kind=text.kind, type_name=type_name)


@lru_cache(maxsize=256)
def _form(function: Function, text: str) -> _Form:
    *pairs, rest = _OPERAND.split(text)
    operands = tuple(
        (before.split("\n"), int(number), needed(function, text, int(number)))
        for before, number in zip(pairs[::2], pairs[1::2])
    )
    return _Form(operands, rest.split("\n"), strength(function, text))


def _standing(text: Text, binding: int) -> tuple[str, ...]:
    """Its parts, where it must bind so tightly."""
    if text.binding >= binding:
        return text.parts
    opened = (f"({text.parts[0]}", *text.parts[1:])
    return (*opened[:-1], f"{opened[-1]})")
