# SPDX-License-Identifier: MIT
"""Arrays of a workspace that do not fit their devices: they live on the host, and pass through.

That begins with the first array for which a device has no room, and holds for all of them.
"""
# docs/decisions/0067-calls-pass-through-in-chunks.md
from __future__ import annotations

import gc
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol, cast

import numpy as np

from controllers.array.stream_tuning import StreamTuner
from controllers.engine import RunLog
from controllers.executor.executor import DeviceExecutor
from controllers.memory.ledger import MemoryCapError
from controllers.memory.tile import Tile
from controllers.placement.placement import Placement, failing_together
from controllers.placement.stream_size import Streamed
from controllers.plan import TileKey
from controllers.plan.chunks.chunks import SLOTS
from controllers.plan.chunks.streams import StreamPlan
from hitmap.agreement import on_all_ranks
from hitmap.comm import Communicator
from hitmap.strided import Geometry

WHOLE = "a device that shares the host's memory has no other one to take chunks from"


class Client(Protocol):
    """Who has arrays, or what is bound to their tiles."""

    def forget(self) -> None: ...       # what is bound
    def to_host(self) -> None: ...      # with the arrays


class Streams:
    """Of one workspace: whether its arrays pass through, and the memory for that.

    n_chunks: of each place, at least, where that was asked for; then arrays pass through that fit,
    too.  n_slots: chunks for which there is room at once.  searches: what nobody says of these is
    found out while calls pass through.
    """

    def __init__(
        self, placement: Placement, comm: Communicator, n_slots: int | None = None,
        n_chunks: int | None = None, *, searches: bool = False,
    ) -> None:  # fmt: skip
        self.placement, self.comm = placement, comm
        self.searches, self.has_fixed_slots = searches, n_slots is not None
        self.tuners: dict[object, StreamTuner] = {}     # by what is called, and on how much
        self.n_slots, self.n_chunks = SLOTS if n_slots is None else n_slots, n_chunks
        self.is_on = False
        self.figures: dict[Streamed, int] = {}      # calls
        self.log: RunLog | None = None      # who is told what calls start, in place of others
        self._clients: list[Client] = []
        if n_chunks is not None:
            self.begin(None)

    def join(self, client: Client) -> None:
        """It is told of what concerns it."""
        self._clients.append(client)

    def begin(self, error: MemoryCapError | None) -> None:
        """From now on all arrays are on the host; `error` says what did not fit.  Collective.

        It is raised again where a device cannot do so.
        """
        if any(where.shares_host for where in self.placement.locations):
            if error is None:
                raise on_all_ranks(ValueError(
                    f"arrays cannot pass through their devices in chunks: {WHOLE}; use "
                    f"zero_copy=False, or leave chunks out"
                ))  # fmt: skip
            raise MemoryCapError(f"{error}; it cannot pass through in chunks: {WHOLE}") from None
        self.is_on = True
        for client in self._clients:
            client.forget()
        for client in self._clients:
            client.to_host()

    def tiles(self, geometries: Mapping[int, Geometry], dtype: str) -> dict[int, Tile]:
        """Memory for an array, by place: on the devices while these have room.  Collective."""
        if not self.is_on:
            try:
                with failing_together(self.comm):
                    return {
                        place: self.placement.executors[place].tile(geometry, np.dtype(dtype))
                        for place, geometry in geometries.items()
                    }
            except MemoryCapError as error:
                self.begin(error)
        return {
            place: self.on_host(place, geometry, dtype) for place, geometry in geometries.items()
        }

    def on_host(self, place: int, geometry: Geometry, dtype: str) -> Tile:
        """Memory of the host that the device of a place reaches fast, without gaps."""
        dense = Geometry.dense(geometry.box)
        executor = self.device(place)
        host = executor.image_memory(dense.n_elements, np.dtype(dtype))
        return Tile(dense, np.dtype(dtype), host, None)

    def device(self, place: int) -> DeviceExecutor:
        """That of a place of this rank."""
        return cast(DeviceExecutor, self.placement.executors[place])

    def free(self, executor: DeviceExecutor) -> int:
        """Bytes of a device's memory for slots, and for what calls take beside them."""
        ledger = executor.ledger
        return ledger.cap_bytes - ledger.on_device + executor.slot_memory.nbytes

    @property
    def has_slots(self) -> bool:
        """Whether a device of this rank has any."""
        return self.is_on and any(
            self.device(place).slot_memory.nbytes for place in self.placement.executors
        )

    def give_way(self) -> None:
        """Give back the slots of all devices; calls that pass through make them anew.  Collective.
        """
        for client in self._clients:
            client.forget()
        for place in self.placement.executors:
            self.device(place).slot_memory.drop()
        gc.collect()    # what was bound refers to itself

    def slots(
        self, plan: StreamPlan, executors: Mapping[int, DeviceExecutor],
        beside: Mapping[DeviceExecutor, int],
    ) -> dict[TileKey, Tile]:  # fmt: skip
        """The tiles of a plan in slots, which other calls use, too.  Collective.

        executors: of its places.  beside: bytes that it takes of each device beside them.
        """
        wanted = [
            (executors[chunks[0]], [*plan.rooms(chunks)]) for chunks in plan.chunks.values()
        ]
        parts = [
            (executor, rooms, [[_nbytes(plan, *one) for one in slot.items()] for slot in rooms])
            for executor, rooms in wanted
        ]
        lacks = not all(
            one.slot_memory.has_room(sizes)
            and one.ledger.on_device + beside[one] <= one.ledger.cap_bytes
            for one, _, sizes in parts
        )
        if any(self.comm.allgather(lacks)):
            self.give_way()
            for executor, _, sizes in parts:
                executor.slot_memory.make(sizes)
        return {
            key: Tile(geometry, np.dtype(plan.program.dtypes[key.field]), None, buffer)
            for executor, rooms, sizes in parts
            for slot, buffers in zip(rooms, executor.slot_memory.parts(sizes))
            for (key, geometry), buffer in zip(slot.items(), buffers)
        }

    def called(self, figures: Streamed) -> None:
        """A call has passed through."""
        self.figures[figures] = self.figures.get(figures, 0) + 1

    @property
    def report(self) -> tuple[Streamed, ...]:
        """What has passed through, with the number of calls."""
        return tuple(replace(one, calls=calls) for one, calls in self.figures.items())


def _nbytes(plan: StreamPlan, key: TileKey, geometry: Geometry) -> int:
    return max(1, geometry.n_elements) * np.dtype(plan.program.dtypes[key.field]).itemsize
