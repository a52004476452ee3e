# SPDX-License-Identifier: MIT
"""Tiles that hold all of an array at each place, for functions that read it as a whole."""
from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from math import prod
from typing import Any

import numpy as np

from controllers.array.streams import Streams
from controllers.memory.ledger import MemoryCapError
from controllers.memory.tile import Tile
from controllers.placement.placement import failing_together
from hitmap.shape import Shape
from hitmap.strided import Geometry


class WholeTiles:
    """Of one array, rows by columns; others get them later.  key: equal for the same tiles."""

    def __init__(
        self, key: object, tiles: Mapping[int, Tile], give_back: Callable[[], None]
    ) -> None:
        self.key, self.tiles, self._give_back = key, tiles, give_back

    def __del__(self) -> None:
        self._give_back()


class WholeStore:
    """Makes them, and takes them back.

    Where arrays pass through, the places of a device share one.
    """

    def __init__(self, streams: Streams) -> None:
        self._streams, self._comm = streams, streams.comm
        self._executors = streams.placement.executors
        self._free: dict[object, list[tuple[int, Mapping[int, Tile]]]] = {}
        self._n_made = 0

    def take(self, extent: tuple[int, int], dtype: str) -> WholeTiles:
        """Tiles at all places of this rank; what they hold is undefined.  Collective."""
        free = self._free.setdefault((extent, dtype), [])
        if free:
            number, tiles = free.pop(min(range(len(free)), key=lambda n: free[n][0]))
        else:
            tiles = self._made(Geometry.dense(Shape.of_extent(extent)), np.dtype(dtype))
            self._n_made = number = self._n_made + 1
        return WholeTiles(("whole", number), tiles, lambda: free.append((number, tiles)))

    def _made(self, whole: Geometry, dtype: np.dtype[Any]) -> Mapping[int, Tile]:
        """On the devices; what passes through gives way, and what nobody uses any more."""
        while True:
            try:
                with failing_together(self._comm):
                    return self._allocated(whole, dtype)
            except MemoryCapError as error:
                if not self._streams.is_on:
                    self._streams.begin(error)
                elif not self._give_way():
                    raise

    def _give_way(self) -> bool:
        """Let go of what nobody is using now; False where there is nothing.  Collective."""
        before = self._in_use
        gc.collect()
        mine = self._in_use < before or any(self._free.values()) or self._streams.has_slots
        if not any(self._comm.allgather(mine)):
            return False
        for free in self._free.values():
            free.clear()
        self._streams.give_way()
        return True

    @property
    def _in_use(self) -> int:
        return sum(one.ledger.on_device for one in dict.fromkeys(self._executors.values()))

    def _allocated(self, whole: Geometry, dtype: np.dtype[Any]) -> Mapping[int, Tile]:
        if not self._streams.is_on:
            return {place: one.tile(whole, dtype) for place, one in self._executors.items()}
        devices = dict.fromkeys(self._executors.values())
        shared = {executor: executor.tile(whole, dtype) for executor in devices}
        return {place: shared[executor] for place, executor in self._executors.items()}


def as_rows(tile: Tile) -> Tile:
    """The same memory as rows by columns, where rows are runs of cells."""
    cells, pitches = rows_of(tile.geometry.box), tile.geometry.pitches
    return Tile(Geometry(cells, (pitches[0], 1)), tile.dtype, tile.host, tile.buffer)


def rows_of(box: Shape) -> Shape:
    """The cells of whole rows, or of a part of one, as rows by columns.

    >>> str(rows_of(Shape((2, 0, 0), (4, 3, 5)))), str(rows_of(Shape((2,), (4,))))
    ('[2:4, 0:15]', '[2:4, 0:1]')
    """
    return Shape((box.lower[0], 0), (box.upper[0], prod(box.extent[1:])))
