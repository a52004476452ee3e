# SPDX-License-Identifier: MIT
"""Digests of fields: one number of 64 bits, and how many cells are NaN.

A digest is the sum, modulo 2**64, of a number of each cell: of its bits, times an odd weight that
follows from its index.  So it can be made of any parts in any order, and another value of one cell
always changes it, as the product can be undone.  The bits of a float are taken as they are, those
of -0.0 are others than those of 0.0, but all NaNs count as NumPy's own.  Whole numbers are taken as
int64.
"""
# docs/decisions/0075-digests-are-sums-over-cells.md
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.program.accumulator import numbers_of
from hitmap.shape import Shape
from hitmap.strided import consecutive

# odd constants of SplitMix64: Steele, Lea, Flood 2014, doi:10.1145/2660193.2660195
FIRST = 0x94D049BB133111EB
OF_ROW = 0xBF58476D1CE4E5B9
OF_COLUMN = 0x9E3779B8      # the next even number: the column itself is added, too
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


def _of_part(values: npt.NDArray[Any], box: Shape, domain: Shape) -> Digest:
    bits, n_nan = _bits(values)
    words = bits ^ (bits >> np.uint64(HALF))
    return Digest(int((words * _weights(box, domain)).sum(dtype=np.uint64)), n_nan)


def _weights(box: Shape, domain: Shape) -> npt.NDArray[np.uint64]:
    """Odd numbers of 32 bits, [*box.extent]; a row is what lies along the last axis."""
    half, low = np.uint64(HALF), np.uint64((1 << HALF) - 1)
    columns = np.arange(box.lower[-1], box.upper[-1]) - domain.lower[-1]
    column = columns.astype(np.uint64)
    across = [Shape(one.lower[:-1], one.upper[:-1]) for one in (box, domain)]
    rows = numbers_of(*across).astype(np.uint64)[..., np.newaxis]
    key = column + (column & low) * np.uint64(OF_COLUMN) + np.uint64(FIRST)
    key = key + rows * np.uint64(OF_ROW)
    product = (key & low) * (key >> half)
    weights: npt.NDArray[np.uint64] = ((product ^ (product >> half)) & low) | np.uint64(1)
    return weights


def _bits(values: npt.NDArray[Any]) -> tuple[npt.NDArray[np.uint64], int]:
    """Of each cell as a number of 64 bits, and how many NaNs there are."""
    n_nan = 0
    if values.dtype.kind == "f":
        nan = np.isnan(values)
        n_nan = int(np.count_nonzero(nan))
        if n_nan:
            values = np.where(nan, values.dtype.type(np.nan), values)
        values = np.ascontiguousarray(values).view(f"u{values.itemsize}")
    return values.astype(np.int64).view(np.uint64), n_nan
