# SPDX-License-Identifier: MIT
"""The ranges of integers that functions give, before they wrap."""
from __future__ import annotations

from controllers.program.function import BEYOND, Range


def products(left: Range, right: Range) -> Range:
    """
    >>> products((-2, 3), (0, 5))
    (-10, 15)
    """
    ends = [a * b for a in left for b in right]
    return min(ends), max(ends)


def quotients(left: Range, right: Range) -> Range:
    """Truncated; all there may be unless the divisor is one number other than 0.

    >>> quotients((-7, 9), (2, 2))
    (-3, 4)
    """
    divisor, last = right
    if divisor != last or divisor == 0:
        return -BEYOND, BEYOND
    ends = [abs(end) // abs(divisor) * (1 if (end < 0) == (divisor < 0) else -1) for end in left]
    return min(ends), max(ends)


def floors(left: Range, right: Range) -> Range:
    """Quotients, rounded down: none is larger than what is divided, or its negative."""
    most = max(map(abs, left))
    return -most, most


def remainders(left: Range, right: Range) -> Range:
    """With the sign of the divisor, and smaller."""
    low, high = right
    return min(low + 1, 0), max(high - 1, 0)


def magnitudes(values: Range) -> Range:
    """
    >>> magnitudes((-3, 2))
    (0, 3)
    """
    low, high = values
    return max(low, -high, 0), max(-low, high)


def bits(*operands: Range) -> Range:
    """All numbers of as many bits.

    >>> bits((-128, 127), (0, 1)), bits((0, 4))
    ((-128, 127), (0, 7))
    """
    low, high = min(low for low, _ in operands), max(high for _, high in operands)
    n_bits = max(high.bit_length(), (~low).bit_length() if low < 0 else 0)
    return (-(2**n_bits) if low < 0 else 0), 2**n_bits - 1


def inverted(values: Range) -> Range:
    """
    >>> inverted((0, 255))
    (-256, -1)
    """
    return ~values[1], ~values[0]


def anything(*operands: Range) -> Range:
    """More than any type holds."""
    return -BEYOND, BEYOND


def shifted_right(values: Range, by: Range) -> Range:
    """Nearer to zero, or to -1."""
    return min(values[0], 0), max(values[1], 0)


def signs(values: Range) -> Range:
    """-1, 0 or 1."""
    return -1, 1


def same(values: Range) -> Range:
    """As they are."""
    return values


def truth(*operands: Range) -> Range:
    """Of a condition."""
    return 0, 1
