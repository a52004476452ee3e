# SPDX-License-Identifier: MIT
"""The one table of functions that expressions are made of: a new function is one row of FUNCTIONS.

The reference, the kernel generator, explain, the count of flops and the comments of kernels read
the table; none of them knows a function by name, but for the four operations of weighted sums.
Values are numbers of a field's dtype; conditions are what comparisons give, and are chosen by
(`where`) and combined, never computed with or stored.
"""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Range: TypeAlias = tuple[int, int]      # the first and the last value that an integer may have
BEYOND = 2**64                          # an end of a range that fits no integer type
# how tightly the outermost operation of a text binds; the operands of a call need not bind at all
CHOICE, CONDITION, SUM, PRODUCT, SIGN, ATOM = range(6)
_CALL = re.compile(r"\w+\(")


@dataclass(frozen=True)
class Integers:
    """The rule of a function for integers, which are computed as if in int64.

    bounds: the range of the result, given those of the operands.  compute: on arrays of int64;
    None: as for floats.  text: OpenCL C on signed numbers; "": as for floats.  wraps: the text
    means the same for unsigned numbers that stand for signed ones.
    """

    bounds: Callable[..., Range]
    compute: Callable[..., Any] | None = None
    text: str = ""
    wraps: bool = False


@dataclass(frozen=True, eq=False)
class Function:
    """One row: what users call, and all that others must know of it.

    name: unique, a symbol or a word.  numpy: what users apply to expressions, directly or by an
    operator.  noun: what an application is called, in the singular.  text: OpenCL C on floats, {0}
    being the first operand and a newline where a line may be broken.  strength: how tightly text
    that is no call binds; chains: a left operand that binds as tightly needs no parentheses.
    notation: for people; "": as `text`.  integers: None where it is for floats alone.
    compute: on arrays; None: `numpy` itself.
    conditions: which operands are conditions.  gives_condition: whether the result is one.
    flops: what it counts.  strict: it is correctly rounded everywhere, so that strict arithmetic
    may use it.  loose: in float32 that takes a build option.  vectors: `text` is right for vectors
    of cells, too.  helper: OpenCL C before the kernel, with VALUE for the type.
    """

    name: str
    numpy: Callable[..., Any]
    noun: str
    text: str
    strength: int = ATOM
    chains: bool = False
    notation: str = ""
    integers: Integers | None = None
    compute: Callable[..., Any] | None = None
    conditions: tuple[int, ...] = ()
    gives_condition: bool = False
    flops: int = 1
    strict: bool = True
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

        >>> FUNCTIONS["where"].takes
        (True, False, False)
        """
        n_operands = next(n for n in range(3, 0, -1) if f"{{{n - 1}}}" in self.text)
        return tuple(number in self.conditions for number in range(n_operands))

    def computed(self, whole: bool) -> Callable[..., Any]:
        """What computes it on arrays; `whole`: of int64, which it must be for."""
        on_integers = self.integers.compute if whole and self.integers else None
        return on_integers or self.compute or self.numpy


def strength(function: Function, text: str) -> int:
    """How tightly a text of a function binds.

    >>> strength(FUNCTIONS["*"], "{0} * {1}") == PRODUCT, strength(FUNCTIONS["abs"], "abs({0})")
    (True, 5)
    """
    return ATOM if _CALL.match(text) else function.strength


def needed(function: Function, text: str, number: int) -> int:
    """How tightly an operand must bind to stand in the text without parentheses."""
    if _CALL.match(text):
        return CHOICE
    return function.strength + (number > 0 or not function.chains)


def quotient(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The quotient of int64, truncated toward zero; wrapped where it overflows, 0 where b is 0.

    >>> quotient(np.array([7, -7, 7, -(2**63)]), np.array([2, 2, 0, -1])).tolist()
    [3, -3, 0, -9223372036854775808]
    """
    with np.errstate(all="ignore"):
        floor, rest = np.floor_divide(a, b), np.remainder(a, b)
    result: npt.NDArray[np.int64] = floor + ((rest != 0) & ((a < 0) != (b < 0)))
    return result


def minimum(a: Array, b: Array) -> Array:
    """The smaller one; NaN if one is, and -0 is below 0, which NumPy leaves open.

    >>> minimum(np.array([0., -0., 2.]), np.array([-0., 0., np.nan])).tolist()
    [-0.0, -0.0, nan]
    """
    return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))


def maximum(a: Array, b: Array) -> Array:
    """The larger one; NaN if one is, and 0 is above -0."""
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _extreme(name: str, sign: str, first: str) -> str:
    """C text of the function that `minimum` and `maximum` are."""
    return f"""\
// NaN if one is, and -0 is below 0.
VALUE kgt_{name}(const VALUE a, const VALUE b)
{{
    return isnan(a) || a {sign} b || (a == b && {first}signbit(a)) ? a : b;
}}
"""


def _products(left: Range, right: Range) -> Range:
    ends = [a * b for a in left for b in right]
    return min(ends), max(ends)


