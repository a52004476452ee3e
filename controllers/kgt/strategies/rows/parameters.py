# SPDX-License-Identifier: MIT
"""The parameters of the strategy "rows", of which its kernels are written."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RowsParameters:
    """How a kernel goes about it.

    lanes: cells of a vector, 2 to 16.  rows, planes: those of a block, along the last axis but one
    and but two.  band, depth, segment: cells of an item along the last axis but one, but two, and
    the last one.  ahead: rows that many past its block are asked for meanwhile, of the highest
    planes it reads, or, where nothing is stored, so many KiB of the same row, and a quarter of
    that into the first-level cache; 0: none.  streaming: stores bypass the caches (for fields that
    exceed them).
    """

    lanes: int = 16
    rows: int = 2
    planes: int = 1
    band: int = 16
    depth: int = 1
    segment: int = 16384
    ahead: int = 0
    streaming: bool = False
