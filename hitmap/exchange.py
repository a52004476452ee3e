# SPDX-License-Identifier: MIT
"""The exchange of one rank: messages of a pattern as copies, and as traffic with other ranks.

All cells that go from one rank to another travel together, packed in the order of the pattern,
which is the same on both.
"""
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hitmap.agreement import agree_on_call, all_values, on_all_ranks
from hitmap.argument import wrong
from hitmap.comm import Communicator, message_status
from hitmap.message import Message
from hitmap.part import problem
from hitmap.shape import Shape
from hitmap.strided import Strided, packed

if TYPE_CHECKING:
    from mpi4py import MPI

Arrays = Mapping[int, npt.NDArray[Any]]     # of places, over all that these hold
_End = tuple[int, tuple[slice, ...]]        # a place, and where the cells lie in its array


class _Traffic:
    """The cells that go to one other rank, or come from it."""

    def __init__(self) -> None:
        self.ends: list[_End] = []
        self._boxes: list[Shape] = []

    def add(self, ends: Iterable[_End], boxes: Iterable[Shape]) -> None:
        self.ends += ends
        self._boxes += boxes

    @property
    def n_cells(self) -> int:
        return sum(box.n_cells for box in self._boxes)

    @property
    def packed(self) -> tuple[Strided, ...]:
        """Where the cells of each end lie in a message."""
        return packed(self._boxes)


class Exchange:
    """What `rank` does to refresh the halos of its places; `ranks[place]` holds a place.

    `full[place]` is the box of the place's array.  Arithmetic; `run` communicates.
    """

    def __init__(
        self, messages: Iterable[Message], full: Sequence[Shape], ranks: Sequence[int], rank: int
    ) -> None:
        self._copies: list[tuple[_End, _End]] = []
        self._sent: dict[int, _Traffic] = {}
        self._received: dict[int, _Traffic] = {}
        for message in messages:
            source, target = ranks[message.source], ranks[message.target]
            if rank not in (source, target):
                continue
            border, halo = message.border, message.halo
            leaving = [(message.source, b.slices(full[message.source].lower)) for b in border]
            arriving = [(message.target, b.slices(full[message.target].lower)) for b in halo]
            if source == target:
                self._copies += zip(leaving, arriving, strict=True)
            elif source == rank:
                self._sent.setdefault(target, _Traffic()).add(leaving, border)
            else:
                self._received.setdefault(source, _Traffic()).add(arriving, halo)

    def run(
        self, arrays: Arrays, comm: Communicator, dtype: np.dtype[Any], message_nbytes: int
    ) -> None:
        """Refresh the halos of `arrays`.  Collective; RuntimeError where a message is too short."""
        buffers = [np.empty(traffic.n_cells, dtype) for traffic in self._received.values()]
        requests: list[MPI.Prequest] = []
        sizes: list[tuple[int, int]] = []   # peer and bytes of each that receives
        try:
            for peer, buffer in zip(self._received, buffers, strict=True):
                for part in _parts(buffer, message_nbytes):
                    requests.append(comm.Recv_init(part, source=peer))
                    requests[-1].Start()
                    sizes.append((peer, part.size))
            for peer, traffic in self._sent.items():
                cells = np.empty(traffic.n_cells, dtype)
                for end, (place, index) in zip(traffic.packed, traffic.ends, strict=True):
                    end.view(cells)[...] = arrays[place][index]
                for part in _parts(cells, message_nbytes):
                    requests.append(comm.Send_init(part, dest=peer))
                    requests[-1].Start()
            for (source, leaving), (target, arriving) in self._copies:
                arrays[target][arriving] = arrays[source][leaving]
            _wait(requests, sizes, comm.rank)
        finally:
            for request in requests:
                request.Free()
        for traffic, buffer in zip(self._received.values(), buffers, strict=True):
            for end, (place, index) in zip(traffic.packed, traffic.ends, strict=True):
                arrays[place][index] = end.view(buffer)


def _parts(buffer: npt.NDArray[Any], most_nbytes: int) -> list[npt.NDArray[np.uint8]]:
    """The bytes of a buffer in parts that MPI can count, in which they keep their order."""
    everything, step = buffer.view(np.uint8), max(1, most_nbytes)
    return [everything[first : first + step] for first in range(0, everything.size, step)]


def _wait(requests: Sequence[MPI.Prequest], sizes: Sequence[tuple[int, int]], rank: int) -> None:
    """Wait for all requests, of which the first ones receive so many bytes."""
    for number, request in enumerate(requests):
        status = message_status()
        request.Wait(status)
        if number < len(sizes):
            peer, nbytes = sizes[number]
            if status.Get_count() != nbytes:
                raise RuntimeError(
                    f"rank {rank}: the halo message from rank {peer} must have {nbytes} bytes, got "
                    f"{status.Get_count()}; does the program send messages of its own with tag 0?"
                )


def holders(
    arrays: Arrays, full: Sequence[Shape], pattern: str, comm: Communicator
) -> tuple[tuple[int, ...], np.dtype[Any] | None]:
    """Which rank gives an array for which place, and the dtype of all of them.

    `pattern` is a text that differs for patterns that do.  Places without cells that no rank has
    are rank 0's; without any array there is no dtype.  Collective; ValueError on all ranks unless
    every place with cells has one array that holds `full[place]`, all of one dtype.
    """
    agree_on_call(comm, "HaloPattern.exchange", {"the pattern": pattern}, _fault(arrays, full))
    mine = {int(place): array.dtype for place, array in arrays.items()}
    given: dict[int, int] = {}
    dtypes: dict[np.dtype[Any], str] = {}
    for rank, theirs in enumerate(all_values(comm, mine)):
        for place, dtype in theirs.items():
            if place in given:
                raise on_all_ranks(ValueError(
                    f"place {place} has an array on rank {given[place]} and one on rank {rank}; "
                    f"give the arrays of a place on one rank"
                ))  # fmt: skip
            given[place] = rank
            dtypes.setdefault(dtype, f"{dtype} for place {place} on rank {rank}")
    missing = [place for place, box in enumerate(full) if not box.empty and place not in given]
    if missing:
        raise on_all_ranks(ValueError(
            f"place {missing[0]}: an array {full[missing[0]].extent} is needed, and no rank gives "
            f"one; give {{place: array}} for every place that owns cells"
        ))  # fmt: skip
    if len(dtypes) > 1:
        raise on_all_ranks(ValueError(
            f"all arrays must be of one dtype, got {', '.join(dtypes.values())}; convert them "
            f"with astype"
        ))  # fmt: skip
    return tuple(given.get(place, 0) for place in range(len(full))), next(iter(dtypes), None)


def _fault(arrays: Arrays, full: Sequence[Shape]) -> str | None:
    """Why the arrays of this rank cannot be exchanged, or None."""
    if not isinstance(arrays, Mapping):
        return str(wrong("arrays", "a dict {place: array}", arrays, "give the places' arrays"))
    for place, array in arrays.items():
        is_number = isinstance(place, (int, np.integer)) and not isinstance(place, bool)
        if not is_number or not 0 <= place < len(full):
            return f"arrays: places are whole numbers in 0..{len(full) - 1}, got {place!r}"
        found = problem(array, full[place], f"place {place}")
        if found is None and not array.flags.writeable:
            found = f"place {place}: the array is read-only; give a copy"
        if found is not None:
            return found
    return None
