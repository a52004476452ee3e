# SPDX-License-Identifier: MIT
"""Programs of one sweep on arrays that live on the host: chunk by chunk through their devices.

The number of chunks is found before anything is allocated (`placement/stream_size.py`); the engine
then replays a plan of chunks as it does any other one.
"""
# docs/decisions/0067-calls-pass-through-in-chunks.md
from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from controllers.array.mapped import Placed
from controllers.array.one_off import OneOffEngine
from controllers.array.stream_cut import StreamCut
from controllers.array.stream_tuning import StreamTuner
from controllers.array.streams import Streams
from controllers.device.event import Event
from controllers.engine import RunLog
from controllers.memory.ledger import MemoryCapError
from controllers.placement.stream_size import Streamed
from controllers.program.accumulator import Result
from controllers.program.program import Program
from controllers.program.structure import described
from controllers.tuning.kept_size import KeptSize
from controllers.tuning.sizes import Size
from hitmap.comm import Communicator
from hitmap.layout import Layout

MOST_TRIES = 16     # numbers of chunks, each an eighth more than the one before


class StreamRun(StreamCut):
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
        super().__init__(program, given, layout, streams, comm, wholes)
        self._said = said or {}
        self._is_bound = self._is_running = False
        self._is_wanted = True
        self._results: Mapping[str, Result] | None = None
        extents = [str(one.layout.domain) for one in given.values()]
        self._key = described(program), str(extents)
        tuner = streams.tuners.get(self._key)
        size = None if tuner is None else tuner.size
        try:
            self._bind(size)
        except MemoryCapError:      # with what other calls keep there is no room
            streams.give_way()
            self._bind(size)
        self._tuner = self._found_tuner() if streams.searches else None

    def _bind(self, size: Size | None) -> None:
        """Make what does a call, of this size if that is given.  Collective."""
        self._n_slots = self._streams.n_slots if size is None else size.slots
        n_chunks, least, self.plan = self._sized(None if size is None else size.chunks)
        homes, devices = self._homes(n_chunks), self._devices(n_chunks)
        self.home_of = dict(enumerate(homes))
        beside = {device: self._beside(self.plan, device, chunks)
                  for device, chunks in self._mine(n_chunks)}  # fmt: skip
        tiles = self._streams.slots(self.plan, devices, beside)
        for name, one in self._given.items():
            for place in self.plan.places:
                tiles[self.plan.image(name, place)] = one.tiles[homes[place]]
        self._engine = OneOffEngine(self.plan, devices, self._comm, tiles)
        self._is_bound = True
        found = Size(1, n_chunks, self._n_slots)
        self._size, self.figures = size or found, self._figured(n_chunks, least)

    def __str__(self) -> str:
        """What is done, for people."""
        return str(self.figures)

    def _found_tuner(self) -> StreamTuner:
        """Who finds out the size, for all calls of this kind.  Collective."""
        streams, key = self._streams, self._key
        if key not in streams.tuners:
            caps = self._comm.allgather([device.ledger.cap_bytes for device in self._demands])
            kept = KeptSize(self._checked(1), (caps, key, streams.has_fixed_slots))
            size = self._comm.bcast(kept.load() if self._comm.rank == 0 else None)
            is_known = size is not None and self.has_room(size)
            if size is not None and is_known:
                self._cut_anew(size)
            streams.tuners[key] = StreamTuner(
                self, self._size, self._rows, self._comm, kept, is_known=is_known,
                is_fixed=streams.has_fixed_slots,
            )  # fmt: skip
        return streams.tuners[key]

    def _figured(self, n_chunks: int, least: int) -> Streamed:
        """What is reported, the same on all ranks.  Collective."""
        plan = self.plan
        mine = self._comm.allgather((plan.nbytes(plan.places), plan.halo_rows))
        names = {name: self._said.get(name, name) for name in plan.program.dtypes}
        return Streamed(
            self._name,
            tuple(dict.fromkeys(names[name] for name in plan.split_fields)),
            tuple(names[name] for name in plan.program.dtypes if name in self._wholes),
            n_chunks, least, self._n_slots,
            sum(up for (up, _), _ in mine), sum(down for (_, down), _ in mine),
            sum(self._given[name].layout.domain.n_cells
                * plan.program.itemsize(name) for name in self._wholes),
            max(rows for _, rows in mine),
        )  # fmt: skip

    def run(self, numbers: Mapping[str, float], log: RunLog | None = None) -> list[Event]:
        """Do it with these numbers; nothing is under way then.  Collective.

        Nothing may be under way before; `log` is told what is started.
        """
        tuner, log = self._tuner, self._streams.log or log
        if tuner is None:
            self._engine.once(numbers, log)
        else:
            self._is_running = True
            try:
                self._run_tuned(tuner, numbers, log)
            finally:
                self._is_running = False
                if not self._is_wanted:
                    self._results = self._engine.folds.results
                    self.close()
        self._streams.called(self.figures)
        return []

    def _run_tuned(
        self, tuner: StreamTuner, numbers: Mapping[str, float], log: RunLog | None
    ) -> None:
        """The same in the size that is wanted now."""
        if tuner.size != self._size:
            start = time.perf_counter()
            self._cut_anew(tuner.size)
            tuner.took(time.perf_counter() - start)
        tuner.run(self, self._engine, lambda some: self._engine.once(numbers, some), log)

    def _cut_anew(self, size: Size) -> None:
        """Let chunks of another size pass through from now on.  Collective."""
        self._let_go()
        self._bind(size)

    @property
    def folds(self) -> Mapping[str, Result]:
        """What the last run has folded, on every rank."""
        return self._engine.folds.results if self._results is None else self._results

    def close(self) -> None:
        """Give back what belongs to MPI, and what it holds of memory; when it has run, if it does.
        """
        self._is_wanted = False     # others may need the slots that it asks for
        if not self._is_running:
            self._let_go()

    def _let_go(self) -> None:
        if self._is_bound:
            self._engine.release()
        self._is_bound = False
