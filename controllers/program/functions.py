# SPDX-License-Identifier: MIT
"""The one table of functions that expressions are made of: a new function is one row of FUNCTIONS.

The reference, the kernel generator, explain, the count of flops and the comments of kernels read
the table; none of them knows a function by name, but for the four operations of weighted sums.
`controllers.program.dtypes` says in which dtype a row is computed, `composed` what is written with
others.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from controllers.program import arithmetic, ranges
from controllers.program.function import ATOM as ATOM
from controllers.program.function import BEYOND as BEYOND
from controllers.program.function import (
    BY_SIZE,
    CONDITION,
    PRODUCT,
    SIGN,
    SUM,
)
from controllers.program.function import CHOICE as CHOICE
from controllers.program.function import Function as Function
from controllers.program.function import Integers as Integers
from controllers.program.function import Range as Range
from controllers.program.function import needed as needed
from controllers.program.function import strength as strength
from controllers.program.helpers import (
    FLOOR_DIVIDE,
    FLOOR_DIVIDE_WHOLE,
    REMAINDER,
    REMAINDER_WHOLE,
    SHIFT_LEFT,
    SHIFT_RIGHT,
    SIGN_OF,
    SIGN_OF_WHOLE,
    extreme,
)

FLOATS = ("float32", "float64")
INTEGERS = ("uint8", "int16", "int32", "int64")
DTYPES = FLOATS + INTEGERS
STORED = "stored"           # the value itself, which may be written to memory and read again
WIDENED = "widened"         # as int64, as patterns of weights compute; people need not see it
QUOTIENT = "quotient"       # truncated, of int64


def _comparison(symbol: str, numpy: Callable[..., Any]) -> Function:
    return Function(
        symbol, numpy, "comparison", f"{{0}}\n{symbol} {{1}}", CONDITION,
        integers=Integers(ranges.truth), gives_condition=True,
    )  # fmt: skip


def _combination(symbol: str, numpy: Callable[..., Any]) -> Function:
    return Function(
        symbol, numpy, "combination", f"{{0}}\n{symbol} {{1}}", CONDITION,
        integers=Integers(ranges.truth, wraps=True), conditions=(0, 1), gives_condition=True,
        flops=0,
    )  # fmt: skip


def _of_bits(symbol: str, name: str, numpy: Callable[..., Any]) -> Function:
    return Function(
        name, numpy, "bit operation", f"{{0}}\n{symbol} {{1}}", CONDITION, floats=False,
        integers=Integers(ranges.bits, wraps=True),
    )  # fmt: skip


def _shift(symbol: str, name: str, numpy: Callable[..., Any], integers: Integers) -> Function:
    return Function(
        name, numpy, "shift", f"{{0}}\n{symbol} {{1}}", CONDITION, floats=False, integers=integers
    )


def _rounding(name: str, numpy: Callable[..., Any], text: str = "") -> Function:
    """To a whole number; integers are whole."""
    return Function(
        name, numpy, "rounding", text or f"{name}({{0}})", notation=f"{name}({{0}})",
        integers=Integers(ranges.same, arithmetic.same, "{0}", wraps=True),
    )  # fmt: skip


def _test(name: str, numpy: Callable[..., Any]) -> Function:
    return Function(name, numpy, "comparison", f"{name}({{0}})", gives_condition=True)


def _of_the_driver(name: str, numpy: Callable[..., Any], text: str, noun: str = "") -> Function:
    """A function that drivers round differently."""
    return Function(
        name, numpy, noun or f"value of {name}", text, notation=f"{name}({text.split('(')[1]}",
        strict=False, of_integers=BY_SIZE,
    )  # fmt: skip


def _conversion(dtype: str) -> Function:
    return Function(
        dtype, getattr(np, dtype), "conversion", "{0}", notation=f"{dtype}({{0}})",
        converts=dtype, flops=0, vectors=True,
    )  # fmt: skip


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
        integers=Integers(ranges.products, wraps=True),
    ),
    Function(
        "/", np.divide, "division", "{0} / {1}", PRODUCT, chains=True, vectors=True, loose=True,
        of_integers="float64",
    ),
    # kernels divide as controllers.kgt.text.integer says
    Function(
        QUOTIENT, arithmetic.quotient, "division", "{0} / {1}", PRODUCT, chains=True, vectors=True,
        floats=False, of_integers="int64", integers=Integers(ranges.quotients),
    ),
    Function(
        "negative", np.negative, "negation", "-{0}", SIGN, flops=0,
        integers=Integers(lambda a: (-a[1], -a[0]), wraps=True),
    ),
    Function(
        "abs", np.absolute, "absolute value", "fabs({0})", notation="abs({0})", flops=0,
        vectors=True, integers=Integers(ranges.magnitudes, text="abs({0})"),
    ),
    Function("sqrt", np.sqrt, "square root", "sqrt({0})", loose=True, of_integers=BY_SIZE),
    Function(
        "reciprocal", np.reciprocal, "division", "1 / {0}", PRODUCT,
        notation="reciprocal({0})", loose=True, remedy="write 1 / x, which is a float64",
    ),
    Function(
        "minimum", np.minimum, "minimum", "kgt_minimum_VALUE({0},\n{1})",
        notation="minimum({0}, {1})",
        compute=arithmetic.minimum, helper=extreme("minimum", "<", ""),
        integers=Integers(
            lambda a, b: (min(a[0], b[0]), min(a[1], b[1])), np.minimum, "min({0},\n{1})"
        ),
    ),
    Function(
        "maximum", np.maximum, "maximum", "kgt_maximum_VALUE({0},\n{1})",
        notation="maximum({0}, {1})",
        compute=arithmetic.maximum, helper=extreme("maximum", ">", "!"),
        integers=Integers(
            lambda a, b: (max(a[0], b[0]), max(a[1], b[1])), np.maximum, "max({0},\n{1})"
        ),
    ),
    Function(
        "floor_divide", np.floor_divide, "division", "kgt_floor_divide_VALUE({0},\n{1})", PRODUCT,
        chains=True, notation="{0} // {1}", loose=True, helper=FLOOR_DIVIDE,
        integers=Integers(
            ranges.floors, text="kgt_floor_divide_VALUE({0},\n{1})", helper=FLOOR_DIVIDE_WHOLE
        ),
    ),
    Function(
        "remainder", np.remainder, "remainder", "kgt_remainder_VALUE({0},\n{1})", PRODUCT,
        chains=True, notation="{0} % {1}", helper=REMAINDER,
        integers=Integers(
            ranges.remainders, text="kgt_remainder_VALUE({0},\n{1})", helper=REMAINDER_WHOLE
        ),
    ),
    Function(
        "sign", np.sign, "sign", "kgt_sign_VALUE({0})", notation="sign({0})", helper=SIGN_OF,
        integers=Integers(ranges.signs, text="kgt_sign_VALUE({0})", helper=SIGN_OF_WHOLE),
    ),
    Function(
        "copysign", np.copysign, "sign", "copysign({0},\n{1})", notation="copysign({0}, {1})",
        of_integers=BY_SIZE, flops=0,
    ),
    _rounding("floor", np.floor),
    _rounding("ceil", np.ceil),
    _rounding("trunc", np.trunc),
    Function("rint", np.rint, "rounding", "rint({0})", of_integers=BY_SIZE),
    _comparison("<", np.less),
    _comparison("<=", np.less_equal),
    _comparison(">", np.greater),
    _comparison(">=", np.greater_equal),
    _comparison("==", np.equal),
    _comparison("!=", np.not_equal),
    _test("isnan", np.isnan),
    _test("isinf", np.isinf),
    _test("isfinite", np.isfinite),
    _combination("&", np.bitwise_and),
    _combination("|", np.bitwise_or),
    _combination("^", np.bitwise_xor),
    Function(
        "not", np.invert, "combination", "!{0}", SIGN, notation="~{0}",
        integers=Integers(ranges.truth, wraps=True), conditions=(0,), gives_condition=True, flops=0,
    ),
    _of_bits("&", "bitwise_and", np.bitwise_and),
    _of_bits("|", "bitwise_or", np.bitwise_or),
    _of_bits("^", "bitwise_xor", np.bitwise_xor),
    Function(
        "invert", np.invert, "bit operation", "~{0}", SIGN, floats=False,
        integers=Integers(ranges.inverted, wraps=True),
    ),
    _shift("<<", "left_shift", np.left_shift, Integers(
        ranges.anything, text="kgt_left_shift_VALUE({0},\n{1})", helper=SHIFT_LEFT
    )),
    _shift(">>", "right_shift", np.right_shift, Integers(
        ranges.shifted_right, text="kgt_right_shift_VALUE({0},\n{1})", helper=SHIFT_RIGHT
    )),
    Function(
        "where", np.where, "choice", "{0}\n? {1}\n: {2}", CHOICE,
        notation="where({0}, {1}, {2})", conditions=(0,), flops=0,
        integers=Integers(lambda c, a, b: (min(a[0], b[0]), max(a[1], b[1])), wraps=True),
    ),
    Function(
        STORED, arithmetic.itself, "stored value", "{0}", notation=f"{STORED}({{0}})", chains=True,
        flops=0, vectors=True, integers=Integers(ranges.same, wraps=True),
    ),
    *map(_conversion, DTYPES),
    Function(
        WIDENED, arithmetic.same, "conversion", "{0}", chains=True, converts="int64", flops=0,
        vectors=True,
    ),
    _of_the_driver("exp", np.exp, "exp({0})"),
    _of_the_driver("exp2", np.exp2, "exp2({0})"),
    _of_the_driver("expm1", np.expm1, "expm1({0})"),
    _of_the_driver("log", np.log, "log({0})"),
    _of_the_driver("log2", np.log2, "log2({0})"),
    _of_the_driver("log10", np.log10, "log10({0})"),
    _of_the_driver("log1p", np.log1p, "log1p({0})"),
    _of_the_driver("sin", np.sin, "sin({0})"),
    _of_the_driver("cos", np.cos, "cos({0})"),
    _of_the_driver("tan", np.tan, "tan({0})"),
    _of_the_driver("arcsin", np.arcsin, "asin({0})"),
    _of_the_driver("arccos", np.arccos, "acos({0})"),
    _of_the_driver("arctan", np.arctan, "atan({0})"),
    _of_the_driver("arctan2", np.arctan2, "atan2({0},\n{1})"),
    _of_the_driver("sinh", np.sinh, "sinh({0})"),
    _of_the_driver("cosh", np.cosh, "cosh({0})"),
    _of_the_driver("tanh", np.tanh, "tanh({0})"),
    _of_the_driver("hypot", np.hypot, "hypot({0},\n{1})"),
    _of_the_driver("cbrt", np.cbrt, "cbrt({0})"),
    Function(
        "power", np.power, "power", "pow({0},\n{1})", notation="power({0}, {1})", strict=False,
        remedy="write x**n with a whole number n from 1 to 16, 1 / x**n, or a square root",
    ),
)  # fmt: skip

FUNCTIONS: dict[str, Function] = {row.name: row for row in _ROWS}
SYMBOLS = ("+", "-", "*", "/")      # what weighted sums are made of
_ALSO = {np.logical_and: np.bitwise_and, np.logical_or: np.bitwise_or, np.logical_not: np.invert}


def function_of(numpy: Callable[..., Any], conditions: Sequence[bool] = ()) -> Function | None:
    """The row of what a user calls on operands that are `conditions` or not; None: there is none.

    >>> function_of(np.bitwise_and, (False, False)).name, function_of(np.bitwise_and).name
    ('bitwise_and', '&')
    """
    meant = _ALSO.get(numpy, numpy)     # type: ignore[call-overload]
    rows = [row for row in FUNCTIONS.values() if row.numpy is meant]
    return next((row for row in rows if row.takes == tuple(conditions)), rows[0] if rows else None)
