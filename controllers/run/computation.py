# SPDX-License-Identifier: MIT
"""Computations: a program on fields that are distributed over places."""
from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import astuple, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any

import controllers
from controllers import tuning
from controllers.array.arrays import Arrays
from controllers.calls.array_calls import ArrayCalls
from controllers.calls.call import Calls, check_communicator, collective, refuse_together
from controllers.calls.state import State
from controllers.calls.watchdog import Watchdog, Watched
from controllers.engine import configurations
from controllers.kernel.configuration import KernelUse
from controllers.language.half_points import Locations
from controllers.language.kinds import DTypes
from controllers.placement.capacity import folds_nbytes
from controllers.plan import ChunkPlan
from controllers.plan.size import place_sizes
from controllers.program.structure import described
from controllers.report.explain import explain
from controllers.report.pipeline import PipelineLog, PipelineReport
from controllers.report.report import Report
from controllers.report.timings import Timings
from controllers.report.trace import Trace
from controllers.report.trace_file import save_timeline
from controllers.run.digesting import Digested
from controllers.run.parameters import Parameters
from controllers.run.stepping import Stepping
from controllers.settings.division import Division
from controllers.settings.domain import Boundaries
from controllers.settings.execution import Execution
from controllers.settings.initial import Given
from controllers.settings.overrides import overrides
from controllers.settings.request import Described, Request, Sizes, divided_anew
from controllers.tuning.sizes import SizeChooser
from hitmap.agreement import next_number
from hitmap.argument import file_name
from hitmap.comm import Communicator, default_communicator
from hitmap.redistribute import Redistribution
from hitmap.sealed import sealed
from hitmap.uncaught import install_where_ranks_are

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from controllers.settings.division import DivisionKeywords


