# SPDX-License-Identifier: MIT
"""Programs of one sweep on arrays that live on the host: chunk by chunk through their devices.

The number of chunks is found before anything is allocated (`placement/stream_size.py`); the engine
then replays a plan of chunks as it does any other one.
"""
# docs/decisions/0067-calls-pass-through-in-chunks.md
from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from math import prod

import numpy as np

from controllers.array.mapped import Placed
from controllers.array.one_off import OneOffEngine
from controllers.array.streams import Streams
from controllers.device.event import Event
from controllers.engine import RunLog
from controllers.executor.executor import DeviceExecutor
from controllers.executor.slot_memory import slot_nbytes
from controllers.memory.ledger import MemoryCapError, size, sizes
from controllers.placement.capacity import nbytes_beside_tiles
from controllers.placement.chunking import cut
from controllers.placement.stream_size import Demand, Streamed
from controllers.plan.streams import StreamPlan
from controllers.program.accumulator import Result
from controllers.program.items import items_of
from controllers.program.program import Program
from hitmap.agreement import on_all_ranks
from hitmap.comm import Communicator
from hitmap.layout import Layout
from hitmap.strided import Geometry

MOST_TRIES = 16     # numbers of chunks, each an eighth more than the one before


class StreamRun:
    """A program on arrays of the host, to be done again and again; it ends before it returns.

    given: the arrays, by field.  layout: whose rows of the result are where, chunks apart.  wholes:
    the fields that stay on the devices.  `MemoryCapError` on all ranks where not a row has room.
    Collective.
    """

    is_light = False

    def __init__(
        self, program: Program, given: Mapping[str, Placed], layout: Layout,
        streams: Streams, comm: Communicator, *, wholes: Collection[str] = (),
        said: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._program, self._given, self._layout = program, given, layout
        self._streams, self._comm, self._wholes = streams, comm, frozenset(wholes)
        self._said = said or {}
        try:
            n_chunks, least, self.plan = self._sized()
        except MemoryCapError:      # with what other calls keep there is no room
            streams.give_way()
            n_chunks, least, self.plan = self._sized()
        homes, devices = self._homes(n_chunks), self._devices(n_chunks)
        self.home_of = dict(enumerate(homes))
        beside = {device: self._beside(self.plan, device, chunks)
                  for device, chunks in self._mine(n_chunks)}  # fmt: skip
        tiles = streams.slots(self.plan, devices, beside)
        for name, one in given.items():
            for place in self.plan.places:
                tiles[self.plan.image(name, place)] = one.tiles[homes[place]]
        self._engine = OneOffEngine(self.plan, devices, comm, tiles)
        self.figures = self._figured(n_chunks, least)

    def __str__(self) -> str:
        """What is done, for people."""
        return str(self.figures)

    def _sized(self) -> tuple[int, int, StreamPlan]:
        """How many chunks each place has, how many are needed, and the plan.  Collective."""
        single, streams = self._checked(1), self._streams
        demands = {device: self._demand(single, places) for device, places in self._mine(1)}
        found = {
            device: one.least_chunks(
                streams.n_slots, streams.free(device), device.ledger.largest_bytes
            )
            for device, one in demands.items()
        }
        self._agree(self._problem(device, demands[device])
                    for device, one in found.items() if one is None)  # fmt: skip
        wanted = [one.wanted_chunks(streams.n_slots, device.device.kind)
                  for device, one in demands.items()]  # fmt: skip
        least = max(self._comm.allgather(max((one or 1 for one in found.values()), default=1)))
        most = max(self._comm.allgather(streams.n_chunks or max(wanted, default=1)))
        rows = max(box.extent[0] for box in self._layout.owned)
        for n_chunks in _tries(least, max(least, most), rows):
            plan = self._planned(n_chunks)
            if all(self._comm.allgather(self._fits(plan, n_chunks))):
                return n_chunks, least, plan
        self._agree(
            self._problem(device, demands[device], self._beside(single, device, places))
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
            apart=apart, n_slots=self._streams.n_slots, only_rank=self._comm.rank,
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
        ledger, streams = device.ledger, self._streams
        rows = 1 + demand.beside
        a_row = replace(demand, rows=1)
        needed = streams.n_slots * (rows * a_row.row_nbytes) + a_row.private_nbytes
        used = ledger.on_device - device.slot_memory.nbytes
        need, beside, cap = sizes(needed, used, ledger.cap_bytes)
        slots = f"{streams.n_slots} slot{'s' * (streams.n_slots > 1)}"
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

    def _figured(self, n_chunks: int, least: int) -> Streamed:
        """What is reported, the same on all ranks.  Collective."""
        plan = self.plan
        mine = self._comm.allgather((plan.nbytes(plan.places), plan.halo_rows))
        names = {name: self._said.get(name, name) for name in plan.program.dtypes}
        return Streamed(
            self._name,
            tuple(dict.fromkeys(names[name] for name in plan.split_fields)),
            tuple(names[name] for name in plan.program.dtypes if name in self._wholes),
            n_chunks, least, self._streams.n_slots,
            sum(up for (up, _), _ in mine), sum(down for (_, down), _ in mine),
            sum(self._given[name].layout.domain.n_cells
                * plan.program.itemsize(name) for name in self._wholes),
            max(rows for _, rows in mine),
        )  # fmt: skip

    def run(self, numbers: Mapping[str, float], log: RunLog | None = None) -> list[Event]:
        """Do it with these numbers; nothing is under way then.  Collective.

        Nothing may be under way before; `log` is told what is started.
        """
        self._engine.once(numbers, self._streams.log or log)
        self._streams.called(self.figures)
        return []

    @property
    def folds(self) -> Mapping[str, Result]:
        """What the last run has folded, on every rank."""
        return self._engine.folds.results

    def close(self) -> None:
        """Give back what belongs to MPI, and what it holds of memory."""
        self._engine.release()


def _tries(least: int, wanted: int, rows: int) -> Iterator[int]:
    """Numbers of chunks: what is wanted, then as few as may be, as tables of each take room, too.

    >>> [*_tries(4, 20, 7)]
    [7, 4, 5, 6]
    """
    more = accumulate(range(MOST_TRIES), lambda n, _: n + -(-n // 8), initial=least)
    return iter(dict.fromkeys(max(1, min(n, rows)) for n in (wanted, *more)))
