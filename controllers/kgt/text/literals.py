# SPDX-License-Identifier: MIT
"""Numbers as OpenCL C."""
from __future__ import annotations

import math

import numpy as np

from controllers.program.functions import INTEGERS

OPENCL_TYPES = {
    "float32": "float",
    "float64": "double",
    "uint8": "uchar",
    "int16": "short",
    "int32": "int",
    "int64": "long",
}


def literal(value: float, dtype: str) -> str:
    """C text of `value` rounded to `dtype`: the shortest decimal that is parsed back to it exactly.

    >>> literal(0.1, "float32"), literal(-2, "float64"), literal(1e-45, "float32")
    ('0.1f', '(-2.0)', '1e-45f')
    """
    text = decimal(value, dtype) + ("f" if dtype == "float32" else "")
    return f"({text})" if text.startswith("-") else text


def decimal(value: float, dtype: str) -> str:
    """The shortest decimal that is parsed back to `value` rounded to `dtype`; with a . or an e.

    Of an integer dtype, the digits alone.

    >>> decimal(1 / 3, "float32"), decimal(1e30, "float64")
    ('0.33333334', '1e+30')
    """
    if dtype in INTEGERS:
        return str(int(value))
    rounded = np.dtype(dtype).type(value)
    if rounded == 0 or 1e-4 <= abs(rounded) < 1e7:
        return np.format_float_positional(rounded, unique=True, trim="0")
    return np.format_float_scientific(rounded, unique=True, trim="-")


def has_exact_reciprocal(value: float, dtype: str) -> bool:
    """Whether x / value and x * (1 / value) have the same bits for all x of `dtype`.

    That is so for powers of two; those whose reciprocal is not a normal number are left out.
    Never for integers.

    >>> [has_exact_reciprocal(value, "float32") for value in (4.0, -0.5, 3.0, 2.0**127)]
    [True, True, False, False]
    """
    if dtype in INTEGERS:
        return False
    smallest = float(np.finfo(dtype).tiny)
    rounded = abs(float(np.dtype(dtype).type(value)))
    return math.frexp(rounded)[0] == 0.5 and smallest <= rounded <= 1 / smallest
