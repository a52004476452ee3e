# SPDX-License-Identifier: MIT
"""What the fields of an engine were after a step, kept beside them on their devices."""
from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from controllers.engine import Engine
from controllers.memory.tile import Tile
from hitmap.comm import Communicator


class Kept:
    """Fields as they were after the step `step`; `take` keeps them as they are now."""

    def __init__(self, engine: Engine, tiles: Mapping[tuple[str, int], Tile]) -> None:
        self.step = engine.n_steps
        self._engine, self._tiles, self._time = engine, tiles, 0.0
        self.take()

    @classmethod
    def of(cls, engine: Engine, comm: Communicator) -> Kept | None:
        """Those of now; None where there is no memory for it on a rank.  Collective."""
        plan, names = engine.plan, {*engine.plan.program.written, *engine.plan.program.renames}
        tiles: dict[tuple[str, int], Tile] = {}
        fits = True
        try:
            for field in (one for one in plan.program.fields if one.name in names):
                for place in plan.places:
                    tile = engine.executors[place].tile(
                        plan.geometry(field.name, place), np.dtype(field.dtype)
                    )
                    tiles[field.name, place] = tile
        except MemoryError:
            fits = False
        return cls(engine, tiles) if all(comm.allgather(fits)) else None

    def is_of(self, engine: Engine) -> bool:
        """Whether these are the fields of `engine`."""
        return engine is self._engine

    def take(self) -> None:
        """Keep what the fields are now."""
        engine = self._engine
        self.step, self._time = engine.n_steps, engine.numbers.time(engine.n_steps)
        for (field, place), tile in self._tiles.items():
            self._copy(field, place, engine.newest(field, place), tile)
        self._wait()

    def bring_back(self) -> None:
        """The fields become what they were, and steps go on from there."""
        engine = self._engine
        engine.loaded(self.step)
        engine.numbers.go_back(self.step, self._time)
        for (field, place), tile in self._tiles.items():
            self._copy(field, place, tile, engine.newest(field, place))
        self._wait()

    def _copy(self, field: str, place: int, source: Tile, target: Tile) -> None:
        box = self._engine.plan.owned(field, place)
        ends = source.strided(box), target.strided(box)
        copy = self._engine.executors[place].copy_command
        copy(source.linear, target.linear, source.dtype.itemsize, ends)(None)

    def _wait(self) -> None:
        for executor in dict.fromkeys(self._engine.executors.values()):
            executor.wait()
