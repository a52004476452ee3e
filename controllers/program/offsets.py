# SPDX-License-Identifier: MIT
"""Offsets of a stage or a pattern: the first and the last one per axis, both inclusive.

They are declared: a cell is computed where all of them stay in the field.  What users call the
`shape` of a pattern are its offsets.
"""
from __future__ import annotations

from hitmap.argument import short

MAX_AXES = 4
MAX_OFFSET = 2**31 - 1  # times a pitch it must stay within 64 bits
Offsets = tuple[tuple[int, int], ...]


def check_offsets(offsets: Offsets, what: str) -> None:
    """Raise ValueError unless there are 1 to 4 axes, with ordered ends within 2^31 - 1 cells."""
    if not 1 <= len(offsets) <= MAX_AXES:
        raise ValueError(f"{what}: a shape has 1 to {MAX_AXES} axes, got {len(offsets)}")
    for axis, (low, high) in enumerate(offsets):
        if low > high:
            raise ValueError(
                f"{what}: the shape's first offset must not exceed its last, got "
                f"({short(low)}, {short(high)}) "
                f"on axis {axis}; swap them"
            )
        if max(-low, high) > MAX_OFFSET:
            raise ValueError(
                f"{what}: an offset is at most {MAX_OFFSET} cells, got ({short(low)}, "
                f"{short(high)}) on axis {axis}; use a smaller shape"
            )
