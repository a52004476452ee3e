# SPDX-License-Identifier: MIT
"""Sets of cells as unions of disjoint boxes.

A `Region` is kept in one normal form: bands along axis 0, as long as the cross-section stays
the same, each band cut in the same way along the next axis.  So two regions are equal exactly
if they hold the same cells, and their boxes come in C order.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from hitmap.shape import Shape

_Box = tuple[tuple[int, int], ...]  # the two ends on each axis


@dataclass(frozen=True, slots=True)
class Region:
    """A set of cells, a value; made by `Region.of`, not from boxes directly.

    >>> ring = Region.of([Shape((0, 0), (5, 4))]) - Shape((1, 1), (4, 3))
    >>> print(ring, ring.n_cells)
    [0:1, 0:4] + [1:4, 0:1] + [1:4, 3:4] + [4:5, 0:4] 14
    """

    boxes: tuple[Shape, ...] = ()

    @classmethod
    def of(cls, shapes: Iterable[Shape]) -> Region:
        """The cells in any of `shapes`, which may overlap or be empty.

        >>> print(Region.of([Shape((0,), (3,)), Shape((2,), (5,)), Shape((5,), (6,))]))
        [0:6]
        """
        boxes = [shape for shape in shapes if not shape.empty]
        if len({box.n_axes for box in boxes}) > 1:
            raise ValueError(
                f"the boxes of a region must have the same number of axes, got "
                f"{', '.join(map(str, boxes))}"
            )
        if len(boxes) < 2:
            return cls(tuple(boxes))
        ends = {tuple(zip(box.lower, box.upper, strict=True)) for box in boxes}
        return cls(tuple(Shape(*map(tuple, zip(*box, strict=True))) for box in _bands(ends)))

    @property
    def n_cells(self) -> int:
        """Cells in the region."""
        return sum(box.n_cells for box in self.boxes)

    @property
    def empty(self) -> bool:
        """Whether the region holds no cells."""
        return not self.boxes

    @property
    def hull(self) -> Shape:
        """The smallest box that holds the region; ValueError if that is empty."""
        if self.empty:
            raise ValueError("an empty region has no hull; test `region.empty` first")
        return reduce(Shape.hull, self.boxes)

    def shift(self, by: tuple[int, ...]) -> Region:
        """This region moved by so many cells on each axis."""
        return Region(tuple(box.shift(by) for box in self.boxes))

    def __or__(self, other: Region | Shape) -> Region:
        """Cells in one or both."""
        return Region.of((*self.boxes, *_boxes(other)))

    def __and__(self, other: Region | Shape) -> Region:
        """Cells in both."""
        return Region.of(mine & theirs for mine in self.boxes for theirs in _boxes(other))

    def __sub__(self, other: Region | Shape) -> Region:
        """Cells that are not in `other`."""
        rest = list(self.boxes)
        for hole in _boxes(other):
            rest = [part for box in rest for part in _without(box, hole)]
        return Region.of(rest)

    def __contains__(self, shape: Shape) -> bool:
        """Whether every cell of `shape` is in the region."""
        return (self & shape).n_cells == shape.n_cells

    def __str__(self) -> str:
        return " + ".join(map(str, self.boxes)) or "no cells"


def _boxes(cells: Region | Shape) -> tuple[Shape, ...]:
    return (cells,) if isinstance(cells, Shape) else cells.boxes


def _without(box: Shape, hole: Shape) -> Iterator[Shape]:
    """Disjoint boxes (some may be empty) of the cells of `box` that are not in `hole`."""
    hole = box & hole
    if hole.empty:
        yield box
        return
    for axis in range(box.n_axes):
        yield box.slab(axis, box.lower[axis], hole.lower[axis])
        yield box.slab(axis, hole.upper[axis], box.upper[axis])
        box = box.slab(axis, hole.lower[axis], hole.upper[axis])


def _bands(boxes: set[_Box]) -> tuple[_Box, ...]:
    """The normal form of a union of boxes, at least one, none of them empty."""
    if () in boxes:  # no axis is left
        return ((),)
    bands: list[tuple[int, int, tuple[_Box, ...]]] = []
    for lower, upper in pairwise(sorted({end for box in boxes for end in box[0]})):
        here = {box[1:] for box in boxes if box[0][0] <= lower < box[0][1]}
        if not here:
            continue
        section = _bands(here)
        if bands and bands[-1][1:] == (lower, section):
            lower = bands.pop()[0]
        bands.append((lower, upper, section))
    return tuple(((lower, upper), *rest) for lower, upper, section in bands for rest in section)
