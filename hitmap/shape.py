# SPDX-License-Identifier: MIT
"""Boxes of cells.

A `Shape` is a half-open box of cells in *global* indices: `lower <= i < upper` on every axis,
C order, axis 0 slowest.  It owns no data and knows neither MPI nor devices; layouts, halo
patterns and tiles are all written in terms of it.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from hitmap.argument import wholes


@dataclass(frozen=True, slots=True)
class Shape:
    """Half-open box of cells, a value.

    Coordinates may be negative: the halo of a periodic domain lies outside of it.  A box whose
    upper end is not above its lower end on some axis holds no cells.

    >>> domain = Shape((0, 0), (6, 4))
    >>> domain.extent, domain.n_cells
    ((6, 4), 24)
    >>> str(domain & Shape((4, -2), (9, 2)))
    '[4:6, 0:2]'
    """

    lower: tuple[int, ...]
    upper: tuple[int, ...]

    def __post_init__(self) -> None:
        if type(self.lower) is not tuple or type(self.upper) is not tuple:
            object.__setattr__(self, "lower", wholes(self.lower, "lower"))
            object.__setattr__(self, "upper", wholes(self.upper, "upper"))
        if len(self.lower) != len(self.upper):
            raise ValueError(
                f"Shape: lower {self.lower} and upper {self.upper} must have the same number of "
                f"axes, got {len(self.lower)} and {len(self.upper)}"
            )
        for end in (*self.lower, *self.upper):
            if type(end) is not int:
                object.__setattr__(self, "lower", wholes(self.lower, "lower"))
                object.__setattr__(self, "upper", wholes(self.upper, "upper"))
                break

    @classmethod
    def of_extent(cls, extent: Sequence[int]) -> Shape:
        """The box of so many cells on each axis, from the origin.

        >>> Shape.of_extent([6, 4])
        Shape(lower=(0, 0), upper=(6, 4))
        """
        upper = wholes(extent, "extent")
        if any(count < 0 for count in upper):
            raise ValueError(f"extent: cells per axis must be 0 or more, got {upper}")
        return cls((0,) * len(upper), upper)

    @property
    def n_axes(self) -> int:
        """Number of axes."""
        return len(self.lower)

    @property
    def extent(self) -> tuple[int, ...]:
        """Cells on each axis; 0 where the box is empty."""
        return tuple(max(0, hi - lo) for lo, hi in zip(self.lower, self.upper, strict=True))

    @property
    def n_cells(self) -> int:
        """Cells in the box."""
        return math.prod(self.extent)

    @property
    def empty(self) -> bool:
        """Whether the box holds no cells."""
        return any(hi <= lo for lo, hi in zip(self.lower, self.upper, strict=True))

    def __and__(self, other: Shape) -> Shape:
        """Cells in both boxes (possibly an empty box)."""
        _check_axes(self, other)
        return Shape(
            tuple(map(max, self.lower, other.lower)),
            tuple(map(min, self.upper, other.upper)),
        )

    def meets(self, other: Shape) -> bool:
        """Whether a cell is in both boxes.

        >>> Shape((0, 0), (6, 4)).meets(Shape((4, -2), (9, 2)))
        True
        """
        if len(self.lower) != len(other.lower):
            _check_axes(self, other)
        for low, high, lo, hi in zip(self.lower, self.upper, other.lower, other.upper):
            if low >= hi or lo >= high or low >= high or lo >= hi:
                return False
        return True

    def __contains__(self, other: Shape) -> bool:
        """Whether every cell of `other` is in this box; an empty box is inside any.

        >>> Shape((1, 1), (3, 3)) in Shape((0, 0), (3, 4))
        True
        """
        _check_axes(self, other)
        return other.empty or (
            all(map(operator.le, self.lower, other.lower))
            and all(map(operator.ge, self.upper, other.upper))
        )

    def shift(self, by: tuple[int, ...]) -> Shape:
        """This box moved by so many cells on each axis.

        >>> str(Shape((0, 0), (6, 4)).shift((-6, 1)))
        '[-6:0, 1:5]'
        """
        return Shape(
            tuple(lo + step for lo, step in zip(self.lower, by, strict=True)),
            tuple(hi + step for hi, step in zip(self.upper, by, strict=True)),
        )

    def grow(self, low: tuple[int, ...], high: tuple[int, ...]) -> Shape:
        """This box with cells added at the low and the high side of each axis; negative removes.

        >>> str(Shape((0, 0), (6, 4)).grow((1, 0), (2, -1)))
        '[-1:8, 0:3]'
        """
        return Shape(
            tuple(lo - cells for lo, cells in zip(self.lower, low, strict=True)),
            tuple(hi + cells for hi, cells in zip(self.upper, high, strict=True)),
        )

    def slab(self, axis: int, lower: int, upper: int) -> Shape:
        """This box with other ends on one axis; they may lie outside of it.

        >>> str(Shape((0, 0), (6, 4)).slab(0, -1, 2))
        '[-1:2, 0:4]'
        """
        if not 0 <= axis < self.n_axes:
            raise ValueError(f"axis must be in 0..{self.n_axes - 1}, got {axis}")
        return Shape(
            (*self.lower[:axis], lower, *self.lower[axis + 1 :]),
            (*self.upper[:axis], upper, *self.upper[axis + 1 :]),
        )

    def hull(self, other: Shape) -> Shape:
        """The smallest box that holds both; an empty one adds nothing.

        >>> str(Shape((0, 0), (1, 1)).hull(Shape((3, -2), (4, 1))))
        '[0:4, -2:1]'
        """
        _check_axes(self, other)
        if other.empty:
            return self
        if self.empty:
            return other
        return Shape(
            tuple(map(min, self.lower, other.lower)),
            tuple(map(max, self.upper, other.upper)),
        )

    def indices(self) -> tuple[npt.NDArray[np.intp], ...]:
        """The indices of the cells, an array per axis, which broadcast to all (an open grid).

        >>> i, j = Shape((0, 5), (2, 8)).indices()
        >>> (10 * i + j).tolist()
        [[5, 6, 7], [15, 16, 17]]
        """
        return np.ix_(*(np.arange(lo, hi) for lo, hi in zip(self.lower, self.upper, strict=True)))

    def slices(self, origin: tuple[int, ...]) -> tuple[slice, ...]:
        """NumPy index of this box in an array whose first cell is `origin`.

        The box must not start before `origin`: NumPy would count from the array's end.

        >>> Shape((3, 0), (6, 4)).slices(origin=(2, 0))
        (slice(1, 4, None), slice(0, 4, None))
        """
        if any(lo < first for lo, first in zip(self.lower, origin, strict=True)):
            raise ValueError(f"box {self} must not start before the array's first cell {origin}")
        return tuple(
            slice(lo - first, max(lo, hi) - first)
            for lo, hi, first in zip(self.lower, self.upper, origin, strict=True)
        )

    def __str__(self) -> str:
        ends = zip(self.lower, self.upper, strict=True)
        return "[" + ", ".join(f"{lo}:{hi}" for lo, hi in ends) + "]"


def _check_axes(one: Shape, other: Shape) -> None:
    if len(one.lower) != len(other.lower):
        raise ValueError(
            f"boxes must have the same number of axes, got {one} with {one.n_axes} and "
            f"{other} with {other.n_axes}"
        )
