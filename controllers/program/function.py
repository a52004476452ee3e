# SPDX-License-Identifier: MIT
"""What is known of a function of expressions: a row of the table in `program.functions`.

Values are numbers; conditions are what comparisons give, and are chosen by (`where`) and combined,
never computed with or stored.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

Range: TypeAlias = tuple[int, int]      # the first and the last value that an integer may have
BEYOND = 2**64                          # an end of a range that fits no integer type
# how tightly the outermost operation of a text binds; the operands of a call need not bind at all
CHOICE, CONDITION, SUM, PRODUCT, SIGN, ATOM = range(6)
BY_SIZE = "by size"     # integers become the float that NumPy gives integers of their size
_CALL = re.compile(r"\w+\(")


@dataclass(frozen=True)
class Integers:
    """The rule of a function for integers, whose result wraps to their dtype.

    bounds: the range of the result before it wraps, given those of the operands.  compute: on
    arrays of one integer dtype; None: as for floats.  text: OpenCL C on signed numbers; "": as for
    floats.  wraps: the text means the same for unsigned numbers that stand for signed ones.
    helper: OpenCL C before the kernel, with VALUE for the signed type and UVALUE for its unsigned
    counterpart; nothing in it overflows.
    """

    bounds: Callable[..., Range]
    compute: Callable[..., Any] | None = None
    text: str = ""
    wraps: bool = False
    helper: str = ""


@dataclass(frozen=True, eq=False)
class Function:
    """One row: what users call, and all that others must know of it.

    name: unique, a symbol or a word.  numpy: what users apply to expressions, directly or by an
    operator.  noun: what an application is called, in the singular.  text: OpenCL C on floats, {0}
    being the first operand, VALUE their type and a newline where a line may be broken.
    strength: how tightly text that is no call binds; chains: a left operand that binds as tightly
    needs no parentheses.
    notation: for people; "": as `text`.
    floats: whether floats are computed.  integers: None where integers are not; `of_integers` is
    what they become before: a dtype, or BY_SIZE, or "" where there is no such thing.
    converts: the dtype that it converts to.
    compute: on arrays of one dtype; None: `numpy` itself.
    conditions: which operands are conditions.  gives_condition: whether the result is one.
    flops: what it counts.  strict: it is correctly rounded everywhere, so that strict arithmetic
    may use it; remedy: what to write instead.  loose: in float32 that takes a build option.
    vectors: `text` is right for vectors of cells, too.  helper: OpenCL C before the kernel, with
    VALUE for the type.
    """

    name: str
    numpy: Callable[..., Any]
    noun: str
    text: str
    strength: int = ATOM
    chains: bool = False
    notation: str = ""
    floats: bool = True
    integers: Integers | None = None
    of_integers: str = ""
    converts: str = ""
    compute: Callable[..., Any] | None = None
    conditions: tuple[int, ...] = ()
    gives_condition: bool = False
    flops: int = 1
    strict: bool = True
    remedy: str = ""
    loose: bool = False
    vectors: bool = False
    helper: str = ""

    @property
    def for_people(self) -> str:
        """The notation, on one line."""
        return self.notation or self.text.replace("\n", " ")

    @cached_property
    def takes(self) -> tuple[bool, ...]:
        """Of each operand, whether it is a condition.

        >>> from controllers.program.functions import FUNCTIONS
        >>> FUNCTIONS["where"].takes
        (True, False, False)
        """
        n_operands = next(n for n in range(3, 0, -1) if f"{{{n - 1}}}" in self.text)
        return tuple(number in self.conditions for number in range(n_operands))

    def computed(self, whole: bool) -> Callable[..., Any]:
        """What computes it on arrays; `whole`: of integers, which it must be for."""
        on_integers = self.integers.compute if whole and self.integers else None
        return on_integers or self.compute or self.numpy


def strength(function: Function, text: str) -> int:
    """How tightly a text of a function binds.

    >>> from controllers.program.functions import FUNCTIONS
    >>> strength(FUNCTIONS["*"], "{0} * {1}") == PRODUCT, strength(FUNCTIONS["abs"], "abs({0})")
    (True, 5)
    """
    return ATOM if _CALL.match(text) else function.strength


def needed(function: Function, text: str, number: int) -> int:
    """How tightly an operand must bind to stand in the text without parentheses."""
    if _CALL.match(text):
        return CHOICE
    if number == 0 and function.strength == CHOICE:
        return SUM      # compilers warn of `a & b ? c : d`
    return function.strength + (number > 0 or not function.chains)
