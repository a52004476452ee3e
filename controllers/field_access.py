# SPDX-License-Identifier: MIT
"""The cells of a field in the tiles of an engine, as `init`, `output` and files see them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.engine import Engine
from controllers.plan import TileKey
from controllers.tile import Tile, TileView
from hitmap.shape import Shape


class FieldAccess:
    """The cells of `field` that this rank owns."""

    def __init__(self, engine: Engine, field: str) -> None:
        self._engine = engine
        self._field = field
        self._owned = engine.plan.layout.owned
        self._domain = engine.plan.layout.domain.extent
        self._dtype = engine.plan.program.dtype

    def load(self, init: Callable[[TileView], None]) -> None:
        """`init` sets the cells of each place, zeroed before; steps count from 0 again."""
        for place, executor in self._engine.executors.items():
            owned, n_levels = self._owned[place], self._engine.plan.n_phases
            tiles = [] if owned.empty else [self._tile(place, n) for n in range(n_levels)]
            array = self._view(place, tiles[0] if tiles else None, owned)
            array[...] = 0
            init(TileView(array, owned, self._domain, place))
            for tile in tiles:      # both levels: a step writes no boundary cells
                if tile.host is None or tile is not tiles[0]:
                    executor.move_to(tile, owned, array)
        self._engine.loaded()

    def visit(self, output: Callable[[TileView], None]) -> None:
        """`output` sees the cells of each place as they are now."""
        for place in self._engine.executors:
            owned = self._owned[place]
            output(TileView(self.cells(place, owned), owned, self._domain, place))

    def cells(self, place: int, box: Shape) -> npt.NDArray[Any]:
        """Some of the cells that a place owns: in the tile, or a copy."""
        tile = None if box.empty else self._engine.newest(self._field, place)
        if tile is None or tile.host is not None:
            return self._view(place, tile, box)
        return self._engine.executors[place].move_from(tile, box)

    def _tile(self, place: int, level: int) -> Tile:
        return self._engine.tiles[TileKey(self._field, level, place)]

    def _view(self, place: int, tile: Tile | None, box: Shape) -> npt.NDArray[Any]:
        """The cells of `tile` in place, or a new array if they are not in host memory."""
        if tile is not None and tile.host is not None:
            return tile.view(box)
        array = np.empty(box.extent, self._dtype)
        self._engine.executors[place].ledger.hold(array, array.nbytes, "host images")
        return array
