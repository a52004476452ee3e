# SPDX-License-Identifier: MIT
"""A launch, as far as the choice of a kernel depends on it."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hitmap.strided import Strided


@dataclass(frozen=True)
class Launch:
    """What is known of a launch: where its cells lie in each field.

    exceeds_cache: whether the tiles it works on do not fit the device's cache.
    n_steps: the time steps that it computes.
    local_bytes, max_items: of a work-group on the device, 0 where that is not known.
    units: of the device, which compute at the same time; 0 where that is not known.
    nvidia: whether the device is one of NVIDIA's.
    digests: whether it takes the digest of the field that it updates, by a strategy that can.
    """

    fields: Mapping[str, Strided]
    exceeds_cache: bool = False
    n_steps: int = 1
    local_bytes: int = 0
    max_items: int = 0
    units: int = 0
    nvidia: bool = False
    digests: bool = False

    @property
    def extent(self) -> tuple[int, ...]:
        """The cells of the box per axis."""
        return next(iter(self.fields.values())).extent

    @property
    def alike(self) -> bool:
        """Whether the cells lie at the same elements of all fields."""
        return len({(cells.first, cells.pitches) for cells in self.fields.values()}) == 1

    def aligned(self, lanes: int) -> bool:
        """Whether all rows of all fields start at the same place in vectors of so many cells."""
        firsts = {cells.first % lanes for cells in self.fields.values()}
        pitches = (pitch for cells in self.fields.values() for pitch in cells.pitches[:-1])
        return len(firsts) == 1 and all(pitch % lanes == 0 for pitch in pitches)
