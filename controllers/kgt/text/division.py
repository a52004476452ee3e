# SPDX-License-Identifier: MIT
"""Correctly rounded division by a constant without a division instruction, where fma is fast.

    x / d  =  fma(high, x, low * x)       high + low: 1 / d in twice the precision

After Brisebarre, Muller and Raina 2004, doi:10.1109/TC.2004.37.  Before its last rounding the
quotient is wrong by less than 4 / 2^precision of a unit in the last place, so its bits can differ
from those of a division only where the exact quotient is that close to the middle between two
numbers.  Such x are few and found by modular arithmetic; a divisor for which one of them fails
is divided by as ever.  What holds for x holds for x times a power of two, unless something
underflows: cells below `least` in absolute value, 0 apart, are divided.  That high and low have
the same sign keeps the sign of zeros, and infinities.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import gcd

import numpy as np

from controllers.kgt.text.emitter import INDENT, OPENCL_TYPES, literal
from controllers.program.expression import Application, Constant, Expression
from controllers.program.program import INTEGERS

FAR = 2**20     # divisors are at most that far from 1, so that `least` stays far from overflow


@dataclass(frozen=True)
class Reciprocal:
    """1 / divisor is high + low; for x that are 0 or at least `least` in absolute value."""

    divisor: float
    high: float
    low: float
    least: float


@lru_cache(maxsize=256)
def reciprocal(divisor: float, dtype: str) -> Reciprocal | None:
    """How to divide by `divisor`, rounded to `dtype`, with the bits of a division; None: not so.

    >>> found = reciprocal(40.0, "float32")
    >>> abs(found.high + found.low - 1 / 40) < 1e-16, found.high > found.low > 0
    (True, True)
    >>> reciprocal(40, "int32"), reciprocal(1e-30, "float32")
    (None, None)
    """
    if dtype in INTEGERS:
        return None
    info = np.finfo(dtype)
    precision = int(info.nmant) + 1
    exact = Fraction(float(np.dtype(dtype).type(divisor)))
    if not Fraction(1, FAR) <= abs(exact) <= FAR:
        return None
    scale = _scale(1 / exact, precision)
    high = int(1 / exact * scale) / scale       # rounded toward zero
    low = rounded(1 / exact - high, precision)
    for x in _suspects(exact, precision):
        if rounded(high * x + rounded(low * x, precision), precision) != rounded(
            x / exact, precision
        ):
            return None
    if not low:     # a power of two, which needs none of this
        return None
    least = 2 * float(info.tiny) * max(float(abs(exact)), 1 / abs(float(low)))  # low * x: normal
    return Reciprocal(float(exact), float(high), float(low), least)


def quotient_of(tree: Expression, dtype: str) -> tuple[Expression, Reciprocal] | None:
    """What is divided, and how, where a tree is a quotient by a constant that has a reciprocal."""
    if not isinstance(tree, Application) or tree.symbol != "/":
        return None
    found = reciprocal(tree.right.value, dtype) if isinstance(tree.right, Constant) else None
    return (tree.left, found) if found else None


def rounded(value: Fraction, precision: int) -> Fraction:
    """`value` to the nearest number of `precision` bits, to even, with unlimited exponents.

    >>> rounded(Fraction(9, 2), 2), rounded(Fraction(-5), 2)
    (Fraction(4, 1), Fraction(-4, 1))
    """
    scale = _scale(value, precision)
    return round(value * scale) / scale


def _scale(value: Fraction, precision: int) -> Fraction:
    """The power of two that makes `value` a number of `precision` bits before the point."""
    bits = abs(value.numerator).bit_length() - value.denominator.bit_length()
    scale = Fraction(2) ** (precision - bits)
    return scale / 2 if abs(value) * scale >= 2**precision else scale


def _suspects(divisor: Fraction, precision: int) -> Iterator[int]:
    """The whole x of `precision` bits whose quotient comes close to a middle.

    With the divisor scaled to a whole number d of as many bits, quotients have that many bits
    before the point if x is multiplied by 2^k, k = precision or one less.  Near a middle
    2^k x / d = m + 1/2 + e with |e| < 4 / 2^precision, that is 2^(k+1) x = d + r modulo 2 d with
    a whole |r| < 8.
    """
    d = int(abs(divisor) * _scale(divisor, precision))
    for k in (precision - 1, precision):
        shared = gcd(2 ** (k + 1), 2 * d)
        modulus = 2 * d // shared
        for r in range(-8, 9):
            if (d + r) % shared == 0:
                first = (d + r) // shared * pow(2 ** (k + 1) // shared, -1, modulus) % modulus
                lowest = 2 ** (precision - 1)
                yield from range(lowest + (first - lowest) % modulus, 2 * lowest, modulus)


def divide(name: str, found: Reciprocal, dtype: str, n_cells: int) -> list[str]:
    """C lines: the function `name`, which divides `n_cells` cells in place."""
    cell = OPENCL_TYPES[dtype]
    divisor, high, low, least = (
        literal(value, dtype)
        for value in (found.divisor, found.high, found.low, found.least)
    )
    quick = f"fma({high}, cells[i], {low} * cells[i])"
    loop = f"for (int i = 0; i < {n_cells}; ++i)"
    return f"""\
// Divided by {divisor}, correctly rounded: by its reciprocal in twice the precision, which
// has the same bits for 0 and all but tiny numbers.
void {name}({cell} *cells)
{{
    {cell} smallest = fabs(cells[0]);
#pragma unroll
    for (int i = 1; i < {n_cells}; ++i)
        smallest = fmin(smallest, fabs(cells[i]));
    if (smallest >= {least}) {{
#pragma unroll
        {loop}
            cells[i] = {quick};
    }} else {{
#pragma unroll
        {loop}
            cells[i] = fabs(cells[i]) < {least} && cells[i] != 0
                ? cells[i] / {divisor} : {quick};
    }}
}}
""".replace("    ", INDENT).splitlines()
