# SPDX-License-Identifier: MIT
"""Where the cells of a box lie in linear memory.

A `Strided` is a box of cells as a first element and one pitch per axis, both counted in
elements.  It says nothing of whose memory it is: the same value makes a NumPy view of a
host array, the arguments of a copy kernel, or the ends of a message.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from hitmap.shape import Shape

PITCH_MULTIPLE = 8      # elements: 32 bytes, a sector of a GPU's cache, of float32


def whole_vectors(n_elements: int) -> int:
    """`n_elements`, rounded up to a multiple of PITCH_MULTIPLE.

    >>> whole_vectors(9)
    16
    """
    return -(-n_elements // PITCH_MULTIPLE) * PITCH_MULTIPLE


def dense_pitches(extent: Sequence[int]) -> tuple[int, ...]:
    """Elements per step on each axis of an array without padding.

    >>> dense_pitches((4, 5, 6))
    (30, 6, 1)
    """
    return tuple(prod(extent[axis + 1 :]) for axis in range(len(extent)))


@dataclass(frozen=True)
class Strided:
    """A box of cells in linear memory: C order, `pitches[axis]` elements per step.

    >>> Strided(7, (6, 1), (2, 3)).contiguous
    False
    >>> Strided(6, (6, 1), (2, 6)).contiguous
    True
    """

    first: int
    pitches: tuple[int, ...]
    extent: tuple[int, ...]

    @property
    def n_cells(self) -> int:
        return prod(self.extent)

    @property
    def contiguous(self) -> bool:
        """Whether the cells follow one another without a gap."""
        dense = dense_pitches(self.extent)
        return all(
            cells == 1 or pitch == packed
            for cells, pitch, packed in zip(self.extent, self.pitches, dense, strict=True)
        )

    def stepped(self, steps: Sequence[int]) -> Strided:
        """Every so many-th cell along each axis, from the first on, or backwards from the last.

        >>> Strided(10, (8, 1), (5, 7)).stepped((2, -3))
        Strided(first=16, pitches=(16, -3), extent=(3, 3))
        """
        each = [*zip(self.extent, self.pitches, steps, strict=True)]
        first = self.first + sum((n - 1) * pitch for n, pitch, step in each if step < 0)
        extent = tuple(-(-n // abs(step)) for n, _, step in each)
        return Strided(first, tuple(pitch * step for _, pitch, step in each), extent)

    def view(self, flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The cells as an n-dimensional view of the one-dimensional array `flat`."""
        last = self.first + sum(
            (n - 1) * pitch for n, pitch in zip(self.extent, self.pitches, strict=True)
        )
        if not 0 <= self.first <= last < flat.size:
            raise ValueError(
                f"cells {self.first} to {last} do not lie in an array of {flat.size} elements"
            )
        return np.lib.stride_tricks.as_strided(
            flat[self.first :], self.extent, [pitch * flat.itemsize for pitch in self.pitches]
        )


@dataclass(frozen=True)
class Geometry:
    """How the cells of one tile lie in its memory: its box and its pitches.

    >>> rows = Geometry.dense(Shape((9, 0), (20, 30)))
    >>> rows.strided(Shape((10, 0), (11, 30)))
    Strided(first=30, pitches=(30, 1), extent=(1, 30))
    """

    box: Shape
    pitches: tuple[int, ...]

    @classmethod
    def dense(cls, box: Shape) -> Geometry:
        """The geometry without padding."""
        return cls(box, dense_pitches(box.extent))

    @classmethod
    def padded(cls, box: Shape) -> Geometry:
        """Every row starts at a multiple of PITCH_MULTIPLE elements.

        >>> Geometry.padded(Shape.of_extent((4, 5, 6))).pitches
        (40, 8, 1)
        """
        return cls(box, dense_pitches((*box.extent[:-1], whole_vectors(box.extent[-1]))))

    @property
    def n_elements(self) -> int:
        """Elements of memory that the tile takes, padding included."""
        return self.box.extent[0] * self.pitches[0] if not self.box.empty else 0

    def strided(self, cells: Shape) -> Strided:
        """Where `cells`, a part of the tile's box, lie."""
        if cells not in self.box:
            raise ValueError(f"cells {cells} are not in the tile {self.box}")
        return Strided(self.element(cells.lower), self.pitches, cells.extent)

    def element(self, cell: Sequence[int]) -> int:
        """The element of one cell; outside of the tile, where it would lie.

        >>> Geometry.dense(Shape((2,), (5,))).element((0,))
        -2
        """
        places = zip(cell, self.box.lower, self.pitches, strict=True)
        return sum((index - origin) * pitch for index, origin, pitch in places)


def packed(boxes: Iterable[Shape], first: int = 0) -> tuple[Strided, ...]:
    """Where the cells of `boxes` lie when packed one box after another, each in C order.

    The first one lies at the element `first`.

    >>> [part.first for part in packed([Shape((0, 0), (1, 5)), Shape((1, 0), (4, 1))])]
    [0, 5]
    """
    parts = []
    for box in boxes:
        parts.append(Strided(first, dense_pitches(box.extent), box.extent))
        first += box.n_cells
    return tuple(parts)


def elements(flat: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """The memory of a one-dimensional array as elements of `dtype`, but for what is left over.

    >>> elements(np.zeros(11, np.uint8), np.float32).size
    2
    """
    itemsize = np.dtype(dtype).itemsize
    return flat.view(np.uint8)[: flat.nbytes // itemsize * itemsize].view(dtype)


def consecutive(box: Shape, max_cells: int, axis: int = 0) -> Iterator[Shape]:
    """`box` in C order as boxes whose cells are consecutive in a dense array over it.

    Each has at most `max_cells` cells, at least one; axes before `axis` are not cut.

    >>> [str(run) for run in consecutive(Shape.of_extent((3, 4)), 8)]
    ['[0:2, 0:4]', '[2:3, 0:4]']
    """
    if box.empty:
        return
    row = prod(box.extent[axis + 1 :])
    step = max(1, max_cells // row)
    for lower in range(box.lower[axis], box.upper[axis], step):
        slab = box.slab(axis, lower, min(lower + step, box.upper[axis]))
        if row <= max_cells or axis == box.n_axes - 1:
            yield slab
        else:
            yield from consecutive(slab, max_cells, axis + 1)
