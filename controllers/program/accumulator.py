# SPDX-License-Identifier: MIT
"""Accumulators: partial results of folds, merged in any order to the same bits.

An `Accumulator` is a vector of int64 whose length depends on its kind and dtype alone, so that the
folds of a sweep travel between ranks as one vector: of a sum, see `exact_sum`; of the extremes, a
state, the *key* of the value, and for argmin and argmax the number of the cell; of any and all, a
flag.  Keys are integers in the order of the values, in which -0 lies below +0.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from controllers.program import exact_sum
from controllers.program.exact_sum import Words
from hitmap.shape import Shape

KINDS = ("sum", "min", "max", "argmin", "argmax", "any", "all")
NUMBERED = ("argmin", "argmax")
_N_WORDS = {"min": 2, "max": 2, "argmin": 3, "argmax": 3, "any": 1, "all": 1}
_SIGNED = {4: np.int32, 8: np.int64}
NONE, SOME, NAN = range(3)      # the states of an extreme: no cell yet, a value, a NaN among them
Result = Union[float, int, bool, np.generic]


def n_words(kind: str, dtype: str) -> int:
    """How long the vectors of a kind of fold are, for operands of a dtype.

    >>> n_words("sum", "float32"), n_words("argmax", "float32")
    (13, 3)
    """
    return exact_sum.N_FLAGS + exact_sum.n_digits(dtype) if kind == "sum" else _N_WORDS[kind]


def numbers_of(cells: Shape, domain: Shape) -> Words:
    """Of each cell of a box its number in C order in a domain.

    >>> numbers_of(Shape((1, 1), (3, 3)), Shape((0, 0), (4, 5))).tolist()
    [[6, 7], [11, 12]]
    """
    found = np.zeros((1,) * cells.n_axes, np.int64)
    for axis, n_cells in enumerate(domain.extent):
        along = np.arange(cells.lower[axis], cells.upper[axis]) - domain.lower[axis]
        found = found * n_cells + along.reshape((-1,) + (1,) * (cells.n_axes - 1 - axis))
    return found


@dataclass(frozen=True, eq=False)
class Accumulator:
    """The partial result of a fold of a kind over operands of a dtype, "bool" for conditions.

    >>> low, high = (Accumulator.of("sum", np.array(part)) for part in ([1e300, 1], [-1e300]))
    >>> high.merged(low).value
    1.0
    """

    kind: str
    dtype: str
    words: Words

    def __post_init__(self) -> None:
        is_sum = self.kind == "sum"
        words = exact_sum.normal(self.words) if is_sum else np.array(self.words, np.int64)
        assert words.shape == (n_words(self.kind, self.dtype),), "as many as the kind has"
        words.setflags(write=False)
        object.__setattr__(self, "words", words)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Accumulator)
            and (self.kind, self.dtype) == (other.kind, other.dtype)
            and np.array_equal(self.words, other.words)
        )

    def __hash__(self) -> int:
        return hash((self.kind, self.dtype, self.words.tobytes()))

    @classmethod
    def empty(cls, kind: str, dtype: str) -> Accumulator:
        """That of no cells."""
        return cls(kind, dtype, np.zeros(n_words(kind, dtype), np.int64))

    @classmethod
    def of(
        cls,
        kind: str,
        values: npt.NDArray[Any],
        mask: npt.NDArray[np.bool_] | None = None,
        numbers: Words | None = None,
    ) -> Accumulator:
        """That of operands, where a mask of the same shape allows.

        numbers: of the cells, which argmin and argmax need; see `numbers_of`.
        """
        dtype = values.dtype.name
        taken = values.reshape(-1) if mask is None else values[mask]
        if not taken.size:
            return cls.empty(kind, dtype)
        if kind == "sum":
            return cls(kind, dtype, exact_sum.words_of(taken, dtype))
        if kind in ("any", "all"):
            found = taken.any() if kind == "any" else not taken.all()
            return cls(kind, dtype, np.array([found], np.int64))
        if kind not in NUMBERED:
            return cls(kind, dtype, np.array(_extreme(kind, taken)[:2], np.int64))
        assert numbers is not None, "cells of argmin and argmax are numbered"
        state, key, chosen = _extreme(kind, taken)
        cells = numbers.reshape(-1) if mask is None else numbers[mask]
        return cls(kind, dtype, np.array([state, key, cells[chosen].min()], np.int64))

    def merged(self, other: Accumulator) -> Accumulator:
        """That of the cells of both."""
        assert (self.kind, self.dtype) == (other.kind, other.dtype), "two parts of one fold"
        if self.kind == "sum":
            return Accumulator(self.kind, self.dtype, self.words + other.words)
        if self.kind in ("any", "all"):
            return Accumulator(self.kind, self.dtype, self.words | other.words)
        return max(self, other, key=_rank)

    @property
    def value(self) -> Result:
        """The result; ValueError for an extreme of no cells.

        That of a sum is a float, rounded once; of min and max, a NumPy number of the dtype.
        """
        if self.kind == "sum":
            return exact_sum.value(self.words, self.dtype)
        if self.kind in ("any", "all"):
            return bool(self.words[0]) is (self.kind == "any")
        state, key = self.words[:2].tolist()
        if state == NONE:
            raise ValueError(f"{self.kind} of no cells has no value; let it cover some")
        if self.kind in NUMBERED:
            return int(self.words[2])
        return np.dtype(self.dtype).type(np.nan) if state == NAN else of_key(key, self.dtype)


def _extreme(kind: str, values: npt.NDArray[Any]) -> tuple[int, int, npt.NDArray[np.bool_]]:
    """State and key of some operands, and which of them have it."""
    nans = values != values
    if nans.any():
        return NAN, 0, nans
    if kind in NUMBERED and values.dtype.kind == "f":
        values = values + values.dtype.type(0)      # -0 and 0 are equal: the first is taken
    keys = keys_of(values)
    key = keys.max() if kind.endswith("max") else keys.min()
    return SOME, int(key), keys == key


def _rank(found: Accumulator) -> tuple[int, ...]:
    """Of several extremes, the one of the highest rank is the result."""
    state, key, *number = found.words.tolist()
    upward = key if found.kind.endswith("max") else -key
    return state, upward, *(-cell for cell in number)


def keys_of(values: npt.NDArray[Any]) -> Words:
    """Integers in the order of the values, none of which is NaN.

    >>> keys_of(np.float32([-1, -0.0, 0, 1e-45])).tolist()
    [-1065353217, -1, 0, 1]
    >>> keys_of(np.array([0, 2**63], np.uint64)).tolist()
    [-9223372036854775808, 0]
    """
    if values.dtype.kind == "f":
        bits = np.ascontiguousarray(values).view(f"i{values.itemsize}")
        found: Words = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits).astype(np.int64)
        return found
    if values.dtype == np.uint64:
        values = (values ^ np.uint64(1 << 63)).view(np.int64)
    return np.asarray(values, np.int64)


def of_key(key: int, dtype: str) -> np.generic:
    """The value whose key it is.

    >>> float(of_key(-1065353217, "float32"))
    -1.0
    """
    kind = np.dtype(dtype)
    if kind.kind == "f":
        bits = key ^ ((1 << (8 * kind.itemsize - 1)) - 1) if key < 0 else key
        found: np.generic = _SIGNED[kind.itemsize](bits).view(kind)
        return found
    whole: np.generic = kind.type(key + (1 << 63) if kind == np.uint64 else key)
    return whole
