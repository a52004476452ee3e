# SPDX-License-Identifier: MIT
"""Sections: what an index in brackets selects of an array that is distributed over places.

A section has positions of its own, from 0 along each axis, and every place holds a box of them: so
a section is itself a domain with a layout, and moves like a whole field.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from hitmap.argument import short, whole
from hitmap.layout import Layout
from hitmap.shape import Shape

_REMEDY = "write whole numbers, slices and ..., or take the array first, by np.asarray"


@dataclass(frozen=True)
class Section:
    """The cells at `ranges[axis]` along each axis; `dropped`: the axes that had a whole number.

    >>> section = Section.of((slice(None, None, 3), -1), (10, 4))
    >>> section.shape, section.extent
    ((4,), (4, 1))
    """

    ranges: tuple[range, ...]
    dropped: tuple[bool, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:     # sections are used again and again
        return hash((self.ranges, self.dropped))

    @classmethod
    def of(cls, index: object, extent: Sequence[int]) -> Section:
        """What `array[index]` is of an array of `extent` cells, by NumPy's rules.

        IndexError and TypeError where NumPy raises them, and for what makes new axes or takes
        arrays of indices.
        """
        given = index if isinstance(index, tuple) else (index,)
        key = _key(given)
        return cls._of(given, extent) if key is None else _plain(key, tuple(extent))

    @classmethod
    def _of(cls, given: tuple[Any, ...], extent: Sequence[int]) -> Section:
        n_dots = sum([one is ... for one in given])
        if n_dots > 1 or len(given) - n_dots > len(extent):
            raise IndexError(
                f"the index {short(given)} has more than {len(extent)} axes or more than one ...; "
                f"{_REMEDY}"
            )
        missing = (slice(None),) * (len(extent) - len(given) + n_dots)
        at = next((n for n, one in enumerate(given) if one is ...), len(given))
        each = (*given[:at], *missing, *given[at + 1 :])
        return cls(
            tuple([_range(one, n, axis) for axis, (one, n) in enumerate(zip(each, extent))]),
            tuple([not isinstance(one, slice) for one in each]),
        )

    def part(self, index: object) -> Section:
        """The cells that an index selects of the array that is selected.

        >>> [*Section.of((slice(2, None, 2), 1), (9, 9)).part(slice(1, None)).ranges[0]]
        [4, 6, 8]
        """
        inner = Section.of(index, self.shape)
        of, gone = iter(inner.ranges), iter(inner.dropped)
        ranges, dropped = [], []
        for cells, was_dropped in zip(self.ranges, self.dropped):
            part = range(1) if was_dropped else next(of)
            first, step = cells[part[0]] if part else 0, cells.step * part.step
            ranges.append(range(first, first + step * len(part), step))
            dropped.append(was_dropped or next(gone))
        return Section(tuple(ranges), tuple(dropped))

    @property
    def extent(self) -> tuple[int, ...]:
        """Positions along each axis; 1 where it had a whole number."""
        return tuple(map(len, self.ranges))

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the array that is selected."""
        return tuple(n for n, dropped in zip(self.extent, self.dropped) if not dropped)

    def divided(self, layout: Layout) -> Layout:
        """Which positions each place of `layout` has.

        >>> section = Section.of(slice(None, None, -3), (10,))
        >>> print(section.divided(Layout.bands(Shape.of_extent((10,)), 3)))
        place 0: [2:4]
        place 1: [1:2]
        place 2: [0:1]
        """
        owned = tuple(map(self._within, layout.owned))
        return Layout(Shape.of_extent(self.extent), owned)

    def _within(self, box: Shape) -> Shape:
        ends = [
            _positions(cells, lower, upper)
            for cells, lower, upper in zip(self.ranges, box.lower, box.upper)
        ]
        return Shape(tuple(low for low, _ in ends), tuple(high for _, high in ends))

    def cells(self, positions: Shape) -> Shape:
        """The smallest box that has the cells at these positions, of which there are some."""
        ends = [
            (cells[lower], cells[upper - 1])
            for cells, lower, upper in zip(self.ranges, positions.lower, positions.upper)
        ]
        return Shape(tuple(map(min, ends)), tuple(max(pair) + 1 for pair in ends))

    @property
    def steps(self) -> tuple[slice, ...]:
        """Where the cells at some positions are in an array over `cells(positions)`.

        >>> Section.of(slice(None, None, -3), (10,)).steps
        (slice(None, None, -3),)
        """
        return tuple(slice(None, None, cells.step) for cells in self.ranges)

    def taken(self, values: npt.NDArray[Any]) -> Any:
        """Of an array over all positions that without the dropped axes; a number if none is left.

        >>> Section.of((1, slice(2)), (3, 3)).taken(np.array([[5, 6]])).tolist()
        [5, 6]
        """
        return values[tuple(0 if dropped else slice(None) for dropped in self.dropped)]

    def spread(self, values: npt.ArrayLike) -> npt.NDArray[Any]:
        """`values` as an array over all positions; ValueError where NumPy cannot repeat them so.

        >>> Section.of((1, slice(2)), (3, 3)).spread(7).tolist()
        [[7, 7]]
        """
        array = np.asarray(values)
        while array.ndim > len(self.shape) and array.shape[0] == 1:
            array = array[0]
        try:
            repeated = np.broadcast_to(array, self.shape)
        except ValueError:
            raise ValueError(
                f"values of the shape {array.shape} do not fit the cells {self.shape} that the "
                f"index selects; give a number, or an array of that shape"
            ) from None
        return repeated[tuple(np.newaxis if dropped else slice(None) for dropped in self.dropped)]


def _key(given: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """What equal indices share, of Python's numbers, slices of them and ...; None of others."""
    found: list[Any] = []
    for one in given:
        if type(one) is slice:
            first, end, step = one.start, one.stop, one.step
            for part in (first, end, step):
                if part is not None and type(part) is not int:
                    return None
            found.append((first, end, step))
        elif type(one) is int or one is ...:
            found.append(one)
        else:
            return None
    return tuple(found)


@lru_cache(maxsize=1024)
def _plain(key: tuple[Any, ...], extent: tuple[int, ...]) -> Section:
    """Of an index that has a key, made once: programs use the same ones again and again."""
    given = tuple([slice(*one) if type(one) is tuple else one for one in key])
    return Section._of(given, extent)


def _range(one: Any, n_cells: int, axis: int) -> range:
    if isinstance(one, slice):
        return range(n_cells)[one]
    if isinstance(one, (bool, np.bool_)) or not isinstance(one, (int, np.integer)):
        raise TypeError(f"the index of axis {axis} is {short(one)}; {_REMEDY}")
    position = whole(one, "an index")
    if not -n_cells <= position < n_cells:
        raise IndexError(f"the index {position} of axis {axis} is not among its {n_cells} cells")
    return range(position % n_cells, position % n_cells + 1)


def _positions(cells: range, lower: int, upper: int) -> tuple[int, int]:
    """The positions of the cells that lie in lower <= i < upper, which follow one another."""
    first, last = (lower, upper - 1) if cells.step > 0 else (upper - 1, lower)
    low = -((cells.start - first) // cells.step)
    high = (last - cells.start) // cells.step + 1
    return max(0, low), max(0, low, min(high, len(cells)))
