# SPDX-License-Identifier: MIT
"""Fields moved from the tiles of one engine to those of another, which divides them otherwise."""
from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.device.event import Command
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.memory.tile import Tile
from controllers.placement.halo_width import replanned
from controllers.placement.temporal import suits
from controllers.placement.turns import nbytes_of, nbytes_to_be, newest_tiles, waiting
from controllers.plan import ChunkPlan, Location, Plan, TileKey
from hitmap.comm import Communicator
from hitmap.layout import Layout
from hitmap.redistribute import Move, Redistribution
from hitmap.shape import Shape
from hitmap.strided import Geometry, consecutive

_logger = logging.getLogger(__name__)
CHUNK_CELLS = 1 << 24   # what passes through the host at once
# Room for cuts to move, by what a band has on the average, and the part of a cap that all may take.
ROOMS = ((1 / 2, 1 / 16), (1 / 16, 1.0))


def roomy(plan: Plan, fits: Callable[[Plan, float], bool]) -> Plan:
    """The same on tiles that have rows, below and above, for cuts along axis 0 to move.

    As many as `fits` says, collectively: whether a plan takes no more than a part of the caps.
    None where rows are cells: kernels want these where they lie by now.
    """
    layout = plan.layout
    n_cuts = len({box.lower[0] for box in layout.owned if not box.empty})
    if layout.domain.n_axes == 1 or n_cuts < 2:
        return plan
    for room, part in ROOMS:
        found = plan.with_room(int(room * layout.domain.extent[0] / n_cuts))
        if fits(found, part):
            return found
    return plan


def plan_within(
    plan: Plan, layout: Layout, locations: Sequence[Location], width: int | None
) -> Plan | None:
    """The plan of another layout of the same places on the same tiles; None without room for it.

    width: steps between two exchanges, where they are not those of a launch.  The same on all
    ranks.
    """
    root = plan.root
    if isinstance(plan, ChunkPlan) or plan.locations != tuple(locations):
        return None
    if not plan.reaches(layout):
        return None
    assert isinstance(root, Plan), "what an engine has run"
    found = replanned(root, width, root, layout)
    return found if root.holds(found) and suits(found) else None


def shift(moves: Redistribution, old: Engine, new: Engine, comm: Communicator) -> None:
    """Go on with `new`, on the tiles of `old`: cells that change their place go there.  Collective.
    """
    before = newest_tiles(old)
    new.take_over(old)
    after = newest_tiles(new)
    for field, tiles in after.items():
        moved = _moves_of(field, moves, old.plan, new.plan)
        dtype = np.dtype(new.plan.program.dtypes[field])
        executors = old.executors, new.executors
        _Relocation(moved, (before[field], tiles), executors, kept=False).run(comm, dtype)
        copies = [
            _copied(new.executors[move.target], tiles[move.target], tile, move.box)
            for move in moved.moves if move.target in tiles
            for tile in new.to_set(field, move.target)[1:]
        ]
        for executor in _devices(new):
            executor.wait(keep=copies)
    _tell(new, ", on the same tiles")


def relocate(moves: Redistribution, old: Engine, new: Engine, comm: Communicator) -> None:
    """Bring all fields from the places of `old` to those of `new`, all their buffers.  Collective.

    What stays on a controller is copied there and never sees the host.  The rest passes through
    the host in pieces: cells that change the controller, each of them once.
    """
    after = newest_tiles(new)
    for field, before in newest_tiles(old).items():
        moved = _moves_of(field, moves, old.plan, new.plan)
        dtype = np.dtype(new.plan.program.dtypes[field])
        _Relocation(moved, (before, after[field]), (old.executors, new.executors)).run(comm, dtype)
    go_on(old, new)


def relocate_in_turns(
    moves: Redistribution, old: Engine, plan: Plan, executors: Mapping[int, Executor],
    comm: Communicator,
) -> dict[TileKey, Tile]:  # fmt: skip
    """The tiles of `plan` that hold the fields of `old` as its steps begin.  Collective.

    One field after another gets its new tile and gives back the old one; what does not fit beside
    it on a device with memory of its own waits on the host, in pieces there and back.  Of `old` no
    memory is left: it can run no more, whatever happens.
    """
    held = newest_tiles(old)
    old.release()
    queues = [_Turns(held, old, plan, executors, one) for one in _devices(old)]
    found: dict[TileKey, Tile] = {}
    for number, field in enumerate([*held]):
        for queue in queues:
            queue.make_room(number)
        dtype, after = np.dtype(plan.program.dtypes[field]), dict[int, Tile]()
        for place in plan.places:
            key = plan.newest(field, 0, place)
            geometry = plan.geometry(key.field, place)
            found[key] = after[place] = executors[place].tile(geometry, dtype)
            executors[place].wait()     # it is zeroed
        moved = _moves_of(field, moves, old.plan, plan)
        _Relocation(moved, (held.pop(field), after), (old.executors, executors)).run(comm, dtype)
    return found


