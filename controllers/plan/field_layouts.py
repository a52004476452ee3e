# SPDX-License-Identifier: MIT
"""Which cells of each field the places own: of fields at half points the last places have more."""
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from controllers.program.boundary import closed
from controllers.program.program import Program
from hitmap.layout import Layout
from hitmap.shape import Shape
from hitmap.strided import whole_vectors

MOST_ROOM = 1.125   # cells of a tile over those that are used, where fields lie alike


class FieldLayouts:
    """The cells of a program's fields, divided as the cells of its domain are.

    periodic: which axes are rings.  ValueError where the fields say other things.
    """

    def __init__(self, program: Program, layout: Layout, periodic: tuple[bool, ...]) -> None:
        self.program = program
        self.layout = layout
        self.periodic = closed(periodic, program.boundaries, program.n_axes)
        unit = Shape.of_extent((0,) * program.n_axes)
        fields = (*program.fields, *program.temporaries)
        shared = [one for one in fields if not one.boundary.extent]
        more = {one.name: one.boundary.points(unit, self.periodic).upper for one in shared}
        grown = {some: layout.grown(some) for some in {*more.values()}}
        self._layouts = {field: grown[some] for field, some in more.items()}
        self._layouts |= {
            one.name: self.layout_apart(one.name, Shape.of_extent(one.boundary.extent))
            for one in fields if one.boundary.extent
        }

    def layout_apart(self, field: str, domain: Shape) -> Layout:
        """That of a field with an extent of its own: as many rows are cut as those of the program.
        """
        own = self.layout
        if domain.extent[0] != own.domain.extent[0]:
            return Layout.bands(domain, own.n_places)
        return Layout(domain, tuple(
            Shape((part.lower[0], 0), (part.upper[0], *domain.upper[1:])) for part in own.owned
        ))  # fmt: skip

    def layout_of(self, field: str) -> Layout:
        """Which cells of a field each place owns; one layout for fields that lie together."""
        return self._layouts[field]

    def owned(self, field: str, place: int) -> Shape:
        """The cells of a field that a place owns."""
        return self._layouts[field].owned[place]

    def walls(self, field: str) -> tuple[Shape, ...]:
        """The cells of a field on the ends where it is 0."""
        domain = self._layouts[field].domain
        ends = self.program.field(field).boundary.walls
        at = [domain.upper[axis] - 1 if upper else domain.lower[axis] for axis, upper in ends]
        return tuple(domain.slab(axis, one, one + 1) for (axis, _), one in zip(ends, at))


def alike(own: Shape, every: Sequence[Shape], first: int) -> Shape:
    """The box of a field's tile in a device's own memory: `own`, with room that nobody uses.

    It is as large as that of all fields, so that cells lie at the same elements of all and one
    index tells where, unless that is much larger; then rows start with the same cell at least, as
    kernels of several fields ask for rows that are aligned alike.  In rows, cell `first`, which is
    the first one of the place's own, lies at a multiple of PITCH_MULTIPLE elements.

    >>> u, v = Shape((-1, -1), (120, 121)), Shape((0, 0), (120, 120))
    >>> str(alike(v, [u, v], 0))
    '[-1:120, -8:121]'
    >>> str(alike(v, [u.grow((90, 1), (0, 0)), v], 0))
    '[0:120, -8:120]'
    """
    if own.empty:
        return own
    hull = reduce(Shape.hull, every, own)
    if hull.n_cells > own.n_cells * MOST_ROOM:
        hull = Shape((*own.lower[:-1], hull.lower[-1]), own.upper)
    return Shape((*hull.lower[:-1], first - whole_vectors(first - hull.lower[-1])), hull.upper)
