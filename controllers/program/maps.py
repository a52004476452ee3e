# SPDX-License-Identifier: MIT
"""Maps: which region of a version is read to compute a box of cells, or of items."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, Union

from controllers.program.items import Items
from hitmap.shape import Shape

NearOffsets: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Near:
    """Each cell reads at constant offsets: these, or all in a box of offsets.

    >>> str(Near(((-1, 0), (0, 1))).region(Shape((2, 2), (4, 4))))
    '[1:4, 2:5]'
    """

    offsets: NearOffsets | Shape

    def region(self, box: Shape) -> Shape:
        """A box that holds all that the cells of `box` read."""
        if isinstance(self.offsets, Shape):
            low = tuple(-first for first in self.offsets.lower)
            return box.grow(low, tuple(end - 1 for end in self.offsets.upper))
        low, high = zip(*((min(axis), max(axis)) for axis in zip(*self.offsets)))
        return box.shift(low).hull(box.shift(high))


@dataclass(frozen=True)
class Here:
    """Each cell reads itself alone."""

    def region(self, box: Shape) -> Shape:
        """The box itself."""
        return box


@dataclass(frozen=True)
class Along:
    """Each cell reads its whole line of `domain` along one axis."""

    axis: int
    domain: Shape

    def region(self, box: Shape) -> Shape:
        """The lines that go through the box.

        >>> str(Along(0, Shape((0, 0), (9, 9))).region(Shape((2, 2), (4, 4))))
        '[0:9, 2:4]'
        """
        return box.slab(self.axis, self.domain.lower[self.axis], self.domain.upper[self.axis])


@dataclass(frozen=True)
class All:
    """Each cell may read all of `domain`."""

    domain: Shape

    def region(self, box: Shape) -> Shape:
        """The domain."""
        return self.domain


@dataclass(frozen=True)
class Mapped:
    """What a box reads is what `function` says."""

    function: Callable[[Shape], Shape]

    def region(self, box: Shape) -> Shape:
        """That region."""
        return self.function(box)


@dataclass(frozen=True)
class Row:
    """Each item reads its own row, whatever columns are written; rows have so many columns.

    >>> str(Row(3).region(Shape((4, 0), (9, 1))))
    '[4:9, 0:3]'
    """

    columns: int

    def region(self, box: Shape) -> Shape:
        """The rows of the box."""
        return Shape((box.lower[0], 0), (box.upper[0], self.columns))


@dataclass(frozen=True)
class Columns:
    """Each item reads its column of `domain`, which is so many elements wide.

    >>> str(Columns(2, Shape((0, 0), (9, 8))).region(Shape((1, 0), (3, 5))))
    '[0:9, 2:6]'
    """

    width: int
    domain: Shape

    def region(self, box: Shape) -> Shape:
        """The columns of the items of the box."""
        return self.domain.slab(1, box.lower[0] * self.width, box.upper[0] * self.width)


@dataclass(frozen=True)
class Rows:
    """Each item reads the rows of `domain` from its own + `first` to its own + `last`.

    >>> str(Rows(-1, 2, Shape((0, 0), (9, 8))).region(Shape((0, 0), (3, 5))))
    '[0:5, 0:8]'
    """

    first: int
    last: int
    domain: Shape

    def region(self, box: Shape) -> Shape:
        """Their rows within the domain."""
        low, high = box.lower[0] + self.first, box.upper[0] + self.last
        return self.domain.slab(0, max(low, 0), min(high, self.domain.upper[0]))


@dataclass(frozen=True)
class Copied:
    """Each place has a copy of all of it, so that none is exchanged, whatever is read of it."""

    map: Union[Columns, Rows, All]

    def region(self, box: Shape) -> Shape:
        """What is read."""
        return self.map.region(box)


Map: TypeAlias = Union[Here, Near, Along, All, Mapped, Row, Columns, Rows, Copied]


def map_of_items(items: Items, field: str) -> Map:
    """Where an item reads `field`."""
    use, kind = items.use_of[field], items.kind_of[field]
    domain = Shape.of_extent(kind.extent)
    if use == "row":
        return Row(domain.extent[1])
    found: Columns | Rows | All = All(domain)
    if use == "column":
        found = Columns(domain.extent[1] // kind.shape[1], domain)
    elif use != "all":
        found = Rows(use.first, use.last, domain)
    return Copied(found) if kind.copied else found
