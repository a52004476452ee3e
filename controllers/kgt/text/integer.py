# SPDX-License-Identifier: MIT
"""The integers of int64 in OpenCL C: which type to compute in, and its literals.

Signed overflow is undefined in C.  Where the ranges of all intermediate values fit `int` or
`long`, these are used as they are; else `ulong`, which wraps as int64 does, with the operands of
a division taken as signed.  A narrow type is also the faster one.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from controllers.kgt.text.lanes import Lanes
from controllers.program.dtypes import (
    Dtypes,
    Kind,
    Value,
    computed_number,
    dtype_of,
    dtype_of_outcome,
    kind_of_given,
    kind_of_number,
    signature,
)
from controllers.program.expression import Expression, Given, Outcome, Read, Symbol, evaluate_all
from controllers.program.functions import BEYOND, FUNCTIONS, INTEGERS, Range

_MOST_CELLS = 2**60     # which an index may count
_TYPES = (("int", 2**31), ("long", 2**63))


def quotient_for(lines: Sequence[str], lanes: Lanes) -> list[str]:
    """The function for divisors that are not constants, and an empty line, if `lines` call it.

    No signed overflow, no division by zero.
    """
    if not any("kgt_quotient(" in line for line in lines):
        return []
    many = lanes.type("ulong")
    divided = f"{lanes.converted('long', 'a')} / divisor"
    return f"""\
// The quotient of signed numbers, truncated toward zero; by 0 it is 0, by -1 it may wrap.
{many} kgt_quotient(const {many} a, const {many} b)
{{
    const {lanes.type("long")} divisor =
        b + 1 > 1 ? {lanes.converted("long", "b")} : ({lanes.type("long")})1;  // neither 0 nor -1
    return b == 0 ? ({many})0 : b + 1 == 0 ? -a : {lanes.converted("ulong", f"({divided})")};
}}

""".splitlines()


def wide_type(expressions: Sequence[Expression], dtypes: Dtypes) -> str:
    """The OpenCL C type to compute the int64 values of some expressions in.

    >>> from controllers.program.expression import Constant, Application, Read
    >>> u, v = (Application("widened", Read("u", (step,))) for step in (0, 1))
    >>> half = Application("quotient", u + v, Constant(2))
    >>> [wide_type([half], dtype) for dtype in ("uint8", "int32", "int64")]
    ['int', 'long', 'ulong']
    """
    values = _Ranges(dtypes)
    evaluate_all(
        expressions, values.read, values.number, values.operation,
        given=values.given, outcome=values.outcome,
    )  # fmt: skip
    ranges = values.of_int64
    low, high = min((low for low, _ in ranges), default=0), max((n for _, n in ranges), default=0)
    return next((name for name, limit in _TYPES if -limit <= low and high < limit), "ulong")


class _Ranged(NamedTuple):
    """A value, and of an integer or a condition what it may be."""

    value: Value
    values: Range


class _Ranges:
    """What the values of expressions may be; `of_int64` are the ranges of those in int64."""

    def __init__(self, dtypes: Dtypes) -> None:
        self._dtypes = dtypes
        self.of_int64: list[Range] = []

    def read(self, node: Read) -> _Ranged:
        dtype = dtype_of(self._dtypes, node.field)
        return self._ranged(Kind(dtype), _all_of(dtype))

    def given(self, node: Given) -> _Ranged:
        return self._ranged(kind_of_given(node, "float64"), (-_MOST_CELLS, _MOST_CELLS))

    def outcome(self, node: Outcome, operands: object) -> _Ranged:
        dtype = dtype_of_outcome(self._dtypes, node)
        return self._ranged(Kind(dtype), _all_of(dtype))

    def number(self, value: float) -> _Ranged:
        at = int(value) if isinstance(value, int) else 0
        return _Ranged(Value(kind_of_number(value), value), (at, at))

    def operation(self, symbol: Symbol, *operands: _Ranged) -> _Ranged:
        function = FUNCTIONS[symbol]
        dtype, kind = signature(function, [one.value.kind for one in operands])
        numbers = [one.value.number for one in operands]
        if kind.weak and None not in numbers:
            return self.number(computed_number(function, dtype, numbers))
        whole = [one for one in operands if one.value.kind.whole]
        if dtype == "int64" or function.converts == "int64":
            self.of_int64.extend(one.values for one in whole)
        if function.converts and whole:
            return self._ranged(kind, whole[0].values)
        if dtype in INTEGERS and function.integers is not None:
            return self._ranged(kind, function.integers.bounds(*(one.values for one in operands)))
        return self._ranged(kind, _all_of(kind.dtype) if kind.whole else (0, 1))

    def _ranged(self, kind: Kind, values: Range) -> _Ranged:
        """What wraps may be anything of its dtype, but for int64, whose type follows."""
        if kind.dtype == "int64":
            values = max(values[0], -BEYOND), min(values[1], BEYOND)
            self.of_int64.append(values)
        elif kind.whole:
            low, high = _all_of(kind.dtype)
            values = values if low <= values[0] and values[1] <= high else (low, high)
        return _Ranged(Value(kind), values)


def _all_of(dtype: str) -> Range:
    if dtype not in INTEGERS:
        return 0, 1
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def integer_literal(value: int, type_name: str) -> str:
    """C text of a constant in one of the types of `wide_type`.

    >>> integer_literal(3, "int"), integer_literal(-3, "ulong"), integer_literal(-2**31, "int")
    ('3', '(-3UL)', '(-2147483647 - 1)')
    """
    suffix = {"int": "", "long": "L", "ulong": "UL"}[type_name]
    if (type_name, -value) in _TYPES:   # its absolute value has no literal of the type
        return f"({value + 1}{suffix} - 1)"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"
