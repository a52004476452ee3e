# SPDX-License-Identifier: MIT
"""Layouts: which part of the domain each place owns.

A `Layout` is arithmetic on boxes, the same on every rank, for any number of places; some of
them may own no cells.  No Cartesian neighbours are assumed: who owns a box is looked up.
"""
from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, product

from hitmap.shape import Shape
from hitmap.topology import Topology


def split_even(count: int, parts: int) -> list[int]:
    """Cut points of `count` cells in `parts` parts, sizes differing by at most 1, larger first.

    >>> split_even(10, 4)
    [0, 3, 6, 8, 10]
    """
    if count < 0 or parts < 1:
        raise ValueError(f"split: 0 or more cells in 1 or more parts, got {count} in {parts}")
    size, n_larger = divmod(count, parts)
    return [part * size + min(part, n_larger) for part in range(parts + 1)]


def split_weighted(count: int, weights: Sequence[float]) -> list[int]:
    """Cut points of `count` cells in proportion to `weights`, each within one cell of its share.

    A weight of 0 gives no cells.

    >>> split_weighted(10, [1, 1, 3])
    [0, 2, 4, 10]
    """
    if count < 0:
        raise ValueError(f"split: 0 or more cells, got {count}")
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
        raise ValueError(
            f"weights must be finite and not negative, with a positive sum, got {list(weights)}"
        )
    sums = list(accumulate(map(Fraction, weights)))  # exact: no rounding, no overflow
    return [0, *(math.floor(count * so_far / sums[-1] + Fraction(1, 2)) for so_far in sums)]


@dataclass(frozen=True)
class Layout:
    """Disjoint boxes, one per place, that together cover the domain.

    >>> print(Layout.bands(Shape.of_extent((10, 4)), 3))
    place 0: [0:4, 0:4]
    place 1: [4:7, 0:4]
    place 2: [7:10, 0:4]
    """

    domain: Shape
    owned: tuple[Shape, ...]
    topology: Topology | None = None

    def __post_init__(self) -> None:
        if not self.owned:
            raise ValueError("a layout needs at least 1 place, got none")
        if self.topology is not None and self.topology.n_places != self.n_places:
            raise ValueError(
                f"a topology of {self.topology.dims} has {self.topology.n_places} places, "
                f"the layout has {self.n_places}"
            )
        for place, box in enumerate(self.owned):
            if box not in self.domain:
                raise ValueError(f"place {place} owns {box}, outside the domain {self.domain}")
            for other in self._places_in(box):
                if other != place:
                    raise ValueError(
                        f"places {place} and {other} both own {box & self.owned[other]}; "
                        f"owned boxes must be disjoint"
                    )
        n_owned = sum(box.n_cells for box in self.owned)
        if n_owned != self.domain.n_cells:
            raise ValueError(
                f"the places own {n_owned} of the {self.domain.n_cells} cells of {self.domain}; "
                f"owned boxes must cover the domain"
            )

    @classmethod
    def bands(cls, domain: Shape, n_places: int) -> Layout:
        """Slabs along axis 0 whose numbers of rows differ by at most 1."""
        return cls.blocks(domain, n_places, axes=(0,))

    @classmethod
    def blocks(cls, domain: Shape, n_places: int, axes: tuple[int, ...] | None = None) -> Layout:
        """Blocks along `axes` (default: all) with even cuts, arranged by `Topology.balanced`.

        >>> print(Layout.blocks(Shape.of_extent((4, 9)), 6))
        place 0: [0:2, 0:3]
        place 1: [0:2, 3:6]
        place 2: [0:2, 6:9]
        place 3: [2:4, 0:3]
        place 4: [2:4, 3:6]
        place 5: [2:4, 6:9]
        """
        axes = tuple(range(domain.n_axes)) if axes is None else axes
        topology = Topology.balanced(n_places, domain.extent, axes)
        cuts = map(split_even, domain.extent, topology.dims)
        return cls(domain, _boxes_between(domain, list(cuts)), topology)

    @classmethod
    def weighted(cls, domain: Shape, weights: Sequence[float]) -> Layout:
        """Slabs along axis 0 in proportion to `weights`, one per place.

        >>> print(Layout.weighted(Shape.of_extent((10, 4)), [1, 0, 3.7]))
        place 0: [0:2, 0:4]
        place 1: no cells
        place 2: [2:10, 0:4]
        """
        cuts = [split_weighted(domain.extent[0], weights)]
        cuts += [[0, count] for count in domain.extent[1:]]
        topology = Topology((len(weights),) + (1,) * (domain.n_axes - 1))
        return cls(domain, _boxes_between(domain, cuts), topology)

    @property
    def n_places(self) -> int:
        """Places, with and without cells."""
        return len(self.owned)

    def owners(self, box: Shape) -> list[tuple[int, Shape]]:
        """Which place owns which part of `box`, by place; `box` lies inside the domain.

        >>> layout = Layout.bands(Shape.of_extent((10, 4)), 3)
        >>> [(place, str(part)) for place, part in layout.owners(Shape((3, 1), (5, 2)))]
        [(0, '[3:4, 1:2]'), (1, '[4:5, 1:2]')]
        """
        if box not in self.domain:
            raise ValueError(f"box {box} must lie inside the domain {self.domain}")
        return [(place, box & self.owned[place]) for place in self._places_in(box)]

    def _places_in(self, box: Shape) -> Iterator[int]:
        """The places that own cells of `box`, in order."""
        if box.empty:
            return
        found = -1  # all places
        for (cuts, places), lower, upper in zip(self._index, box.lower, box.upper, strict=True):
            on_axis = 0
            for between in range(bisect_right(cuts, lower) - 1, bisect_left(cuts, upper)):
                on_axis |= places[between]
            found &= on_axis
        while found:
            lowest = found & -found
            yield lowest.bit_length() - 1
            found ^= lowest

    @cached_property
    def _index(self) -> list[tuple[list[int], list[int]]]:
        """On each axis the cut points and, after each, the set of places there (as bits)."""
        index = []
        for axis in range(self.domain.n_axes):
            ends = [
                (place, box.lower[axis], box.upper[axis])
                for place, box in enumerate(self.owned)
                if not box.empty
            ]
            cuts = sorted({end for _, *pair in ends for end in pair})
            position = {cut: number for number, cut in enumerate(cuts)}
            places = [0] * len(cuts)
            for place, lower, upper in ends:
                for between in range(position[lower], position[upper]):
                    places[between] |= 1 << place
            index.append((cuts, places))
        return index

    def __str__(self) -> str:
        return "\n".join(
            f"place {place}: {'no cells' if box.empty else box}"
            for place, box in enumerate(self.owned)
        )


def _boxes_between(domain: Shape, cuts: Sequence[Sequence[int]]) -> tuple[Shape, ...]:
    """The boxes of a grid, in C order; `cuts` count from the domain's lower end."""
    intervals = [
        [(first + lower, first + upper) for lower, upper in zip(ends, ends[1:], strict=False)]
        for first, ends in zip(domain.lower, cuts, strict=True)
    ]
    return tuple(Shape(*map(tuple, zip(*ends, strict=True))) for ends in product(*intervals))
