# SPDX-License-Identifier: MIT
"""Exact sums: numbers as digits of a base, at absolute exponents.

A sum is a vector of int64: how many operands were NaN, inf and -inf, then digits from the least on,
digit k of the weight 2**(32 k + lowest).  Adding vectors adds sums: a digit has room for 2**30
of them before its carry must move.  In `normal` form all digits but the last lie in [0, 2**32), so
that equal sums are equal vectors, in whatever order they were taken.
"""
from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Words: TypeAlias = npt.NDArray[np.int64]

BITS = 32
N_FLAGS = 3     # NaN, inf, -inf: how many
_MASK = (1 << BITS) - 1
_AT_ONCE = 1 << 18      # operands: float64 adds so many digits exactly
# The exponent of the least digit, and how many digits there are; the last one is room for carries.
_FORMATS = {"float32": (-160, 10), "float64": (-1088, 67)}
_WHOLE = 0, 3


def lowest(dtype: str) -> int:
    """The exponent of the least digit of sums of operands of a dtype."""
    return _FORMATS.get(dtype, _WHOLE)[0]


def n_digits(dtype: str) -> int:
    """How many digits sums of operands of a dtype have.

    >>> n_digits("float32"), n_digits("int64")
    (10, 3)
    """
    return _FORMATS.get(dtype, _WHOLE)[1]


def words_of(values: npt.NDArray[Any], dtype: str) -> Words:
    """The sum of a flat array of operands, in normal form."""
    words = np.zeros(N_FLAGS + n_digits(dtype), np.int64)
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        if not finite.all():
            words[0] = np.isnan(values).sum()
            words[1], words[2] = (values == np.inf).sum(), (values == -np.inf).sum()
            values = values[finite]
    for first in range(0, values.size, _AT_ONCE):
        part = values[first : first + _AT_ONCE]
        words[N_FLAGS:] += _digits(part, dtype)[0]
        words = normal(words)
    return words


def words_by(
    values: npt.NDArray[Any], groups: npt.NDArray[np.intp], n_groups: int, dtype: str
) -> Words:
    """The sums of a flat array of operands by their groups, [n_groups][words], in normal form.

    >>> sums = words_by(np.float64([1e300, 7, -1e300]), np.array([0, 1, 0]), 2, "float64")
    >>> [value(one, "float64") for one in sums]
    [0.0, 7.0]
    """
    words = np.zeros((n_groups, N_FLAGS + n_digits(dtype)), np.int64)
    if values.dtype.kind == "f":
        finite = np.isfinite(values)
        if not finite.all():
            for flag, which in enumerate((np.isnan(values), values == np.inf, values == -np.inf)):
                words[:, flag] = np.bincount(groups[which], minlength=n_groups)
            values, groups = values[finite], groups[finite]
    for first in range(0, values.size, _AT_ONCE):
        part = slice(first, first + _AT_ONCE)
        words[:, N_FLAGS:] += _digits(values[part], dtype, groups[part], n_groups)
        words = np.array([normal(one) for one in words])
    return words


def _digits(
    values: npt.NDArray[Any], dtype: str, groups: npt.NDArray[np.intp] | int = 0, n_groups: int = 1
) -> Words:
    """The digits of sums of finite operands, of any size and sign, [n_groups][digits]."""
    if values.dtype.kind == "f":
        fraction, exponent = np.frexp(values.astype(np.float64))
        whole, shift = np.ldexp(fraction, 53).astype(np.int64), exponent.astype(np.int64) - 53
        low = -(lowest(dtype) - shift)
        # fewer bits than 53 may reach below the least digit, as zeros
        whole, low = np.where(low < 0, whole >> np.minimum(-low, 63), whole), np.maximum(low, 0)
        negative, magnitude = whole < 0, np.abs(whole).astype(np.uint64)
    else:
        negative = values < 0 if values.dtype.kind == "i" else np.zeros(values.shape, bool)
        bits = values.astype(np.uint64)
        magnitude, low = np.where(negative, ~bits + np.uint64(1), bits), np.zeros(1, np.int64)
    place, step = low // BITS, (low % BITS).astype(np.uint64)
    lower = (magnitude & np.uint64(_MASK)) << step
    upper = (magnitude >> np.uint64(BITS)) << step
    mask, bits32 = np.uint64(_MASK), np.uint64(BITS)
    parts = lower & mask, (lower >> bits32) + (upper & mask), upper >> bits32
    size = n_digits(dtype) + 2
    found = np.zeros(n_groups * size, np.int64)
    for number, part in enumerate(parts):
        signed = np.where(negative, -part.astype(np.float64), part.astype(np.float64))
        where = np.broadcast_to(groups * size + place + number, signed.shape)
        found += np.bincount(where, signed, found.size).astype(np.int64)
    by_group = found.reshape(n_groups, size)
    assert not by_group[:, n_digits(dtype) :].any(), "no operand is larger than its dtype"
    return by_group[:, : n_digits(dtype)]


def normal(words: Words) -> Words:
    """The same sum with all carries moved up: equal for equal sums.

    >>> normal(np.array([0, 0, 0, -1, 2**33, 0]))[3:].tolist()
    [4294967295, 4294967295, 1]
    """
    if not int(np.bitwise_or.reduce(words[N_FLAGS:-1])) >> BITS:    # it has that form
        return np.array(words, np.int64)
    found, carry = words.tolist(), 0
    for at in range(N_FLAGS, len(found) - 1):
        carry, found[at] = divmod(found[at] + carry, 1 << BITS)
    found[-1] += carry
    return np.array(found, np.int64)


def value(words: Words, dtype: str) -> float:
    """A sum in normal form, rounded once to float64: the nearest, ties to even; or infinite.

    An exact sum of zero is 0.0, as with math.fsum.
    """
    n_nan, n_above, n_below = words[:N_FLAGS].tolist()
    if n_nan or (n_above and n_below):
        return math.nan
    if n_above or n_below:
        return math.inf if n_above else -math.inf
    digits = words[N_FLAGS:-1].astype("<u4")
    whole = int.from_bytes(digits.tobytes(), "little") + (int(words[-1]) << (BITS * len(digits)))
    try:
        return float(whole / (1 << -lowest(dtype)))    # Python rounds this division correctly
    except OverflowError:
        return math.inf if whole > 0 else -math.inf
