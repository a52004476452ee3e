# SPDX-License-Identifier: MIT
"""OpenCL C functions that rows of the table call; VALUE is the type of a number.

Those of integers are for signed types, `int` and `long`, of which UVALUE is the unsigned one; they
are right for narrower numbers too.  `controllers.kgt` writes those that a kernel calls before it.
"""
from __future__ import annotations


def extreme(name: str, sign: str, first: str) -> str:
    """The function that `minimum` and `maximum` are."""
    return f"""\
// NaN if one is, and -0 is below 0.
VALUE kgt_{name}_VALUE(const VALUE a, const VALUE b)
{{
    return isnan(a) || a {sign} b || (a == b && {first}signbit(a)) ? a : b;
}}
"""


# After NumPy's npy_divmod: the remainder is exact, so that the quotient is near a whole number.
FLOOR_DIVIDE = """\
// Rounded down; infinite or NaN where b is 0.
VALUE kgt_floor_divide_VALUE(const VALUE a, const VALUE b)
{
    const VALUE rest = fmod(a, b);
    const VALUE near = (a - rest) / b - (rest != 0 && (b < 0) != (rest < 0) ? 1 : 0);
    const VALUE down = floor(near);
    const VALUE whole = near - down > (VALUE)0.5f ? down + 1 : down;
    return b == 0 ? a / b : near == 0 ? copysign((VALUE)0, a / b) : whole;
}
"""
REMAINDER = """\
// With the sign of b; NaN where that is 0.
VALUE kgt_remainder_VALUE(const VALUE a, const VALUE b)
{
    const VALUE rest = fmod(a, b);
    if (b == 0)
        return rest;
    return rest == 0 ? copysign((VALUE)0, b) : (b < 0) != (rest < 0) ? rest + b : rest;
}
"""
FLOOR_DIVIDE_WHOLE = """\
// Rounded down; 0 where b is 0, and what wraps where b is -1.
VALUE kgt_floor_divide_VALUE(const VALUE a, const VALUE b)
{
    const VALUE divisor = b == 0 || b == -1 ? 1 : b;
    const VALUE rest = a % divisor;
    const VALUE down = a / divisor - (rest != 0 && (rest < 0) != (divisor < 0));
    return b == 0 ? 0 : b == -1 ? (VALUE)(0 - (UVALUE)a) : down;
}
"""
REMAINDER_WHOLE = """\
// With the sign of b; 0 where that is 0.
VALUE kgt_remainder_VALUE(const VALUE a, const VALUE b)
{
    const VALUE rest = a % (b == 0 || b == -1 ? 1 : b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
"""
SIGN_OF = """\
// -1, 0 or 1, or NaN.
VALUE kgt_sign_VALUE(const VALUE a)
{
    return a > 0 ? 1 : a < 0 ? -1 : a == 0 ? 0 : a;
}
"""
SIGN_OF_WHOLE = """\
VALUE kgt_sign_VALUE(const VALUE a)
{
    return (a > 0) - (a < 0);
}
"""
SHIFT_LEFT = """\
// 0 where b is negative or as large as the number of bits.
VALUE kgt_left_shift_VALUE(const VALUE a, const VALUE b)
{
    const VALUE n_bits = 8 * sizeof(VALUE);
    return b < 0 || b >= n_bits ? 0 : (VALUE)((UVALUE)a << b);
}
"""
SHIFT_RIGHT = """\
// 0 or -1 where b is negative or as large as the number of bits.
VALUE kgt_right_shift_VALUE(const VALUE a, const VALUE b)
{
    const VALUE n_bits = 8 * sizeof(VALUE);
    return a >> (b < 0 || b >= n_bits ? n_bits - 1 : b);
}
"""
# From a float type, FLOAT, to the integer dtype DTYPE from LEAST to MOST.
WHOLE_NUMBER = """\
// Truncated; the least and the largest number end what is beyond them, NaN is 0.
VALUE kgt_DTYPE_of_FLOAT(const FLOAT a)
{
    return a <= (FLOAT)LEAST ? LEAST : a >= (FLOAT)MOST ? MOST : isnan(a) ? 0 : (VALUE)a;
}
"""
