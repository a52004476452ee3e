# SPDX-License-Identifier: MIT
"""From one layout to another: which cells change place, and the messages that carry them.

Cells that belong to the same place on the same rank before and after are *kept*.  All others
move, from the place that owns them to the one that will: exactly these, each of them once.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hitmap.agreement import agree
from hitmap.comm import Communicator, receive, send
from hitmap.layout import Layout
from hitmap.part import check_parts, check_ranks
from hitmap.scatter import MESSAGE_NBYTES
from hitmap.shape import Shape
from hitmap.strided import consecutive, packed

ReadCells = Callable[[int, Shape], npt.NDArray[Any]]             # of an old place
Write = Callable[[int, Shape, npt.NDArray[Any]], None]      # to a new place


@dataclass(frozen=True, slots=True)
class Move:
    """Cells that go from an old place to a new one, each with its rank."""

    source: int
    target: int
    ranks: tuple[int, int]
    box: Shape

    def __str__(self) -> str:
        before, after = self.ranks
        ranks = "" if before == after else f" (rank {before} -> {after})"
        return f"place {self.source} -> {self.target}{ranks}: {self.box}, {self.box.n_cells} cells"


class Redistribution:
    """How the cells of a domain get from the places of one layout to those of another.

    `old_ranks[place]` holds a place of `old`, `new_ranks[place]` one of `new`.  Arithmetic, the
    same on every rank; only `apply` and `exchange` communicate.

    >>> domain = Shape.of_extent((6, 4))
    >>> old, new = Layout.bands(domain, 2), Layout.weighted(domain, [1, 2])
    >>> print(Redistribution(old, new, [0, 1], [0, 1]))
    place 0 -> 1 (rank 0 -> 1): [2:3, 0:4], 4 cells
    4 cells change place, 20 are kept
    """

    def __init__(
        self, old: Layout, new: Layout, old_ranks: Sequence[int], new_ranks: Sequence[int]
    ) -> None:
        if old.domain != new.domain:
            raise ValueError(
                f"both layouts must divide the same domain, got {old.domain} and {new.domain}"
            )
        for layout, ranks in ((old, old_ranks), (new, new_ranks)):
            if len(ranks) != layout.n_places:
                raise ValueError(
                    f"ranks: one per place, {layout.n_places} places, got {len(ranks)}"
                )
        self.old, self.new = old, new
        self.old_ranks, self.new_ranks = tuple(old_ranks), tuple(new_ranks)
        every = [
            Move(source, target, (old_ranks[source], new_ranks[target]), box)
            for target, owned in enumerate(new.owned)
            for source, box in old.owners(owned)
        ]
        self.kept = tuple(move for move in every if _is_kept(move))
        self.moves = tuple(move for move in every if not _is_kept(move))

    @property
    def n_cells_moved(self) -> int:
        """Cells that change place, within a rank or between ranks."""
        return sum(move.box.n_cells for move in self.moves)

    @property
    def n_cells_sent(self) -> int:
        """Cells that change rank, and travel in messages."""
        return sum(move.box.n_cells for move in self.moves if move.ranks[0] != move.ranks[1])

    def within(self, rank: int, *, kept: bool = True) -> tuple[Move, ...]:
        """What `rank` does by itself: cells that go from one of its places to another, and kept
        ones, unless these are left out."""
        every = (*self.kept, *self.moves) if kept else self.moves
        return tuple(move for move in every if move.ranks == (rank, rank))

    def apply(
        self,
        parts: Mapping[int, npt.NDArray[Any]],
        comm: Communicator,
        dtype: npt.DTypeLike,
        *,
        message_nbytes: int = MESSAGE_NBYTES,
    ) -> dict[int, npt.NDArray[Any]]:
        """The owned cells of the new places of this rank, from those of its old places.

        parts: for each old place of this rank an array [*old.owned[place].extent] of `dtype`.
        Collective; ValueError on all ranks if some rank's arrays do not fit.
        """
        dtype = np.dtype(dtype)
        self._agree(comm, dtype)
        check_parts(parts, self.old, self.old_ranks, comm, dtype)
        new = {
            place: np.empty(self.new.owned[place].extent, dtype)
            for place, rank in enumerate(self.new_ranks)
            if rank == comm.rank
        }

        def read(place: int, box: Shape) -> npt.NDArray[Any]:
            return parts[place][box.slices(self.old.owned[place].lower)]

        def write(place: int, box: Shape, cells: npt.NDArray[Any]) -> None:
            new[place][box.slices(self.new.owned[place].lower)] = cells

        for move in self.within(comm.rank):
            write(move.target, move.box, read(move.source, move.box))
        self._carry(comm, dtype, read, write, message_nbytes)
        return new

    def exchange(
        self,
        comm: Communicator,
        dtype: npt.DTypeLike,
        read: ReadCells,
        write: Write,
        *,
        message_nbytes: int = MESSAGE_NBYTES,
    ) -> None:
        """Carry the cells that change rank; what stays `within` a rank is left to the caller.

        `read(place, box)` gives cells of an old place of this rank, `write(place, box, cells)`
        puts them in a new one.  Collective.  Messages are packed, of at most `message_nbytes`
        bytes; no more than one is held in memory.
        """
        dtype = np.dtype(dtype)
        self._agree(comm, dtype)
        self._carry(comm, dtype, read, write, message_nbytes)

    def _agree(self, comm: Communicator, dtype: np.dtype[Any]) -> None:
        facts = (self.old.owned, self.new.owned, self.old_ranks, self.new_ranks, dtype)
        agree(comm, "redistribute: layouts, ranks and dtype", facts)
        check_ranks(self.old, self.old_ranks, comm)
        check_ranks(self.new, self.new_ranks, comm)

    def _carry(
        self,
        comm: Communicator,
        dtype: np.dtype[Any],
        read: ReadCells,
        write: Write,
        message_nbytes: int,
    ) -> None:
        for (source, target), moves in self._between(comm.size):
            if comm.rank not in (source, target):
                continue
            for batch in _batches(moves, message_nbytes // dtype.itemsize):
                buffer = np.empty(sum(move.box.n_cells for move in batch), dtype)
                cells = [end.view(buffer) for end in packed(move.box for move in batch)]
                if comm.rank == source:
                    for move, view in zip(batch, cells, strict=True):
                        view[...] = read(move.source, move.box)
                    send(comm, buffer, target)
                else:
                    receive(comm, buffer, source)
                    for move, view in zip(batch, cells, strict=True):
                        write(move.target, move.box, view)

    def _between(self, n_ranks: int) -> list[tuple[tuple[int, int], list[Move]]]:
        """The moves from one rank to another, in an order that all ranks keep.

        By distance, and of the messages that form a chain of ranks every other one first, so that
        most of a chain goes at the same time.
        """
        pairs: dict[tuple[int, int], list[Move]] = {}
        for move in self.moves:
            if move.ranks[0] != move.ranks[1]:
                pairs.setdefault(move.ranks, []).append(move)

        def turn(pair: tuple[int, int]) -> tuple[int, int, int]:
            distance = (pair[1] - pair[0]) % n_ranks
            return distance, pair[0] // distance % 2, pair[0]

        return [(pair, pairs[pair]) for pair in sorted(pairs, key=turn)]

    def __str__(self) -> str:
        n_kept = sum(move.box.n_cells for move in self.kept)
        total = f"{self.n_cells_moved} cells change place, {n_kept} are kept"
        return "\n".join([*map(str, self.moves), total])


def _is_kept(move: Move) -> bool:
    return move.source == move.target and move.ranks[0] == move.ranks[1]


def _batches(moves: Sequence[Move], max_cells: int) -> Iterator[list[Move]]:
    """The moves, cut where they are too large, in groups of at most `max_cells` (at least one)."""
    batch: list[Move] = []
    room = max_cells
    for move in moves:
        for box in consecutive(move.box, max_cells):
            if batch and box.n_cells > room:
                yield batch
                batch, room = [], max_cells
            batch.append(Move(move.source, move.target, move.ranks, box))
            room -= box.n_cells
    if batch:
        yield batch
