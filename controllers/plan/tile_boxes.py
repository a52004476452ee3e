# SPDX-License-Identifier: MIT
"""Which cells the tiles of a plan hold, and how these lie in memory.

Beside the cells that a place owns, receives, or computes around them, tiles may have *room*: rows
that nobody uses until a cut between places moves there, for which nothing is allocated then.
"""
# docs/decisions/0110-cuts-move-within-the-room-of-tiles.md
from __future__ import annotations

from functools import reduce

from controllers.plan.field_layouts import alike
from controllers.plan.halos import Halos
from controllers.plan.operation import Location, TileKey
from controllers.program.sweep import Sweep
from hitmap.layout import Layout
from hitmap.shape import Shape
from hitmap.strided import Geometry


class TileBoxes(Halos):
    """The tiles of the places of a plan.

    halo_capacity: cells below and above per axis, the least halo that is allocated, whatever is in
    use.  room: rows along axis 0 of the domain that are allocated beside what places need, below
    and above.  tiles_of: the plan with whose tiles this one does, too.
    """

    locations: tuple[Location, ...]
    halo_capacity: tuple[tuple[int, int], ...]
    room: int
    tiles_of: TileBoxes | None

    def geometry(self, field: str, place: int) -> Geometry:
        """How the tiles of `field` at `place` lie in memory: owned cells and halo.

        In host memory without padding, so that rows are one message; in a device's with rows
        that start at multiples of PITCH_MULTIPLE elements, as kernels read vectors there, and all
        fields `alike`.
        """
        if self.tiles_of is not None:
            return self.tiles_of.geometry(field, place)
        full = self._allocated(field, place)
        if self.locations[place].shares_host:
            return Geometry.dense(full)
        every = [self._allocated(each, place) for each in self.patterns]
        return Geometry.padded(alike(full, every, self.layout.owned[place].lower[-1]))

    def lies(self, key: TileKey) -> Geometry:
        """How the cells of a tile lie in memory."""
        return self.geometry(key.field, key.place)

    def full(self, field: str, place: int) -> Shape:
        """The hull of the cells of `field` that a place owns, receives, or computes around them.

        And of the boxes of launches that read it: kernels count from the first cell of these.
        """
        pools, own = self.liveness.pools, self.layout_of(field)
        if self.program.field(field).boundary.extent:
            return self.patterns[field].full(place)
        boxes = (
            self.updated(sweep, place)
            for sweep in self.sweeps
            if (sweep.is_temporary or self.layout_of(sweep.stage.home) is not own)
            and any(pools[f] == pools[field] for f in sweep.fields)
        )
        return reduce(Shape.hull, boxes, self.patterns[field].full(place))

    def updated(self, sweep: Sweep, place: int) -> Shape:
        """The cells that `sweep` computes at `place`."""
        return sweep.of_place(self.owned(sweep.stage.home, place))

    @property
    def root(self) -> TileBoxes:
        """The plan for which the tiles were allocated."""
        return self if self.tiles_of is None else self.tiles_of.root

    def reaches(self, layout: Layout) -> bool:
        """Whether places own no more rows in another layout than their tiles have room for.

        Of other fields than those at the cells of the domain only `holds` can tell.
        """
        root, more = self.root, (self.room, *(0,) * (self.program.n_axes - 1))
        return all(
            before.empty == after.empty and (after.empty or after in before.grow(more, more))
            for before, after in zip(root.layout.owned, layout.owned, strict=True)
        )

    def holds(self, other: TileBoxes) -> bool:
        """Whether the tiles have all cells that another plan of the same places needs there."""
        return all(
            other.full(field, place) in self.geometry(field, place).box
            for field in self.program.dtypes
            for place, owned in enumerate(other.layout.owned) if not owned.empty
        )

    def without_room(self, key: TileKey) -> Shape | None:
        """The cells of a tile that has room, without that; None of one that has none."""
        return self._needed(key.field, key.place) if self.room else None

    def _needed(self, field: str, place: int) -> Shape:
        """The cells of a tile that has no room, before fields are made alike."""
        owned, full = self.owned(field, place), self.full(field, place)
        if owned.empty:
            return full
        low, high = zip(*self.halo_capacity)
        return full.hull(owned.grow(low, high))

    def _allocated(self, field: str, place: int) -> Shape:
        """The same with room."""
        needed = self._needed(field, place)
        if self.owned(field, place).empty:
            return needed
        more = (self.room, *(0,) * (self.program.n_axes - 1))
        return needed.hull(needed.grow(more, more) & self.layout_of(field).domain)
