# SPDX-License-Identifier: MIT
"""Which memories hold the newest cells of an array: the host's, number 0, and those of devices."""
from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

from hitmap.region import Region
from hitmap.shape import Shape

HOST_MEMORY = 0
Move: TypeAlias = "tuple[int, int, Region]"     # from which memory to which, and which cells


class Newest:
    """Cell by cell; at first the host's memory alone has them.

    >>> box = Shape((0,), (9,))
    >>> cells = Newest(box)
    >>> [(a, b, str(region)) for a, b, region in cells.moves(1, Shape((2,), (5,)))]
    [(0, 1, '[2:5]')]
    >>> cells.brought(1, Region.of([Shape((2,), (5,))]))
    >>> cells.wrote(1, Shape((4,), (7,)))
    >>> [(a, b, str(region)) for a, b, region in cells.moves(0, box)]
    [(1, 0, '[4:7]')]
    """

    def __init__(self, box: Shape) -> None:
        self._all = Region.of([box])
        self._stale: dict[int, Region] = {HOST_MEMORY: Region()}

    @property
    def stale(self) -> tuple[tuple[int, Region], ...]:
        """Which cells memories do not have; those that are not there have none."""
        return (*self._stale.items(),)

    def has(self, memory: int, box: Shape) -> bool:
        """Whether the newest values of `box` are in this memory."""
        known = self._stale.get(memory)
        return known is not None and not any(map(box.meets, known.boxes))

    def moves(self, memory: int, box: Shape) -> tuple[Move, ...]:
        """What brings the newest cells of `box` to a memory, in this order; by way of the host."""
        return _moves(self.stale, memory, box)

    def brought(self, memory: int, cells: Region) -> None:
        """These cells were copied to a memory."""
        stale = self._stale.get(memory, self._all)
        if any(one.meets(other) for one in cells.boxes for other in stale.boxes):
            stale = stale - cells
        self._stale[memory] = stale

    def wrote(self, memory: int, box: Shape) -> None:
        """The cells of `box` got new values in this memory, and in no other one."""
        if not self.has(memory, box):
            self.brought(memory, Region.of([box]))
        for other, stale in self._stale.items():
            if other != memory and not any(box in one for one in stale.boxes):
                self._stale[other] = stale | box

    def spoilt(self, memory: int, box: Shape) -> None:
        """What this memory holds of `box` counts no more; another one has the newest values."""
        self._stale[memory] = self._stale.get(memory, self._all) | box

    def forget(self, memory: int) -> None:
        """Nothing of what a device holds counts any more; the host's memory has it all."""
        self._stale.pop(memory, None)


@lru_cache(maxsize=1024)    # programs come back to the same cells in the same memories
def _moves(state: tuple[tuple[int, Region], ...], memory: int, box: Shape) -> tuple[Move, ...]:
    """The same, by the stale cells of all memories."""
    known = dict(state).get(memory)
    missing = Region.of([box]) if known is None else known & box
    if missing.empty:
        return ()
    if memory != HOST_MEMORY:
        before = [move for part in missing.boxes for move in _moves(state, HOST_MEMORY, part)]
        return (*before, (HOST_MEMORY, memory, missing))
    found = []
    for source, elsewhere in state:
        here = missing - elsewhere
        if not here.empty:
            found.append((source, memory, here))
            missing = missing - here
    assert missing.empty, "the newest values of each cell are somewhere"
    return tuple(found)
