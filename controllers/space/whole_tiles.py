# SPDX-License-Identifier: MIT
"""Tiles that hold all of an array at each place, for functions that read it as a whole."""
from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from controllers.executor.executor import Executor
from controllers.memory.tile import Tile
from controllers.placement.placement import failing_together
from hitmap.comm import Communicator
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
    """Makes them, and takes them back."""

    def __init__(self, executors: Mapping[int, Executor], comm: Communicator) -> None:
        self._executors, self._comm = executors, comm
        self._free: dict[object, list[tuple[int, Mapping[int, Tile]]]] = {}
        self._n_made = 0

    def take(self, extent: tuple[int, int], dtype: str) -> WholeTiles:
        """Tiles at all places of this rank; what they hold is undefined.  Collective."""
        free = self._free.setdefault((extent, dtype), [])
        if free:
            number, tiles = free.pop(min(range(len(free)), key=lambda n: free[n][0]))
        else:
            self._n_made = number = self._n_made + 1
            whole = Geometry.dense(Shape.of_extent(extent))
            with failing_together(self._comm):
                tiles = {
                    place: executor.tile(whole, np.dtype(dtype))
                    for place, executor in self._executors.items()
                }
        return WholeTiles(("whole", number), tiles, lambda: free.append((number, tiles)))


def as_rows(tile: Tile) -> Tile:
    """The same memory as rows by columns, where rows are runs of cells."""
    box, pitches = tile.geometry.box, tile.geometry.pitches
    n_columns = int(np.prod(box.extent[1:], dtype=np.int64))
    cells = Shape((box.lower[0], 0), (box.upper[0], n_columns))
    return Tile(Geometry(cells, (pitches[0], 1)), tile.dtype, tile.host, tile.buffer)
