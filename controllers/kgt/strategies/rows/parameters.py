# SPDX-License-Identifier: MIT
"""The parameters of the strategy "rows", of which its kernels are written."""
from __future__ import annotations

from dataclasses import dataclass

from controllers.program.program import Stage


@dataclass(frozen=True)
class RowsParameters:
    """How a kernel goes about it.

    lanes: cells of a vector, 2 to 16.  rows, planes: those of a block, along the last axis but one
    and but two.  band, depth, segment: cells of an item along the last axis but one, but two, and
    the last one, about.  ahead: rows that many past its block are asked for meanwhile, of the
    highest planes it reads, or, where rows share nothing, what is so many KiB further on in the
    same row, and a quarter of that into the first-level cache; 0: none.  streaming: stores bypass
    the caches (for fields that exceed them).  shares: the cores that share out the items, which
    are made so many or a multiple of it, as long as bands stay about as high.  Kernels that
    differ in band, depth and shares alone have one text.
    """

    lanes: int = 16
    rows: int = 2
    planes: int = 1
    band: int = 16
    depth: int = 1
    segment: int = 16384
    ahead: int = 0
    streaming: bool = False
    shares: int = 1


def shares_rows(stage: Stage) -> bool:
    """Whether rows that are computed at once read cells of each other.

    Folds alone are computed row by row all the same.
    """
    return bool(stage.stored) and any(any(read.offset[:-1]) for read in stage.reads)
