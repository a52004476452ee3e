# SPDX-License-Identifier: MIT
"""Which boxes a message has: exactly what is needed, or a run of memory that holds it."""
from __future__ import annotations

from collections.abc import Sequence

from hitmap.region import Region
from hitmap.shape import Shape


def packed(region: Region, owned: Shape, tiles: Sequence[Shape]) -> tuple[Shape, ...]:
    """The boxes of a message: exact, or one superset with at most a quarter more cells.

    `owned` is what the source owns, `tiles` are the boxes that source and target hold in
    memory, all in the target's coordinates.  A superset is taken where it is one run of
    memory at more ends than the exact boxes: every such end is spared a copy.
    """

    def runs(boxes: tuple[Shape, ...]) -> int:
        return sum(len(boxes) == 1 and _is_run(boxes[0], tile) for tile in tiles)

    exact = region.boxes
    wider = [region.hull, *(_widened(region.hull, tile) for tile in tiles)]
    allowed = [
        (box,)
        for box in wider
        if 4 * box.n_cells <= 5 * region.n_cells and box in owned and box in tiles[-1]
    ]
    return min([exact, *allowed], key=lambda boxes: (-runs(boxes), sum(b.n_cells for b in boxes)))


def _widened(box: Shape, tile: Shape) -> Shape:
    """`box`, on all axes after the first one where it has several cells, as wide as `tile`."""
    for axis in range(_first_thick(box) + 1, box.n_axes):
        box = box.slab(axis, tile.lower[axis], tile.upper[axis])
    return box


def _is_run(box: Shape, tile: Shape) -> bool:
    """Whether the cells of `box` are consecutive in an array over `tile`."""
    return box in tile and _widened(box, tile) == box


def _first_thick(box: Shape) -> int:
    """The first axis on which `box` has several cells; the last axis if there is none."""
    return next((axis for axis, count in enumerate(box.extent) if count > 1), box.n_axes - 1)