def _quotients(left: Range, right: Range) -> Range:
    divisor, last = right
    if divisor != last or divisor == 0:
        return -BEYOND, BEYOND
    ends = [abs(end) // abs(divisor) * (1 if (end < 0) == (divisor < 0) else -1) for end in left]
    return min(ends), max(ends)


def _magnitudes(values: Range) -> Range:
    low, high = values
    return max(low, -high, 0), max(-low, high)


def _truth(*operands: Range) -> Range:
    return 0, 1


def _comparison(symbol: str, numpy: Callable[..., Any]) -> Function:
    return Function(
        symbol, numpy, "comparison", f"{{0}}\n{symbol} {{1}}", CONDITION,
        integers=Integers(_truth), gives_condition=True,
    )  # fmt: skip


def _combination(symbol: str, numpy: Callable[..., Any]) -> Function:
    return Function(
        symbol, numpy, "combination", f"{{0}}\n{symbol} {{1}}", CONDITION,
        integers=Integers(_truth, wraps=True), conditions=(0, 1), gives_condition=True, flops=0,
    )  # fmt: skip


def _of_the_driver(name: str, numpy: Callable[..., Any], text: str, noun: str = "") -> Function:
    """A function that drivers round differently."""
    return Function(name, numpy, noun or f"value of {name}", text, strict=False)


_ROWS = (
    Function(
        "+", np.add, "addition", "{0}\n+ {1}", SUM, chains=True, vectors=True,
        integers=Integers(lambda a, b: (a[0] + b[0], a[1] + b[1]), wraps=True),
    ),
    Function(
        "-", np.subtract, "subtraction", "{0}\n- {1}", SUM, chains=True, vectors=True,
        integers=Integers(lambda a, b: (a[0] - b[1], a[1] - b[0]), wraps=True),
    ),
    Function(
        "*", np.multiply, "product", "{0} * {1}", PRODUCT, chains=True, vectors=True,
        integers=Integers(_products, wraps=True),
    ),
    # integers: kernels divide as controllers.kgt.text.integer says
    Function(
        "/", np.divide, "division", "{0} / {1}", PRODUCT, chains=True, vectors=True, loose=True,
        integers=Integers(_quotients, compute=quotient),
    ),
    Function(
        "negative", np.negative, "negation", "-{0}", SIGN, flops=0,
        integers=Integers(lambda a: (-a[1], -a[0]), wraps=True),
    ),
    Function(
        "abs", np.absolute, "absolute value", "fabs({0})", notation="abs({0})", flops=0,
        integers=Integers(_magnitudes, text="abs({0})"),
    ),
    Function("sqrt", np.sqrt, "square root", "sqrt({0})", loose=True),
    Function(
        "minimum", np.minimum, "minimum", "kgt_minimum({0},\n{1})", notation="minimum({0}, {1})",
        compute=minimum, helper=_extreme("minimum", "<", ""),
        integers=Integers(
            lambda a, b: (min(a[0], b[0]), min(a[1], b[1])), np.minimum, "min({0},\n{1})"
        ),
    ),
    Function(
        "maximum", np.maximum, "maximum", "kgt_maximum({0},\n{1})", notation="maximum({0}, {1})",
        compute=maximum, helper=_extreme("maximum", ">", "!"),
        integers=Integers(
            lambda a, b: (max(a[0], b[0]), max(a[1], b[1])), np.maximum, "max({0},\n{1})"
        ),
    ),
    _comparison("<", np.less),
    _comparison("<=", np.less_equal),
    _comparison(">", np.greater),
    _comparison(">=", np.greater_equal),
    _comparison("==", np.equal),
    _comparison("!=", np.not_equal),
    _combination("&", np.bitwise_and),
    _combination("|", np.bitwise_or),
    _combination("^", np.bitwise_xor),
    Function(
        "not", np.invert, "combination", "!{0}", SIGN, notation="~{0}",
        integers=Integers(_truth, wraps=True), conditions=(0,), gives_condition=True, flops=0,
    ),
    Function(
        "where", np.where, "choice", "{0}\n? {1}\n: {2}", CHOICE,
        notation="where({0}, {1}, {2})", conditions=(0,), flops=0,
        integers=Integers(lambda c, a, b: (min(a[0], b[0]), max(a[1], b[1])), wraps=True),
    ),
    _of_the_driver("exp", np.exp, "exp({0})"),
    _of_the_driver("log", np.log, "log({0})"),
    _of_the_driver("sin", np.sin, "sin({0})"),
    _of_the_driver("cos", np.cos, "cos({0})"),
    _of_the_driver("tan", np.tan, "tan({0})"),
    Function(
        "power", np.power, "power", "pow({0},\n{1})", notation="power({0}, {1})", strict=False
    ),
)  # fmt: skip

FUNCTIONS: dict[str, Function] = {row.name: row for row in _ROWS}
SYMBOLS = ("+", "-", "*", "/")      # what weighted sums are made of


def function_of(numpy: Callable[..., Any]) -> Function | None:
    """The row of what a user calls; None where there is none."""
    return next((row for row in FUNCTIONS.values() if row.numpy is numpy), None)
