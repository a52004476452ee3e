# SPDX-License-Identifier: MIT
"""What steps cost, counted while they run."""
from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from controllers.engine import Engine, Looks, Progress, RunLog, Several, configurations
from controllers.plan.course import RunLaunches
from controllers.report.exchange_time import PlaceTime, place_times
from controllers.report.report import DeviceReport, PlaceReport, Report, Wait
from controllers.report.trace import Trace
from controllers.report.tuning_report import TuningReport
from hitmap.comm import Communicator

CLOCK_AGE_NS = 500_000_000      # devices' clocks are read anew after so long; they drift slowly


@dataclass
class _Sum:
    """Seconds of one place, estimated for all steps from those that were sampled."""

    compute_s: float = 0.0
    exchange_s: float = 0.0
    exposed_s: float = 0.0
    waits_s: dict[int, float] = field(default_factory=dict)

    def add(
        self, sample: PlaceTime, n_steps: int, n_exchanges: float, seconds: float
    ) -> None:
        """`n_steps` steps of the plan, and so many exchanges, have taken `seconds`.

        None of the times is longer.
        """
        if not sample.n_steps:
            return
        compute_s = min(sample.compute_ns * 1e-9 / sample.n_steps * n_steps, seconds)
        self.compute_s += compute_s
        if not sample.n_exchanges:
            return
        scale = 1e-9 / sample.n_exchanges * n_exchanges
        exchange_s = min(sample.exchange_ns * scale, seconds)
        self.exchange_s += exchange_s
        self.exposed_s += min(sample.exposed_ns * scale, exchange_s, seconds - compute_s)
        for neighbour, wait_ns in sample.waits_ns.items():
            wait_s = min(wait_ns * scale, seconds - compute_s)
            self.waits_s[neighbour] = self.waits_s.get(neighbour, 0.0) + wait_s


class Timings:
    """Seconds and steps since the start; kernels and exchanges of each place of this rank.

    Figures of places begin anew when the field is divided anew.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._own_s = 0.0       # of this rank, which the others have not been told yet
        self.n_steps = 0
        self.new_places()

    def new_places(self) -> None:
        """Forget the figures of places: they are others from now on."""
        self._steps_of_places = 0
        self._sums: dict[int, _Sum] = {}

    def run(
        self,
        engine: Engine,
        n_steps: int,
        comm: Communicator,
        progress: Progress | None = None,
        trace: Trace | None = None,
        log: RunLog | None = None,
        until: float = math.inf,
        looks: Looks | None = None,
    ) -> None:
        """Run steps and count what they cost; what it takes to count is outside.  Collective.

        The engine tells `trace` and `log` what it starts; it may end early, and its course then
        knows why.
        """
        engine.prepare(n_steps)
        before = engine.n_steps
        if trace is not None:
            trace.begin(engine)
        start = time.perf_counter()
        logs = [one for one in (trace, log) if one is not None]
        engine.run(n_steps, progress, Several(logs) if logs else None, until, looks)
        seconds, n_done = time.perf_counter() - start, engine.n_steps - before
        if trace is not None:
            trace.end(engine)
        self._add(engine, n_done, seconds)
        everyone = comm.allgather((seconds, engine.course.reason))
        engine.course.settle([reason for _, reason in everyone])
        self.seconds += max(taken for taken, _ in everyone)
        self.n_steps += n_done

    def count(self, engine: Engine, n_steps: int, seconds: float) -> None:
        """A run that stood still now and then has taken so long on this rank."""
        self._add(engine, n_steps, seconds)
        self._own_s += seconds
        self.n_steps += n_steps

    def _add(self, engine: Engine, n_steps: int, seconds: float) -> None:
        """`n_steps` steps have taken `seconds` on this rank."""
        self._steps_of_places += n_steps
        engine.read_clocks(older_than_ns=CLOCK_AGE_NS)
        pairs = engine.samples.pairs(engine.on_host_clock)
        n_launches = RunLaunches.of(engine.plan, n_steps).count
        n_exchanges = n_launches * engine.plan.span / engine.plan.halo_width
        for place, sample in place_times(engine.plan, engine.ends, pairs).items():
            self._sums.setdefault(place, _Sum()).add(sample, n_launches, n_exchanges, seconds)

    def report(
        self,
        engine: Engine,
        devices: Sequence[DeviceReport],
        tuning: TuningReport | None,
        comm: Communicator,
    ) -> Report:
        """What all steps have cost; `devices` and `tuning` are those of this rank.  Collective."""
        mine = [self.place(engine, place) for place in engine.executors]
        kernels = configurations(engine, largest=True)
        everyone = comm.allgather((mine, devices, kernels, tuning, self._own_s))
        self.seconds += max(rank[4] for rank in everyone)
        self._own_s = 0.0
        plan = engine.plan
        return Report(
            self.seconds,
            self.n_steps,
            plan.layout.domain.n_cells,
            tuple(sorted((p for rank in everyone for p in rank[0]), key=lambda place: place.place)),
            tuple(device for rank in everyone for device in rank[1]),
            tuple(dict.fromkeys(kernel for rank in everyone for kernel in rank[2])),
            plan.steps_per_launch,
            plan.program.math,
            TuningReport.of_ranks([rank[3] for rank in everyone]),
            engine.numbers.parameters,
        )

    def place(self, engine: Engine, place: int) -> PlaceReport:
        """The figures of one place of this rank."""
        plan = engine.plan
        location = plan.locations[place]
        total = self._sums.get(place, _Sum())
        n_cells = plan.layout.owned[place].n_cells
        n_computed = n_cells * self._steps_of_places
        return PlaceReport(
            place=place,
            rank=location.rank,
            device=location.device,
            cells=n_cells,
            share=n_cells / plan.layout.domain.n_cells,
            cells_per_s=n_computed / total.compute_s if total.compute_s else 0.0,
            compute_s=total.compute_s,
            exposed_s=total.exposed_s,
            memory=plan.memory(place),
            controller=location.controller,
            exchange_s=total.exchange_s,
            waits=tuple(Wait(other, s) for other, s in sorted(total.waits_s.items())),
        )
