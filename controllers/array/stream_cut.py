# SPDX-License-Identifier: MIT
"""How many chunks a call on arrays of the host passes through in: what it asks for, what fits."""
# docs/decisions/0067-calls-pass-through-in-chunks.md
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

import numpy as np

from controllers.array.mapped import Placed
from controllers.array.streams import Streams
from controllers.executor.executor import DeviceExecutor
from controllers.executor.slot_memory import slot_nbytes
from controllers.memory.ledger import MemoryCapError, size, sizes
from controllers.placement.capacity import nbytes_beside_tiles
from controllers.placement.chunking import cut
from controllers.placement.stream_size import Demand
from controllers.plan.chunks.streams import StreamPlan
from controllers.program.items import items_of
from controllers.program.program import Program
from controllers.tuning.sizes import Size
from hitmap.agreement import on_all_ranks
from hitmap.comm import Communicator
from hitmap.layout import Layout
from hitmap.strided import Geometry

MOST_TRIES = 16     # numbers of chunks, each an eighth more than the one before


class StreamCut:
    """A program of one sweep on arrays that live on the host, cut into chunks.

    given: the arrays, by field.  layout: whose rows of the result are where, chunks apart.  wholes:
    the fields that stay on the devices.  n_slots: chunks that there is room for at once.
    """

    def __init__(
        self, program: Program, given: Mapping[str, Placed], layout: Layout, streams: Streams,
        comm: Communicator, wholes: Collection[str],
    ) -> None:  # fmt: skip
        self._program, self._given, self._layout = program, given, layout
        self._streams, self._comm, self._wholes = streams, comm, frozenset(wholes)
        self._n_slots = streams.n_slots

    def _sized(self, wanted: int | None) -> tuple[int, int, StreamPlan]:
        """How many chunks each place has, how many are needed, and the plan.  Collective.

        wanted: chunks; by default as many as are asked for, or a pipeline wants.
        """
        single = self._checked(1)
        self._demands = {device: self._demand(single, places) for device, places in self._mine(1)}
        least = self.least(self._n_slots)
        if least is None:
            self._agree(self._problem(device, one) for device, one in self._demands.items()
                        if self._least_of(device, self._n_slots) is None)  # fmt: skip
        assert least is not None, "a device has no room"
        mine = [one.wanted_chunks(self._n_slots, device.device.kind)
                for device, one in self._demands.items()]  # fmt: skip
        asked = wanted or self._streams.n_chunks
        most = max(self._comm.allgather(asked or max(mine, default=1)))
        for n_chunks in _tries(least, max(least, most), self._rows):
            plan = self._planned(n_chunks)
            if all(self._comm.allgather(self._fits(plan, n_chunks))):
                return n_chunks, least, plan
        self._agree(
            self._problem(device, self._demands[device], self._beside(single, device, places))
            for device, places in self._mine(1)
        )
        raise AssertionError("a device has no room")

    def _agree(self, problems: Iterable[str]) -> None:
        """`MemoryCapError` on all ranks where one has a problem.  Collective."""
        for problem in self._comm.allgather(next(iter(problems), "")):
            if problem:
                raise on_all_ranks(MemoryCapError(problem))

    def _checked(self, n_chunks: int) -> StreamPlan:
        """The plan; ValueError on all ranks where one of them lacks rows.  Collective."""
        problem, plan = "", None
        try:
            plan = self._planned(n_chunks)
        except ValueError as error:
            problem = str(error)
        for text in self._comm.allgather(problem):
            if text:
                raise ValueError(text)
        assert plan is not None, "no problem on any rank"
        return plan

    def _planned(self, n_chunks: int) -> StreamPlan:
        placement, homes = self._streams.placement, self._homes(n_chunks)
        layout, chunks = cut(self._layout, placement, n_chunks)
        split = {name: one for name, one in self._given.items() if name not in self._wholes}
        apart = {name: cut(one.layout, placement, n_chunks)[0] for name, one in split.items()}
        apart |= {
            name: Layout.bands(self._given[name].layout.domain, layout.n_places)
            for name in self._wholes
        }
        return StreamPlan(
            self._program, layout, (False,) * layout.domain.n_axes, chunks.locations,
            wholes={name: Geometry.dense(self._given[name].layout.domain)
                    for name in self._wholes},
            images={
                name: {chunk: one.tiles[home].geometry
                       for chunk, home in enumerate(homes) if home in one.tiles}
                for name, one in split.items()
            },
            apart=apart, n_slots=self._n_slots, only_rank=self._comm.rank,
        )  # fmt: skip

    def _homes(self, n_chunks: int) -> list[int]:
        """The place of the workspace that each chunk is a part of."""
        return [
            place for place, box in enumerate(self._layout.owned)
            for _ in range(max(1, min(n_chunks, box.extent[0])))
        ]  # fmt: skip

    def _devices(self, n_chunks: int) -> dict[int, DeviceExecutor]:
        """By chunk of this rank."""
        mine = self._streams.placement.executors
        homes = enumerate(self._homes(n_chunks))
        return {chunk: self._streams.device(home) for chunk, home in homes if home in mine}

    def _mine(self, n_chunks: int) -> list[tuple[DeviceExecutor, list[int]]]:
        """The devices of this rank with their chunks."""
        found: dict[DeviceExecutor, list[int]] = {}
        for chunk, device in self._devices(n_chunks).items():
            found.setdefault(device, []).append(chunk)
        return [*found.items()]

    def _demand(self, single: StreamPlan, places: Sequence[int]) -> Demand:
        items = items_of(single.sweeps[0].stage)
        split = single.split_fields
        up, down = single.nbytes([place for place in places if place in single.places])
        return Demand(
            rows=max(single.owned(single.sweeps[0].stage.home, one).extent[0] for one in places),
            row_nbytes=sum(self._row_nbytes(name) for name in split), n_arrays=len(split),
            private_nbytes=0 if items is None else items.private_nbytes,
            beside=single.halo_rows, up_nbytes=up, down_nbytes=down,
        )  # fmt: skip

    def _row_nbytes(self, name: str) -> int:
        columns = prod(self._given[name].layout.domain.extent[1:])
        return columns * np.dtype(self._program.field(name).dtype).itemsize

    def _fits(self, plan: StreamPlan, n_chunks: int) -> bool:
        """Whether the slots do, beside what launches take, on this rank's devices."""
        for device, chunks in self._mine(n_chunks):
            passing = [chunk for chunk in chunks if chunk in plan.places]
            needed = self._beside(plan, device, chunks)
            for slot in plan.rooms(passing) if passing else ():
                nbytes = slot_nbytes([
                    one.n_elements * np.dtype(plan.program.dtypes[key.field]).itemsize
                    for key, one in slot.items()
                ])  # fmt: skip
                needed += nbytes
                if nbytes > device.ledger.largest_bytes:
                    return False
            if needed > self._streams.free(device):
                return False
        return True

    def _beside(
        self, plan: StreamPlan, device: DeviceExecutor, chunks: Sequence[int]
    ) -> int:
        """Bytes of tables and folds of the launches of these chunks."""
        return nbytes_beside_tiles(plan, device, [one for one in chunks if one in plan.places])

    def _problem(self, device: DeviceExecutor, demand: Demand, tables: int = 0) -> str:
        """What has no room, with the figures; tables: bytes beside the slots, for each chunk."""
        ledger = device.ledger
        rows = 1 + demand.beside
        a_row = replace(demand, rows=1)
        needed = self._n_slots * (rows * a_row.row_nbytes) + a_row.private_nbytes
        used = ledger.on_device - device.slot_memory.nbytes
        need, beside, cap = sizes(needed, used, ledger.cap_bytes)
        slots = f"{self._n_slots} slot{'s' * (self._n_slots > 1)}"
        folds = f", and each chunk {size(tables)} of tables and folds," if tables else ""
        return (
            f'{self._name}: one row of each of {demand.n_arrays} arrays in {slots} needs {need}'
            f'{folds} on "{ledger.device}", where {beside} are in use for whole arrays, the cap '
            f"is {cap}; use fewer slots, smaller whole arrays, or a larger --memory-cap"
        )

    @property
    def _name(self) -> str:
        """For people."""
        return self._program.stages[0].name

    @property
    def _rows(self) -> int:
        """Of the place with the most."""
        return max(box.extent[0] for box in self._layout.owned)

    def _least_of(self, device: DeviceExecutor, n_slots: int) -> int | None:
        free, largest = self._streams.free(device), device.ledger.largest_bytes
        return self._demands[device].least_chunks(n_slots, free, largest)

    def least(self, n_slots: int) -> int | None:
        """The chunks of each place that are needed; None where not a row has room.  Collective."""
        mine = [self._least_of(device, n_slots) for device in self._demands]
        found = [one for rank in self._comm.allgather(mine) for one in rank]
        return None if None in found else max((one or 1 for one in found), default=1)

    def has_room(self, size: Size) -> bool:
        """Whether it may pass through in chunks of this size.  Collective."""
        before, self._n_slots = self._n_slots, size.slots
        try:
            plan = self._planned(size.chunks)
            return all(self._comm.allgather(self._fits(plan, size.chunks)))
        finally:
            self._n_slots = before


def _tries(least: int, wanted: int, rows: int) -> Iterator[int]:
    """Numbers of chunks: what is wanted, then as few as may be, as tables of each take room, too.

    >>> [*_tries(4, 20, 7)]
    [7, 4, 5, 6]
    """
    more = accumulate(range(MOST_TRIES), lambda n, _: n + -(-n // 8), initial=least)
    return iter(dict.fromkeys(max(1, min(n, rows)) for n in (wanted, *more)))