def go_on(old: Engine, new: Engine) -> None:
    """The fields are in the newest tiles of `new`: into all others, and steps go on."""
    copies: list[Command] = []      # they hold the memory that they work on
    for field in new.plan.program.fields:
        for place in new.plan.places:
            newest, *others = new.to_set(field.name, place)
            box = new.plan.owned(field.name, place)
            copies += [_copied(new.executors[place], newest, tile, box) for tile in others]
    for executor in _devices(new):
        executor.wait()
    new.loaded(old.n_steps)
    new.numbers.go_on_from(old.numbers)
    _tell(new)


def _tell(new: Engine, how: str = "") -> None:
    program, n_places = new.plan.program, len(new.plan.layout.owned)
    _logger.info("%s: the field is divided anew, places: %d%s", program.name, n_places, how)


def _moves_of(field: str, moves: Redistribution, old: Plan, new: Plan) -> Redistribution:
    """The moves of a field: fields at half points have domains of their own."""
    before, after = old.layout_of(field), new.layout_of(field)
    if after.domain == moves.new.domain:
        return moves
    return Redistribution(before, after, moves.old_ranks, moves.new_ranks)


def _devices(engine: Engine) -> list[Executor]:
    return list(dict.fromkeys(engine.executors[place] for place in engine.plan.places))


def _copied(executor: Executor, source: Tile, target: Tile, box: Shape) -> Command:
    """The command that copies a box on a device, which it has begun with."""
    ends = source.strided(box), target.strided(box)
    copy = executor.copy_command(source.linear, target.linear, target.dtype.itemsize, ends)
    copy(None)
    return copy


class _Turns:
    """The fields that one device holds until it is their turn."""

    def __init__(
        self, held: dict[str, dict[int, Tile]], old: Engine, plan: Plan,
        executors: Mapping[int, Executor], executor: Executor,
    ) -> None:  # fmt: skip
        """held: the tiles of all fields, of which those here are exchanged for ones on the host."""
        self._held, self._executor, self._fields = held, executor, [*held]
        self._places = [place for place in old.plan.places if old.executors[place] is executor]
        self._old = old.plan
        before = nbytes_of(held, self._places)
        ledger = executor.ledger
        room = ledger.cap_bytes - ledger.on_device + sum(before)
        there = [place for place in plan.places if executors[place] is executor]
        self._turns = waiting(room, before, nbytes_to_be(plan, there))

    def make_room(self, turn: int) -> None:
        """What has to wait from this turn on goes to the host."""
        for number in self._turns[turn]:
            field = self._fields[number]
            tiles = self._held[field]
            for place in self._places:
                tiles[place] = self._on_host(tiles[place], self._old.owned(field, place))

    def _on_host(self, tile: Tile, owned: Shape) -> Tile:
        cells = np.empty(owned.n_cells, tile.dtype)
        self._executor.ledger.hold(cells, cells.nbytes, "host images")
        kept = Tile(Geometry.dense(owned), tile.dtype, cells, None)
        for box in consecutive(owned, CHUNK_CELLS):
            kept.view(box)[...] = self._executor.move_from(tile, box)
        return kept


class _Relocation:
    """One field, on its way from some tiles to others, each by its place, before and after."""

    def __init__(
        self,
        moves: Redistribution,
        tiles: tuple[Mapping[int, Tile], Mapping[int, Tile]],
        executors: tuple[Mapping[int, Executor], Mapping[int, Executor]],
        *,
        kept: bool = True,
    ) -> None:
        """kept: whether cells that stay at their place have to be copied."""
        self._moves, self._kept = moves, kept
        self._tiles = tiles
        self._executors = executors
        self._copies: list[Command] = []    # they hold the memory that they work on

    def run(self, comm: Communicator, dtype: np.dtype[Any]) -> None:
        for move in self._moves.within(comm.rank, kept=self._kept):
            self._move(move)
        most = CHUNK_CELLS * dtype.itemsize
        self._moves.exchange(comm, dtype, self._read, self._write, message_nbytes=most)
        for executor in dict.fromkeys(self._executors[1].values()):
            executor.wait()

    def _move(self, move: Move) -> None:
        """Between two places of this rank, or from a place to itself."""
        before, after = self._executors
        source, executor = self._tiles[0][move.source], after[move.target]
        waits = source.host is not None and not executor.shares_host
        if executor is before[move.source] and not waits:
            target = self._tiles[1][move.target]
            self._copies.append(_copied(executor, source, target, move.box))
            return
        for box in consecutive(move.box, CHUNK_CELLS):
            self._write(move.target, box, self._read(move.source, box))

    def _read(self, place: int, box: Shape) -> npt.NDArray[Any]:
        return self._executors[0][place].move_from(self._tiles[0][place], box)

    def _write(self, place: int, box: Shape, cells: npt.NDArray[Any]) -> None:
        self._executors[1][place].move_to(self._tiles[1][place], box, cells)
