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
from functools import cached_property
from itertools import pairwise, product

from hitmap.cut import per_axis, split_even, split_weighted
from hitmap.shape import Shape
from hitmap.topology import Topology
from hitmap.weighted_blocks import weighted_blocks

MAX_BLOCKS = 2048   # of a tiled layout: the memory of plans grows as the square of places


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
    def bands(cls, domain: Shape, n_places: int, align: int | Sequence[int] = 1) -> Layout:
        """Slabs along axis 0 whose numbers of rows differ by at most 1 (or `align`)."""
        return cls.blocks(domain, n_places, (0,), align)

    @classmethod
    def blocks(
        cls,
        domain: Shape,
        n_places: int,
        axes: tuple[int, ...] | None = None,
        align: int | Sequence[int] = 1,
    ) -> Layout:
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
        steps = per_axis("align", align, domain.n_axes)
        topology = Topology.balanced(n_places, domain.extent, axes, steps)
        return cls.grid(domain, topology.dims, steps)

    @classmethod
    def grid(
        cls, domain: Shape, dims: Sequence[int], align: int | Sequence[int] = 1
    ) -> Layout:
        """Blocks with even cuts, `dims[axis]` of them along each axis.

        >>> print(Layout.grid(Shape.of_extent((4, 9)), (1, 3)))
        place 0: [0:4, 0:3]
        place 1: [0:4, 3:6]
        place 2: [0:4, 6:9]
        """
        topology = Topology(per_axis("dims", dims, domain.n_axes))
        steps = per_axis("align", align, domain.n_axes)
        cuts = map(split_even, domain.extent, topology.dims, steps)
        return cls(domain, _boxes_between(domain, list(cuts)), topology)

    @classmethod
    def weighted(
        cls, domain: Shape, weights: Sequence[float], align: int | Sequence[int] = 1
    ) -> Layout:
        """Slabs along axis 0 in proportion to `weights`, one per place.

        >>> print(Layout.weighted(Shape.of_extent((10, 4)), [1, 0, 3.7]))
        place 0: [0:2, 0:4]
        place 1: no cells
        place 2: [2:10, 0:4]
        """
        steps = per_axis("align", align, domain.n_axes)
        cuts = [split_weighted(domain.extent[0], weights, steps[0])]
        cuts += [[0, count] for count in domain.extent[1:]]
        topology = Topology((len(weights),) + (1,) * (domain.n_axes - 1))
        return cls(domain, _boxes_between(domain, cuts), topology)

    @classmethod
    def weighted_blocks(
        cls, domain: Shape, weights: Sequence[float], align: int | Sequence[int] = 1
    ) -> Layout:
        """Blocks in proportion to `weights`, one per place: bands, each cut by itself.

        Which places form a band is chosen for the least area of the cuts.

        >>> print(Layout.weighted_blocks(Shape.of_extent((8, 6)), [3, 1, 2]))
        place 0: [0:4, 0:6]
        place 1: [4:8, 0:2]
        place 2: [4:8, 2:6]
        """
        steps = per_axis("align", align, domain.n_axes)
        return cls(domain, tuple(weighted_blocks(domain, weights, steps)))

    @classmethod
    def tiled(cls, domain: Shape, block: int | Sequence[int]) -> Layout:
        """One place per block of the given extent, smaller at the upper ends, in C order.

        Dealt to the ranks in turn the blocks are distributed block-cyclically.

        >>> print(Layout.tiled(Shape.of_extent((3, 5)), (2, 4)))
        place 0: [0:2, 0:4]
        place 1: [0:2, 4:5]
        place 2: [2:3, 0:4]
        place 3: [2:3, 4:5]
        """
        steps = per_axis("block", block, domain.n_axes)
        dims = tuple(max(1, -(-count // step)) for count, step in zip(domain.extent, steps))
        if math.prod(dims) > MAX_BLOCKS:
            raise ValueError(
                f"block: at most {MAX_BLOCKS} blocks, but blocks of {steps} cut {domain.extent} "
                f"cells into {math.prod(dims)}; use larger ones"
            )
        cuts = [
            [*range(0, count, step), count] if count else [0, 0]
            for count, step in zip(domain.extent, steps)
        ]
        return cls(domain, _boxes_between(domain, cuts), Topology(dims))

    def grown(self, more: Sequence[int]) -> Layout:
        """The same with so many more cells at the upper end of each axis, for the last places.

        >>> print(Layout.bands(Shape.of_extent((4, 2)), 2).grown((1, 0)))
        place 0: [0:2, 0:2]
        place 1: [2:5, 0:2]
        """
        if not any(more):
            return self
        nothing, last = (0,) * self.domain.n_axes, self.domain.upper
        owned = (
            box.grow(nothing, tuple(n * (a == b) for n, a, b in zip(more, box.upper, last)))
            if not box.empty else box
            for box in self.owned
        )  # fmt: skip
        return Layout(self.domain.grow(nothing, tuple(more)), tuple(owned), self.topology)

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

    def __repr__(self) -> str:
        cells = " x ".join(map(str, self.domain.extent))
        return f"<Layout of {cells} cells, places: {self.n_places}>"

    def __str__(self) -> str:
        return "\n".join(
            f"place {place}: {'no cells' if box.empty else box}"
            for place, box in enumerate(self.owned)
        )


def _boxes_between(domain: Shape, cuts: Sequence[Sequence[int]]) -> tuple[Shape, ...]:
    """The boxes of a grid, in C order; `cuts` count from the domain's lower end."""
    intervals = [
        [(first + lower, first + upper) for lower, upper in pairwise(ends)]
        for first, ends in zip(domain.lower, cuts, strict=True)
    ]
    return tuple(Shape(*map(tuple, zip(*ends, strict=True))) for ends in product(*intervals))
