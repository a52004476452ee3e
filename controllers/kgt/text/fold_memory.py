# SPDX-License-Identifier: MIT
"""The memory that the launches of a sweep fold into, known before anything is built.

Vectors of digits for sums, a slot for each work-item or group for the extremes that have none among
the digits, and what all of it is merged to.
"""
from __future__ import annotations

from collections.abc import Sequence
from math import prod

from controllers.kgt.kernel import StageKernel
from controllers.kgt.text.fold_values import FoldValue
from controllers.kgt.text.fold_words import (
    COPIES,
    OF_SLOT,
    TURNS,
    copy_words,
    in_words,
    n_extremes,
    sum_words,
)


def n_slots(source: StageKernel, sizes: tuple[tuple[int, ...], tuple[int, ...]]) -> int:
    """How many slots a launch of these sizes fills, each of as many extremes as are folded."""
    counts = zip(*sizes) if source.folds_by_group else ((n, 1) for n in sizes[0])
    return prod(n // size for n, size in counts)


def memory_nbytes(values: Sequence[FoldValue], slots: Sequence[int]) -> int:
    """Bytes on the device for the folds of launches over boxes, which fill so many slots each."""
    if in_words(values):
        return 8 * n_digits(values)
    n_boxes, of_slots = len(slots), sum(slots) * n_extremes(values) * OF_SLOT
    return 8 * (n_digits(values) + of_slots + n_boxes + 1 + n_result(values, n_boxes))


def n_digits(values: Sequence[FoldValue]) -> int:
    """Words of all vectors of digits: of two turns where they are what is downloaded."""
    return (TURNS if in_words(values) else 1) * COPIES * max(1, copy_words(values))


def n_result(values: Sequence[FoldValue], n_boxes: int) -> int:
    """Words of what is downloaded."""
    if in_words(values):
        return n_digits(values) // TURNS
    return sum_words(values) + n_boxes * n_extremes(values) * OF_SLOT
