# SPDX-License-Identifier: MIT
"""An initial field that needs no file and is the same for every layout: a hash of the index.

The cell with the linear index i (C order, in the whole domain) holds the upper bits of number i of
the generator SplitMix64 with seed 0: in a field of floats 24 bits, divided by 2^24, which is in
[0, 1) and exact in float32; in a field of integers as many bits as the dtype has, so that any
value of the dtype may occur.
"""
# SplitMix64: Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hitmap.shape import Shape

_CELLS_AT_ONCE = 1 << 18    # bounds the memory for indices


def fill(array: npt.NDArray[Any], box: Shape, domain: Sequence[int]) -> None:
    """Set `array`, [*box.extent], to the field's values in `box`; `domain` holds the extents.

    >>> array = np.zeros((1, 2), np.float32)
    >>> fill(array, Shape((0, 1), (1, 3)), (2, 3))
    >>> array.tolist() == [[hashed(1), hashed(2)]]
    True
    """
    if box.empty:
        return
    rows = max(1, _CELLS_AT_ONCE // math.prod(box.extent[1:]))
    for lower in range(box.lower[0], box.upper[0], rows):
        part = box.slab(0, lower, min(lower + rows, box.upper[0]))
        array[part.slices(box.lower)] = _values(_indices(part, domain), array.dtype)


def hashed(index: int, dtype: str = "float32") -> float:
    """The value of the cell with this linear index.

    >>> [hex(int(hashed(index) * 2**24)) for index in (0, 1)]
    ['0xe220a8', '0x6e789e']
    >>> hashed(1, "uint8") == 0x6e, hashed(1, "int32") == 0x6e789e6a
    (True, True)
    """
    value: float = _values(np.array([index], np.uint64), np.dtype(dtype))[0].item()
    return value


def _indices(box: Shape, domain: Sequence[int]) -> npt.NDArray[np.uint64]:
    """The linear indices of the cells of `box`."""
    total = np.zeros((1,) * box.n_axes, np.uint64)
    for axis, (lower, upper) in enumerate(zip(box.lower, box.upper)):
        along = np.arange(lower, upper, dtype=np.uint64) * np.uint64(math.prod(domain[axis + 1 :]))
        total = total + along.reshape((-1,) + (1,) * (box.n_axes - axis - 1))
    return total


def _values(index: npt.NDArray[np.uint64], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    bits = (index + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)    # modulo 2^64
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    bits = bits ^ (bits >> np.uint64(31))
    if dtype.kind != "f":
        whole: npt.NDArray[Any] = (bits >> np.uint64(64 - 8 * dtype.itemsize)).astype(dtype)
        return whole
    fractions: npt.NDArray[np.float32] = (bits >> np.uint64(40)).astype(np.float32)
    fractions *= np.float32(2**-24)
    return fractions
