# SPDX-License-Identifier: MIT
"""The parameters of the strategy "wavefront", of which its kernels are written."""
from __future__ import annotations

from dataclasses import dataclass

from controllers.kgt.strategies.wavefront.rings import Rings
from controllers.program.offsets import Offsets


@dataclass(frozen=True)
class WavefrontParameters:
    """How a kernel goes about it.

    lanes: cells of a vector, 2 to 16.  slices: of a level, computed side by side.  band, depth,
    height, segment: the most cells of an item's tile along the first axis, the second of four, the
    last but one, the last.  streaming: stores bypass the caches (for fields that exceed them).
    """

    steps_per_launch: int = 8
    lanes: int = 16
    slices: int = 4
    band: int = 512
    depth: int = 1
    height: int = 1
    segment: int = 2048
    streaming: bool = False

    def __post_init__(self) -> None:
        if self.steps_per_launch < 2:
            raise ValueError(
                f"a wavefront makes at least 2 steps per launch, got {self.steps_per_launch}; "
                f"use the strategy 'rows' for one"
            )
        if self.segment < 2 * self.lanes:
            raise ValueError(
                f"a segment holds at least two vectors of {self.lanes} cells, got {self.segment} "
                f"cells; use a longer one"
            )

    def tile(self, n_axes: int) -> tuple[int, ...]:
        """The most cells of an item's tile."""
        return (
            (self.segment,),
            (self.band, self.segment),
            (self.band, self.height, self.segment),
            (self.band, self.depth, self.height, self.segment),
        )[n_axes - 1]

    def rings(self, reach: Offsets, *, follows: bool = False) -> Rings:
        """Where the levels in between are kept, for stages of this `own_reach`.

        follows: whether a field follows the one that they compute.
        """
        slices, tile = self.slices if len(reach) > 1 else 1, self.tile(len(reach))
        return Rings(reach, self.steps_per_launch, self.lanes, slices, tile, follows)
