# SPDX-License-Identifier: MIT
"""Digests of fields: one number of 64 bits, and how many cells are NaN.

A digest is the sum, modulo 2**64, of a number of each cell: of its bits, times two odd numbers that
follow from where it is, the weight of its place in a segment of its row and the factor of that
segment.  So it can be made of any parts in any order, and another value of one cell always changes
it, as the product can be undone.  Bits are taken as they are: those of -0.0 are others than those
of 0.0, but all NaNs count as NumPy's own.
"""
# docs/decisions/0075-digests-are-sums-over-cells.md
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.program.accumulator import numbers_of
from hitmap.shape import Shape
from hitmap.strided import consecutive, dense_pitches

# SplitMix64's constants: Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195
KEY = 0x9E3779B97F4A7C15
KEY_OF_ROW, KEY_OF_SEGMENT = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
SEGMENT = 4096      # cells of a row; the weights of so many stay in a processor's nearest cache
HALF = 32
_AT_ONCE = 1 << 18      # cells, for which there are temporary numbers
_WORDS = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class Digest:
    """Of some cells: `value` is below 2**64, n_nan counts NaNs.

    >>> Digest(2**64 - 1, 2) + Digest(3)
    Digest(value=2, n_nan=2)
    >>> str(Digest(255, 2)), str(Digest(0))
    ('00000000000000ff, 2 NaN', '0000000000000000')
    """

    value: int = 0
    n_nan: int = 0

    def __add__(self, other: Digest) -> Digest:
        """That of both, which have no cell in common."""
        return Digest((self.value + other.value) % (1 << 64), self.n_nan + other.n_nan)

    def __str__(self) -> str:
        nan = f", {self.n_nan} NaN" if self.n_nan else ""
        return f"{self.value:016x}{nan}"

    @property
    def plain(self) -> list[object]:
        """As it is in JSON, where numbers of 64 bits may be rounded."""
        return [f"{self.value:016x}", self.n_nan]

    @classmethod
    def of_plain(cls, found: Any) -> Digest:
        """What `plain` has given; ValueError for anything else.

        >>> Digest.of_plain(Digest(255, 2).plain)
        Digest(value=255, n_nan=2)
        """
        if isinstance(found, list) and len(found) == 2 and isinstance(found[1], int):
            if isinstance(found[0], str) and _WORDS.fullmatch(found[0]):
                return cls(int(found[0], 16), found[1])
        raise ValueError(f"no digest: {found!r}")


def digest_of(values: npt.NDArray[Any], box: Shape, domain: Shape) -> Digest:
    """That of the cells `box` of a field, [*box.extent], all of whose cells are `domain`.

    >>> cells = np.array([1.0, 2.0, np.nan])
    >>> whole = digest_of(cells, Shape((0,), (3,)), Shape((0,), (3,)))
    >>> parts = ((0, 2), (2, 3))
    >>> every = [digest_of(cells[a:b], Shape((a,), (b,)), Shape((0,), (3,))) for a, b in parts]
    >>> whole.n_nan, sum(every, Digest()) == whole
    (1, True)
    """
    parts = consecutive(box, _AT_ONCE)
    each = (_of_part(values[one.slices(box.lower)], one, domain) for one in parts)
    return sum(each, Digest())


def digest_of_parts(
    parts: Iterable[tuple[Shape, npt.NDArray[Any]]], domain: Shape
) -> Digest:
    """That of some boxes of a field, which have no cell in common."""
    return sum((digest_of(values, box, domain) for box, values in parts), Digest())


@cache
def weights() -> npt.NDArray[np.uint32]:
    """[SEGMENT]: odd numbers, no two of which are equal.

    >>> each = weights()
    >>> len(set(each.tolist())), set((each % 2).tolist())
    (4096, {1})
    """
    mixed = _mixed(np.arange(1, SEGMENT + 1, dtype=np.uint64) * np.uint64(KEY))
    found: npt.NDArray[np.uint32] = (mixed >> np.uint64(HALF)).astype(np.uint32)
    found |= np.uint32(1)
    return found


def row_numbers(domain: Shape) -> tuple[int, ...]:
    """By how much the number of a row grows along each axis but the last; rows are in C order.

    >>> row_numbers(Shape.of_extent((5, 3, 7)))
    (3, 1)
    """
    return dense_pitches(domain.extent[:-1])


def _of_part(values: npt.NDArray[Any], box: Shape, domain: Shape) -> Digest:
    bits, n_nan = _bits(values)
    columns = np.arange(box.lower[-1], box.upper[-1]) - domain.lower[-1]
    across = [Shape(one.lower[:-1], one.upper[:-1]) for one in (box, domain)]
    rows = numbers_of(*across).astype(np.uint64)[..., np.newaxis]
    first, end = (int(at) // SEGMENT for at in (columns[0], columns[-1]))
    segments = np.arange(first, end + 1, dtype=np.uint64)
    keys = rows * np.uint64(KEY_OF_ROW) + segments * np.uint64(KEY_OF_SEGMENT) + np.uint64(KEY)
    factors = (_mixed(keys) | np.uint64(1))[..., columns // SEGMENT - first]
    terms = (bits ^ (bits >> np.uint64(HALF))) * weights()[columns % SEGMENT] * factors
    return Digest(int(terms.sum(dtype=np.uint64)), n_nan)


def _mixed(numbers: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's: each bit depends on all."""
    mixed: npt.NDArray[np.uint64] = numbers ^ (numbers >> np.uint64(30))
    mixed = mixed * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _bits(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint64], int]:
    """Of each cell as a number of 64 bits, and how many NaNs there are."""
    n_nan = 0
    if values.dtype.kind == "f":
        nan = np.isnan(values)
        n_nan = int(np.count_nonzero(nan))
        if n_nan:
            values = np.where(nan, values.dtype.type(np.nan), values)
    unsigned = np.ascontiguousarray(values).view(f"u{values.itemsize}")
    return unsigned.astype(np.uint64), n_nan
