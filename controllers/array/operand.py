# SPDX-License-Identifier: MIT
"""Operands: terms with the positions that they have; and arrays and numbers made to fit them."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from controllers.array.term import Term
from hitmap.section import Section
from hitmap.shape import Shape

Extent: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Frame:
    """The positions of an array: so many along each axis of the fields, those `dropped` being 1."""

    extent: Extent
    dropped: tuple[bool, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array."""
        return tuple([n for n, dropped in zip(self.extent, self.dropped) if not dropped])

    @property
    def n_cells(self) -> int:
        return Shape.of_extent(self.extent).n_cells

    @property
    def is_empty(self) -> bool:
        """Whether there is none."""
        return 0 in self.extent

    def cells(self, start: Sequence[int]) -> Shape:
        """The cells of the positions, the first one being `start`."""
        return Shape(tuple(start), tuple(a + n for a, n in zip(start, self.extent)))

    def takes(self, other: Frame) -> bool:
        """Whether NumPy puts an array with these positions of `other` there, cell by cell."""
        if other.extent != self.extent or other.dropped == self.dropped:
            return other.extent == self.extent
        mine = [axis for axis, dropped in enumerate(self.dropped) if not dropped]
        theirs = [axis for axis, dropped in enumerate(other.dropped) if not dropped]
        while len(theirs) > len(mine) and other.extent[theirs[0]] == 1:
            theirs.pop(0)
        return len(theirs) <= len(mine) and theirs == mine[len(mine) - len(theirs) :]

    def section(self, index: object) -> Section:
        """The positions that an index selects of the array."""
        inner = Section.of(index, self.shape)
        ranges, dropped = iter(inner.ranges), iter(inner.dropped)
        return Section(
            tuple(range(1) if gone else next(ranges) for gone in self.dropped),
            tuple(True if gone else next(dropped) for gone in self.dropped),
        )


@lru_cache(maxsize=1024)
def unit(section: Section) -> tuple[tuple[int, ...], Frame] | None:
    """The first cell and the frame of a section whose cells follow one another; else None."""
    start = []
    for one in section.ranges:
        if one.step != 1 and len(one) > 1:
            return None
        start.append(one.start if one else 0)
    return tuple(start), Frame(section.extent, section.dropped)


Operand: TypeAlias = tuple[Term, Frame]
