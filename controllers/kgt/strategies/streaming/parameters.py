# SPDX-License-Identifier: MIT
"""The parameters of the strategy "streaming", of which its kernels are written."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from controllers.kgt.text.lanes import WIDTHS

MAX_ITEMS = 1024    # of a work-group, on NVIDIA's GPUs


@dataclass(frozen=True)
class StreamingParameters:
    """How a kernel goes about it.

    cells, group: cells of an item, items of a work-group, along the last axis, the last but one,
    the last but two; 1 along the first axis, of which a group streams through `length` cells (one
    axis: nothing streams).  vector: cells that are loaded and stored at once.  ahead: planes that
    are loaded before they are needed.  unroll: planes per turn of the loop.  reciprocals: divide
    by constants as in `division`.

    On NVIDIA's devices only: shuffles: cells are handed over within a warp without local memory.
    prefetch: so many planes before it arrives a plane is brought to the cache; 0: not.
    """

    steps_per_launch: int = 8
    cells: tuple[int, int, int] = (4, 1, 1)
    group: tuple[int, int, int] = (32, 1, 1)
    length: int = 192
    vector: int = 4
    ahead: int = 1
    unroll: int = 2
    shuffles: bool = False
    reciprocals: bool = False
    prefetch: int = 0

    def __post_init__(self) -> None:
        if self.vector not in WIDTHS or self.cells[0] % self.vector:
            raise ValueError(
                f"streaming: a vector has 1, 2 or 4 cells, and cells[0] is a multiple of it, "
                f"got {self.vector} and {self.cells[0]}"
            )
        if self.steps_per_launch < 2 or prod(self.group) > MAX_ITEMS:
            raise ValueError(
                f"streaming: 2 steps or more, {MAX_ITEMS} items at most, got "
                f"{self.steps_per_launch} and {prod(self.group)}"
            )

    def scalars(self) -> Mapping[str, int]:
        """The planes that a group writes."""
        return {"kgt_length": self.length}
