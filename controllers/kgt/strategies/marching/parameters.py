# SPDX-License-Identifier: MIT
"""The parameters of the strategy "marching", of which its kernels are written."""
from __future__ import annotations

from dataclasses import dataclass

from controllers.kgt.text.lanes import WIDTHS


@dataclass(frozen=True)
class MarchingParameters:
    """How a kernel goes about it.

    lanes: cells of a vector, one of WIDTHS.  steps: cells of an item along `axis`, the marching
    axis, one of the last three and not the last.  group: items of a work-group along the last
    axis, the last but one, and the last but two.  reciprocals: divide by constants as in
    `division`, where fma is fast.  looped: steps stay a loop, which takes fewer registers.
    """

    lanes: int = 4
    steps: int = 2
    axis: int = 0
    group: tuple[int, int, int] = (32, 4, 1)
    reciprocals: bool = False
    looped: bool = False

    def __post_init__(self) -> None:
        if self.lanes not in WIDTHS:
            raise ValueError(f"marching: lanes is one of {WIDTHS}, got {self.lanes}")
