# SPDX-License-Identifier: MIT
"""Integer arithmetic in OpenCL C, as if in int64: which type to compute in, and its literals.

Signed overflow is undefined in C.  Where the ranges of all intermediate values fit `int` or
`long`, these are used as they are; else `ulong`, which wraps as int64 does, with the operands of
a division taken as signed.  A narrow type is also the faster one.
"""
from __future__ import annotations

import numpy as np

from controllers.kgt.text.lanes import Lanes
from controllers.program.expression import Expression, Symbol, evaluate
from controllers.program.functions import BEYOND, FUNCTIONS, Range

_MOST_CELLS = 2**60     # which an index may count
_TYPES = (("int", 2**31), ("long", 2**63))


def quotient(lanes: Lanes) -> list[str]:
    """The function for divisors that are not constants: no signed overflow, no division by zero."""
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


def integer_type(expression: Expression, dtype: str) -> str:
    """The OpenCL C type to compute `expression` in, on fields of an integer `dtype`.

    >>> from controllers.program.expression import Read
    >>> u, v = Read("u", (0,)), Read("u", (1,))
    >>> [integer_type((u + v) / 2, dtype) for dtype in ("uint8", "int32", "int64")]
    ['int', 'long', 'ulong']
    """
    ranges: list[Range] = []
    info = np.iinfo(dtype)

    def noted(values: Range) -> Range:
        ranges.append((max(values[0], -BEYOND), min(values[1], BEYOND)))
        return ranges[-1]

    def operation(symbol: Symbol, *operands: Range) -> Range:
        rule = FUNCTIONS[symbol].integers
        assert rule is not None, f"a program refuses {symbol!r} on integers"
        return noted(rule.bounds(*operands))

    evaluate(
        expression,
        lambda read: noted((int(info.min), int(info.max))),
        lambda value: noted((int(value), int(value))),
        operation,
        given=lambda node: noted((-_MOST_CELLS, _MOST_CELLS)),
    )
    low, high = min(low for low, _ in ranges), max(high for _, high in ranges)
    return next((name for name, limit in _TYPES if -limit <= low and high < limit), "ulong")


def integer_literal(value: int, type_name: str) -> str:
    """C text of a constant in one of the types of `integer_type`.

    >>> integer_literal(3, "int"), integer_literal(-3, "ulong"), integer_literal(-2**31, "int")
    ('3', '(-3UL)', '(-2147483647 - 1)')
    """
    suffix = {"int": "", "long": "L", "ulong": "UL"}[type_name]
    if (type_name, -value) in _TYPES:   # its absolute value has no literal of the type
        return f"({value + 1}{suffix} - 1)"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"
