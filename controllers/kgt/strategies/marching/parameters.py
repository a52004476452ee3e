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
    rows: cells of an item along the third of these axes, in each step: neighbours along it share
    what they read; 1 where there are fewer than three axes.  hands: values that two cells along
    `axis` share are handed on from step to step, where functions are computed.  one_index: cells
    lie at the same elements of all fields, so that one index tells where.
    """

    lanes: int = 4
    steps: int = 2
    axis: int = 0
    group: tuple[int, int, int] = (32, 4, 1)
    reciprocals: bool = False
    looped: bool = False
    rows: int = 1
    hands: bool = False
    one_index: bool = False

    def __post_init__(self) -> None:
        if self.lanes not in WIDTHS:
            raise ValueError(f"marching: lanes is one of {WIDTHS}, got {self.lanes}")

    def across(self, n_axes: int) -> int:
        """The axis that `rows` are along: of the last three, neither `axis` nor the last one."""
        return 2 * n_axes - 5 - self.axis

    def along(self, axis: int, n_axes: int) -> int:
        """The cells of an item along an axis that is not the last one.

        >>> [MarchingParameters(steps=8, axis=1, rows=2).along(axis, 3) for axis in range(2)]
        [2, 8]
        """
        if axis == self.axis:
            return self.steps
        return self.rows if n_axes > 2 and axis == self.across(n_axes) else 1
