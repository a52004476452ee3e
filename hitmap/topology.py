# SPDX-License-Identifier: MIT
"""Cartesian arrangements of places.

A `Topology` numbers the places of a grid in C order: the last axis varies fastest.  Layouts
need not have one, and halo patterns never ask for it.
"""
from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topology:
    """A grid of places, `dims[axis]` of them along each axis.

    >>> grid = Topology((3, 4))
    >>> grid.n_places, grid.coordinates(6), grid.place((1, 2))
    (12, (1, 2), 6)
    """

    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.dims or min(self.dims) < 1:
            raise ValueError(f"dims: at least 1 place on each of 1 or more axes, got {self.dims}")

    @classmethod
    def balanced(
        cls,
        n_places: int,
        extent: tuple[int, ...],
        axes: tuple[int, ...],
        align: tuple[int, ...] | None = None,
    ) -> Topology:
        """The grid of `n_places` along `axes` whose cuts through `extent` cells are smallest.

        Fewest places without cells come first (cuts are at multiples of `align` on each axis, by
        default anywhere), then the least area of the cuts (the cells that a halo of width 1
        sends one way); among equals the one with more places along the earlier axes, whose slabs
        are contiguous.

        >>> Topology.balanced(6, (100, 300), axes=(0, 1)).dims
        (2, 3)
        >>> Topology.balanced(6, (100, 300), axes=(0,)).dims
        (6, 1)
        """
        if n_places < 1:
            raise ValueError(f"n_places: at least 1, got {n_places}")
        if not axes or len(set(axes)) < len(axes) or not set(axes) <= set(range(len(extent))):
            raise ValueError(f"axes: one or more different of 0..{len(extent) - 1}, got {axes}")
        steps = align or (1,) * len(extent)
        most = [-(-count // step) for count, step in zip(extent, steps, strict=True)]

        def cost(dims: tuple[int, ...]) -> tuple[int, int, tuple[int, ...]]:
            n_used = math.prod(map(min, dims, most))
            area = sum(
                (n_parts - 1) * math.prod(extent[:axis] + extent[axis + 1 :])
                for axis, n_parts in enumerate(dims)
            )
            return -n_used, area, tuple(-n_parts for n_parts in dims)

        return cls(min(factorisations(n_places, len(extent), frozenset(axes)), key=cost))

    @property
    def n_places(self) -> int:
        """Places in the grid."""
        return math.prod(self.dims)

    def coordinates(self, place: int) -> tuple[int, ...]:
        """Position of a place in the grid."""
        if not 0 <= place < self.n_places:
            raise ValueError(f"place must be in 0..{self.n_places - 1}, got {place}")
        position = []
        for n_parts in reversed(self.dims):
            place, along = divmod(place, n_parts)
            position.append(along)
        return tuple(reversed(position))

    def place(self, coordinates: tuple[int, ...]) -> int:
        """Number of the place at a position in the grid."""
        if len(coordinates) != len(self.dims) or not all(
            0 <= along < n_parts for along, n_parts in zip(coordinates, self.dims, strict=True)
        ):
            raise ValueError(f"coordinates must lie in a grid of {self.dims}, got {coordinates}")
        number = 0
        for along, n_parts in zip(coordinates, self.dims, strict=True):
            number = number * n_parts + along
        return number

    def neighbour(
        self, place: int, direction: tuple[int, ...], periodic: tuple[bool, ...]
    ) -> int | None:
        """The place `direction` steps away; None beyond an end that is not periodic.

        >>> Topology((3, 4)).neighbour(0, (-1, 1), periodic=(True, False))
        9
        """
        steps = zip(self.coordinates(place), direction, self.dims, periodic, strict=True)
        position = []
        for along, step, n_parts, wraps in steps:
            if not wraps and not 0 <= along + step < n_parts:
                return None
            position.append((along + step) % n_parts)
        return self.place(tuple(position))


def factorisations(count: int, n_axes: int, axes: frozenset[int]) -> Iterator[tuple[int, ...]]:
    """All ways to write `count` as a product of `n_axes` factors that are 1 outside `axes`.

    >>> sorted(factorisations(4, 2, frozenset({0, 1})))
    [(1, 4), (2, 2), (4, 1)]
    """
    if n_axes == 0:
        if count == 1:
            yield ()
        return
    axis = n_axes - 1
    for factor in range(1, (count if axis in axes else 1) + 1):
        if count % factor == 0:
            for rest in factorisations(count // factor, axis, axes):
                yield (*rest, factor)
