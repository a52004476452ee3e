# SPDX-License-Identifier: MIT
"""Numbers that users write in expressions."""
from __future__ import annotations

import numpy as np

from controllers.program.identifier import short


def plain_number(value: float) -> float:
    """A plain number; NumPy's are taken as such."""
    if type(value) in (float, int):
        return value
    if isinstance(value, (float, np.floating)):
        return float(value)
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, np.ndarray):
        raise TypeError(
            f"an operand is an expression or a number, got an array of shape {value.shape}; make "
            f"it a field of the program, and read that"
        )
    raise TypeError(f"an operand is a read, a constant, an operation or a number, got {value!r}")


def whole_number(value: float, dtype: str, what: str) -> int:
    """`value` as an int that arithmetic on integer fields, done in 64 bits, can use.

    >>> whole_number(4.0, "uint8", "the factor")
    4
    >>> whole_number(0.5, "uint8", "the factor")
    Traceback (most recent call last):
        ...
    ValueError: the factor 0.5 is no whole number, which uint8 fields need; scale it, or use float64
    """
    if value != int(value):
        raise ValueError(
            f"{what} {short(value)} is no whole number, which {dtype} fields need; "
            f"scale it, or use float64"
        )
    if not -(2**63) <= value < 2**63:
        raise ValueError(
            f"{what} {short(value)} is beyond the 64 bits in which {dtype} fields are computed; "
            f"scale it, or use float64"
        )
    return int(value)
