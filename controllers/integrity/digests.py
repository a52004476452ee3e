# SPDX-License-Identifier: MIT
"""Digests of the fields of an engine, made where they are: on their devices, by one launch each.

Fields that pass through their devices in chunks, and those of the checked mode, are looked at on
the host.
"""
from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np

from controllers.array.one_off import LightFold, OneOffEngine, OneOffPlan, specialised
from controllers.engine import Engine, PacedEngine, RepeatingEngine
from controllers.executor.executor import Executor
from controllers.fields.cells import pieces
from controllers.integrity.digest import Digest, digest_of_parts
from controllers.integrity.digest_program import (
    CELLS,
    bits_dtype,
    digest_of_folds,
    digest_program,
)
from controllers.memory.tile import Tile
from controllers.placement.placement import failing_together
from controllers.plan import TileKey
from hitmap.comm import Communicator


class Digests:
    """Those of the fields of `engine`; what is needed for that is made once, and kept."""

    def __init__(self, engine: Engine, comm: Communicator) -> None:
        self.engine, self._comm = engine, comm
        self._on_devices = type(engine) in (Engine, PacedEngine, RepeatingEngine)
        self._executors = {
            place: specialised(one) for place, one in engine.executors.items()
        }
        # by field, and the tiles that hold it, which take turns
        self._bound: dict[tuple[str, object], _Bound] = {}

    def take(self) -> dict[str, Digest]:
        """Those of all fields as they are now, the same on all ranks.  Collective."""
        names = [field.name for field in self.engine.plan.program.fields]
        return {name: self._of(name) for name in names}

    def close(self) -> None:
        """Give back what belongs to MPI."""
        for bound in self._bound.values():
            bound.engine.close()
        self._bound.clear()

    def _of(self, field: str) -> Digest:
        engine = self.engine
        if not self._on_devices:
            domain = engine.plan.layout_of(field).domain
            mine = digest_of_parts(pieces(engine, field), domain)
            return reduce(Digest.__add__, self._comm.allgather(mine))
        key = field, engine.phase
        if key not in self._bound:
            with failing_together(self._comm):
                self._bound[key] = _Bound(engine, self._executors, self._comm, field)
        return self._bound[key].digest(self._comm)


class _Bound:
    """The launches over the tiles that hold a field now."""

    def __init__(
        self, main: Engine, executors: Mapping[int, Executor], comm: Communicator, field: str
    ) -> None:
        program = digest_program(main.plan, field)
        plan = OneOffPlan(program, main.plan, {CELLS: field}, comm.rank)
        tiles = {
            TileKey(CELLS, 0, place): _as_bits(main.newest(field, place)) for place in plan.places
        }
        self.engine = OneOffEngine(plan, executors, comm, tiles)
        fold = self.engine.folding()
        assert fold is not None, "it reads no other cell"
        self._fold: LightFold = fold
        self._executors = [*dict.fromkeys(executors[place] for place in plan.places)]

    def digest(self, comm: Communicator) -> Digest:
        """As the cells are now.  Collective."""
        for command in self._fold.commands:
            command(None)
        for executor in self._executors:
            executor.wait(keep=self)
        return digest_of_folds(self._fold.found(comm))


def _as_bits(tile: Tile) -> Tile:
    """The same memory."""
    dtype = bits_dtype(np.dtype(tile.dtype))
    host = None if tile.host is None else tile.host.view(dtype)
    return Tile(tile.geometry, dtype, host, tile.buffer)
