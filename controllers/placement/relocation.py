# SPDX-License-Identifier: MIT
"""Fields moved from the tiles of one engine to those of another, which divides them otherwise."""
from __future__ import annotations

import logging
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.device.event import Command
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.memory.tile import Tile
from hitmap.comm import Communicator
from hitmap.redistribute import Move, Redistribution
from hitmap.shape import Shape
from hitmap.strided import consecutive

_logger = logging.getLogger(__name__)
CHUNK_CELLS = 1 << 24   # what passes through the host at once


def relocate(moves: Redistribution, old: Engine, new: Engine, comm: Communicator) -> None:
    """Bring all fields from the places of `old` to those of `new`, all their buffers.  Collective.

    What stays on a controller is copied there and never sees the host.  The rest passes through
    the host in pieces: cells that change the controller, each of them once.
    """
    known = {new.plan.layout.domain: moves}
    for field in new.plan.program.fields:
        after = new.plan.layout_of(field.name)
        if after.domain not in known:
            before = old.plan.layout_of(field.name)
            known[after.domain] = Redistribution(before, after, moves.old_ranks, moves.new_ranks)
        _Relocation(known[after.domain], old, new, field.name).run(comm)
    new.loaded(old.n_steps)
    new.numbers.go_on_from(old.numbers)
    program, n_places = new.plan.program, len(new.plan.layout.owned)
    _logger.info("%s: the field is divided anew, places: %d", program.name, n_places)


class _Relocation:
    """One field, on its way from the newest tiles of one engine to those of another."""

    def __init__(self, moves: Redistribution, old: Engine, new: Engine, field: str) -> None:
        self._moves = moves
        self._old = old
        self._new = new
        self._field = field
        self._copies: list[Command] = []    # they hold the memory that they work on

    def run(self, comm: Communicator) -> None:
        for move in self._moves.within(comm.rank):
            self._move(move)
        dtype = np.dtype(self._new.plan.program.dtypes[self._field])
        self._moves.exchange(comm, dtype, self._read, self._write)
        for place in self._new.plan.places:
            self._spread(place)
        for executor in dict.fromkeys(self._new.executors.values()):
            executor.wait()

    def _move(self, move: Move) -> None:
        """Between two places of this rank, or from a place to itself."""
        executor = self._new.executors[move.target]
        if executor is self._old.executors[move.source]:
            source, target = self._source(move.source), self._target(move.target)
            self._copy(executor, source, target, move.box)
            return
        for box in consecutive(move.box, CHUNK_CELLS):
            self._write(move.target, box, self._read(move.source, box))

    def _spread(self, place: int) -> None:
        """The other buffers: cells that no step computes are read from any of them."""
        newest, *others = self._new.to_set(self._field, place)
        for tile in others:
            owned = self._new.plan.owned(self._field, place)
            self._copy(self._new.executors[place], newest, tile, owned)

    def _copy(self, executor: Executor, source: Tile, target: Tile, box: Shape) -> None:
        ends = source.strided(box), target.strided(box)
        copy = executor.copy_command(source.linear, target.linear, target.dtype.itemsize, ends)
        copy(None)
        self._copies.append(copy)

    def _source(self, place: int) -> Tile:
        return self._old.newest(self._field, place)

    def _target(self, place: int) -> Tile:
        return self._new.newest(self._field, place)

    def _read(self, place: int, box: Shape) -> npt.NDArray[Any]:
        return self._old.executors[place].move_from(self._source(place), box)

    def _write(self, place: int, box: Shape, cells: npt.NDArray[Any]) -> None:
        self._new.executors[place].move_to(self._target(place), box, cells)
