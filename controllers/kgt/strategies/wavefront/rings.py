# SPDX-License-Identifier: MIT
"""Where the strategy "wavefront" keeps the levels between the old one and the new one: in rings.

The slices of a tile along axis 0 are rows in two dimensions, planes in three.  A ring holds, of one
level, as many slices as one step of the next level reads; slice number s lies in slot s modulo
their number.  All sizes are constants of the kernel, so rings fit its local memory: on a CPU a part
of the work-item's own cache.  Rows and slices are an odd number of vectors long, so that equal
places of several of them do not compete for the same lines of the cache.
"""
from __future__ import annotations

from dataclasses import dataclass

from controllers.program.offsets import Offsets


@dataclass(frozen=True)
class Rings:
    """The rings of levels 1 to `steps` - 1 for tiles of at most `tile` cells per axis.

    In one dimension a level is one slice.  lanes: cells of a vector.  slices: how many are
    computed side by side.  follows: whether the level after the next one reads a level, too.
    """

    reach: Offsets
    steps: int
    lanes: int
    slices: int
    tile: tuple[int, ...]
    follows: bool = False

    @property
    def slots(self) -> int:
        """Slices of a ring.

        >>> Rings(((1, 2), (1, 1)), 4, 16, 4, (512, 1024)).slots
        7
        """
        low, high = self.reach[0]
        most = max(low, high) if self.follows else low      # read above a slice: high more
        return self.slices + most + high if len(self.tile) > 1 else 1

    def pitch(self, axis: int) -> int:
        """Elements per step on an axis; on axis 0, from slot to slot.

        >>> [Rings(((1, 1), (1, 1)), 4, 16, 4, (512, 1024)).pitch(axis) for axis in (0, 1)]
        [1072, 1]
        """
        return 1 if axis == len(self.tile) - 1 else self._length(axis + 1)

    @property
    def n_elements(self) -> int:
        """Elements of all rings."""
        return (self.steps - 1) * self.ring

    @property
    def ring(self) -> int:
        """Elements of a ring."""
        return self.slots * (self.pitch(0) if len(self.tile) > 1 else self._length(0))

    @property
    def origin(self) -> int:
        """In slot 0, the place of a tile's first cell if a vector starts there."""
        outer = range(1, len(self.tile) - 1)
        return self._before + sum(self._below(axis) * self.pitch(axis) for axis in outer)

    @property
    def _before(self) -> int:
        """Elements before the tile's first cell in its row: whole vectors."""
        return -(-self._below(-1) // self.lanes) * self.lanes

    def _below(self, axis: int) -> int:
        return (self.steps - 1) * self.reach[axis][0]

    def _length(self, axis: int) -> int:
        """Elements of all cells on an axis: an odd number of vectors."""
        last = axis == len(self.tile) - 1
        below = self._before + self.lanes - 1 if last else self._below(axis)
        cells = below + self.tile[axis] + (self.steps - 1) * self.reach[axis][1]
        return (-(-cells * self.pitch(axis) // self.lanes) | 1) * self.lanes
