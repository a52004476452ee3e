# SPDX-License-Identifier: MIT
"""Functions on arrays of one dtype, where NumPy's own are not what is meant, and conversions."""
from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]


def quotient(a: Array, b: Array) -> Array:
    """The quotient of integers, truncated toward zero; wrapped where it overflows, 0 where b is 0.

    >>> quotient(np.array([7, -7, 7, -(2**63)]), np.array([2, 2, 0, -1])).tolist()
    [3, -3, 0, -9223372036854775808]
    """
    with np.errstate(all="ignore"):
        floor, rest = np.floor_divide(a, b), np.remainder(a, b)
    result: Array = floor + ((rest != 0) & ((a < 0) != (b < 0))).astype(floor.dtype)
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


def same(a: Array) -> Array:
    """Whole numbers, rounded to whole numbers."""
    return a


def itself(a: Array) -> Array:
    """The values themselves, wherever they are kept."""
    return a


def converted(values: Array, dtype: str) -> Array:
    """`values` in another dtype: integers wrap, floats are rounded to the nearest.

    Floats that become integers are truncated, and end at the least and the largest one; NaN is 0.

    >>> converted(np.float32([-1.5, 300, np.nan, np.inf]), "int16").tolist()
    [-1, 300, 0, 32767]
    >>> converted(np.float64([-1.5, 300.9, 2]), "uint8").tolist()
    [0, 255, 2]
    """
    kind = np.dtype(dtype)
    values = np.asarray(values)
    with np.errstate(all="ignore"):
        if values.dtype.kind != "f" or kind.kind == "f":
            return values.astype(kind)
        info = np.iinfo(kind)
        low, high = values <= float(info.min), values >= float(info.max)
        inside = np.where(low | high | np.isnan(values), 0, values).astype(kind)
        least, most = kind.type(info.min), kind.type(info.max)
        return np.where(low, least, np.where(high, most, inside)).astype(kind)