class Computation(Stepping):
    """A program on a field, distributed over places: load it, run steps, look, go on.

    All methods are collective unless they say otherwise: every rank of `comm` calls them in
    the same order with the same arguments.

    program: a `Program`, a `Stencil`, or steps, one or a list of them (`controllers.step`).
    sizes: a `Grid`, or extents of the fields in cells, their boundary cells included; of a program
        of one field also its initial values, an array, or one with named axes such as xarray's.
    dtype: of all fields, or of each by its name; by default that of the initial values, else
        float64.
    boundary: what lies outside the domain, for all fields or as {field: ...}: a rule or a word
        for all axes, one per axis, or {axis: rule or (lower, upper)}.  Words are "fixed", which is
        the default of patterns (cells that reach beyond keep their value), "periodic", "mirror",
        "fixed:0" and "extrapolate:1"; rules `mirror`, `fixed`, `extrapolate` and `custom`
        (docs/boundaries.md).  Where nothing is said, those of the program or of the grid.
    location: of steps, the fields that lie at half points of axes, such as dict(vx="x"); the others
        lie at cells (docs/programs.md).
    dt: the time that a step takes, for programs that use it, and for `time`.
    init: initial values of fields, and values of parameters, by name: for names that are keywords
        of this call.
    division: how the fields are cut, a `Division`.
    execution: how they are computed, an `Execution`.
    keywords: the fields of these two, which then change what the groups say.  `Division` and
        `Execution` explain them:

        partition, weights, align, block, dims, layout, places_per_controller;
        devices, overlap, exchange, steps_per_launch, halo_width, math, kernel, tune, balance,
        check, verify_messages, digest_every, watchdog, trace, memory_cap, chunks, slots,
        host_memory_cap, scratch, zero_copy, exclusive;

        and initial values by the names of fields: a number, an array, of which that of rank 0
        counts, a .npy, .zarr or .nc file, or a function of coordinates (docs/fields.md).

    `run.u` or `run["u"]` is a field, much like an array (`OneField`); where there is one only, the
    computation itself has the same verbs.
    """

    def __init__(
        self,
        program: Described,
        sizes: Sizes,
        *,
        dtype: DTypes = None,
        boundary: Boundaries = None,
        location: Locations = None,
        dt: float | None = None,
        init: Mapping[str, Given] | None = None,
        comm: Communicator | None = None,
        division: Division | None = None,
        execution: Execution | None = None,
        **keywords: Any,
    ) -> None:
        check_communicator(comm)
        self.comm = default_communicator() if comm is None else comm
        install_where_ranks_are(self.comm)
        request = refuse_together(self.comm, lambda: Request.of(
            program, sizes, dtype=dtype, boundary=boundary, location=location, dt=dt, init=init,
            division=division, execution=execution, keywords=keywords, complete=True,
        ))  # fmt: skip
        self.calls = Calls(self.comm, f"a computation of {request.program.name}")
        self.state = State()
        self._watched = Watched(self.calls)
        self._watchdog = Watchdog(request.execution.limit_s, self._watched)
        with self.calls.agreed(
            "set-up", package=controllers.__version__, program=described(request.program),
            **request.facts,
        ):  # fmt: skip
            number = next_number(self.comm)
            self.calls.owner = f"computation {number} ({request.program.name})"
            self._watchdog.connect(self.comm, number)
            with overrides().answering():
                self._begin(request)
        for initial in request.initial:     # arrays are the user's, and not kept
            self._set(initial)
        overrides().made(self)

    def _begin(self, request: Request) -> None:
        """Assemble what runs, and what keeps its figures; all cells are 0."""
        self._request = replace(request, initial=())
        self._parameters = Parameters(request.scalars)
        self._messages = self.comm.Dup()
        if request.execution.verify_messages:
            self._messages = sealed(self._messages)
        self._asked = self._request
        self._assembly = self._first_assembly(request)
        self._n_before = 0
        self._expressions = Arrays(
            self._engine, self.comm, self._messages, self.program.math,
            ArrayCalls(self.calls, self.state),
        )  # fmt: skip
        self._timings = Timings()
        self._looks, self._results, self._serieses = [], None, {}
        every = request.execution.digest_every
        if every is not None:
            self._digested = Digested(every, lambda: self._digests_now().begin())
            self._looks.append(self._digested)
        self._chunks_log = PipelineLog() if isinstance(self.plan, ChunkPlan) else None
        execution = request.execution
        self._trace = Trace(self._messages) if execution.trace else None
        tune = execution.tune
        self._tuner = tuning.Tuner(self._engine, self.comm, tune) if tune else None
        self._engine.clear()
        self._balancer = self._new_balancer()
        self._chooser = self._new_chooser()
        self._ways = self._new_ways()

    def redistribute(
        self, division: Division | None = None, **keywords: Unpack[DivisionKeywords]
    ) -> Redistribution:
        """Divide the fields otherwise; they keep their values, and steps go on as if undisturbed.

        division: a `Division`, or its fields as keywords; as many places per controller as before
        where neither says it.  Cells that change the controller are sent, all others copied where
        they are.  Where old and new tiles do not fit in memory together, field after field moves
        by itself; refused where that exceeds the cap, too.  Returns what has moved.
        """
        self.state.check_idle("redistribute")
        wanted = refuse_together(
            self.comm, lambda: divided_anew(self._request.division, division, keywords)
        )
        return self._redistribute(wanted)

    @collective("division", use="reads")
    def _redistribute(self, division: Division) -> Redistribution:
        if isinstance(self.plan, ChunkPlan):
            raise ValueError(
                "fields that pass through their devices in chunks are not divided anew; make a "
                "computation with the other division, and give it these"
            )
        request = replace(self._request, division=division)
        moves = self._divide(request, self._drafted(request))
        self._choice = None     # who says how to cut says for how many
        self._balancer = self._new_balancer()
        return moves

    @collective(or_closed=True)
    def report(self) -> Report:
        """What all steps so far have cost, the same on all ranks; places since they are as now."""
        tuned = None if self._tuner is None else self._tuner.report()
        devices = self._assembly.terms.controllers.report()
        found = self._timings.report(self._engine, devices, tuned, self.comm)
        balancer = self._balancer
        tried = {} if self._chooser is None else self._chooser.of_widths
        return replace(
            found, balance=None if balancer is None else balancer.report(),
            choice=None if self._choice is None else self._choice.report(),
            exchange=None if self._ways is None else self._ways.report(),
            halo_width=self.halo_width, widths=tried, lengths=self.plan.longest,
            pipeline=self._seen_passes(),
            digests=None if self._digested is None else self._digested.report,
        )  # fmt: skip

    def _seen_passes(self) -> PipelineReport | None:
        """Of the chunks of all ranks, where fields pass through.  Collective."""
        if self._chunks_log is None:
            return None
        mine = self._chunks_log.report()
        found = PipelineReport.of_ranks(self.comm.allgather(mine))
        sizes = self._chooser.seconds if isinstance(self._chooser, SizeChooser) else {}
        tried = tuple((*astuple(size), seconds) for size, seconds in sizes.items())
        chunking = self._assembly.chunking
        links = None if chunking is None else chunking.shared_links
        return None if found is None else replace(found, tried=tried, links=links)

    @collective("path")
    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline of all ranks; OSError on all of them, and no file, if that fails."""
        if self._trace is None:
            raise ValueError("no timeline was recorded; make the Computation with trace=True")
        file_name(path, "path")
        save_timeline(self._trace.timeline(), path, self.comm)

    @collective()
    def explain(self) -> str:
        """Program, layout, messages, plan, kernels and bytes per place, the same on all ranks.

        And how shares are balanced, and the array expressions that have been computed.
        """
        plan, executors = self.plan, self._engine.executors
        mine = {place: folds_nbytes(plan, executors[place], place) for place in plan.places}
        folds = {place: n for rank in self.comm.allgather(mine) for place, n in rank.items()}
        whole = plan.of_rank(None)
        text = explain(
            whole, self._configurations(), place_sizes(whole, folds), self.placement.why
        )
        begun, balancer = self._first_division, self._balancer
        if balancer is not None or begun.why:
            room = self.plan.root.room
            more = f"; tiles have room for cuts to move by {room} rows" if room else ""
            text += f"\n\n{begun}{more}"
        if balancer is not None:
            text += f"\n{balancer.report()}"
        if self._choice is not None:
            text += f"\n\n{self._choice.report()}"
        if self._ways is not None:
            text += f"\n\n{self._ways.report()}"
        return text + self._arrays.explain()

    @collective()
    def configurations(self) -> list[KernelUse]:
        """The kernels of all places and what they are launched on, the same on all ranks."""
        return self._configurations()

    def _configurations(self) -> list[KernelUse]:
        everyone = self.comm.allgather(configurations(self._engine))
        return [one for rank in everyone for one in rank]

    def close(self) -> None:
        """Give back what belongs to MPI; tiles go with the last reference to the object."""
        if not self.state.closed:
            overrides().closes(self)
            self._close()

    @collective()
    def _close(self) -> None:
        self.state.closed = True
        try:
            self._close_outputs()
        finally:
            self._arrays.close()
            self._assembly.relay.close(self._engine)
            self._messages.Free()
            self._watchdog.stop()
            self._let_go()

    def _let_go(self) -> None:
        """Of the devices, for others."""
        mark = self._assembly.terms.controllers.mark
        if mark is not None:
            mark.close()

    def __enter__(self) -> Computation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:   # collective: on an error the other ranks do not take part
            self.close()
        elif not self.state.closed:
            self._let_go()
