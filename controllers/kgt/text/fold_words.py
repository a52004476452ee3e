# SPDX-License-Identifier: MIT
"""The words of what kernels leave of folds: vectors of digits, and of the extremes' ones.

A vector has the words of all sums, then those of the extremes (`in_words`): each is the largest of
what the work-groups have put there.
"""
from __future__ import annotations

from collections.abc import Sequence

from controllers.kgt.text.fold_values import FoldValue
from controllers.program.accumulator import n_words
from controllers.program.functions import FLOATS

COPIES = 32     # vectors
LINE = 32       # words of 256 bytes, which hold what an atomic operation of a GPU keeps others from
TURNS = 2       # of the vectors that are downloaded: launches zero those of the other turn
OF_SLOT = 3     # words: whether there is a cell, its key, its place
NARROW = ("float32", "int32", "int16", "uint8")     # keys of 32 bits


def sum_words(values: Sequence[FoldValue]) -> int:
    """The words of the digits of all sums."""
    return sum(n_words(one.kind, one.dtype) for one in values if one.kind == "sum")


def n_extremes(values: Sequence[FoldValue]) -> int:
    """How many folds are no sums."""
    return sum(one.kind != "sum" for one in values)


def in_words(values: Sequence[FoldValue]) -> bool:
    """Whether all extremes have words among the digits, where work-groups merge them.

    Devices have maxima of 32 bits that are atomic, most of them of 64 bits, but none of keys with
    places.
    """
    return all(one.kind == "sum" or _is_narrow(one) or is_most(one) for one in values)


def words_of(one: FoldValue) -> int:
    """How many words an extreme has."""
    return 1 if _is_narrow(one) else 2


def extreme_words(values: Sequence[FoldValue]) -> int:
    """The words of all extremes."""
    return sum(words_of(one) for one in values if one.kind != "sum")


def _is_narrow(one: FoldValue) -> bool:
    return not one.place and (one.kind in ("any", "all") or one.dtype in NARROW)


def copy_words(values: Sequence[FoldValue]) -> int:
    """The words of each of the vectors: those of all sums, then of the extremes that are there.

    What is downloaded begins at lines of its own, as atomic operations on one line wait for others.
    """
    if not in_words(values):
        return sum_words(values)
    return -(-(sum_words(values) + extreme_words(values)) // LINE) * LINE


def is_most(one: FoldValue) -> bool:
    """Whether an item holds it as `kgt_most_...`: the most or least float, wherever it is."""
    return one.kind in ("min", "max") and one.dtype in FLOATS
