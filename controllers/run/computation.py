# SPDX-License-Identifier: MIT
"""Computations: a program on a field that is distributed over places."""
from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

import numpy.typing as npt

import controllers
from controllers.check import Check, CheckedEngine, setting_of
from controllers.engine import Engine
from controllers.kernel.configuration import Configuration
from controllers.kernel.crash import labelled
from controllers.kernel.registry import agreed_kernel, check_math
from controllers.kernel.stage_kernel import domain_values
from controllers.kernel.variant import Kernel
from controllers.memory.tile import TileView
from controllers.placement.capacity import check_capacity, fits
from controllers.placement.partition import domain_of, periodic_axes
from controllers.placement.placement import Placement, divided, open_controllers
from controllers.placement.relocation import relocate
from controllers.placement.temporal import agreed_steps, plan_with_steps
from controllers.plan import Overlap, Plan
from controllers.program.program import Math, Program
from controllers.program.structure import described
from controllers.report.explain import explain
from controllers.report.report import Report
from controllers.report.timings import Timings
from controllers.report.trace import Trace
from controllers.report.trace_file import save_timeline
from controllers.run.call import Calls, collective, noted
from controllers.run.door import check_communicator, check_options, refuse_together
from controllers.run.field_access import FieldAccess
from controllers.run.interruption import Interruption
from controllers.run.progress import Watcher, told_by
from controllers.run.state import State
from controllers.run.watchdog import VARIABLE, Watchdog, Watched, limit
from controllers.tuning import Tuner, check_tuning
from hitmap.agreement import next_number
from hitmap.argument import file_name, function, whole
from hitmap.comm import Communicator, default_communicator
from hitmap.layout import Layout
from hitmap.redistribute import Redistribution
from hitmap.uncaught import install_where_ranks_are


class Computation:
    """A program on a field, distributed over places: load it, run steps, look, go on.

    All methods are collective unless they say otherwise: every rank of `comm` calls them in
    the same order with the same arguments.

    sizes: extents of the field in cells, its boundary cells included.
    partition: "bands" (along axis 0); "blocks" (on all axes); "weighted" or "weighted-blocks"
        (bands, or bands that are cut in blocks, in proportion to `weights`, one per place in
        order of rank); "cyclic" (blocks of the extent `block`, each of them a place, dealt to
        the controllers in turn).  By default bands, weighted if weights are given.
    align: cuts are at multiples of this many cells, on all axes or one number per axis.
    boundary: "fixed" or "periodic", one for all axes or one per axis.
    devices: selectors such as "gpu", "cpu", "nvidia:1", "cpu/1,1", "reference"; by default
        all GPUs of a node, else its CPU.  The ranks of a node share them in order.
    overlap: "on", "off", or "auto", which hands borders over beside the computation where
        that is estimated to pay.
    places_per_controller: shares of the domain that each device computes, unless cyclic; more
        where a tile would exceed the largest single allocation of a device.
    kernel: "specialised" (the default: generated for the program), "generic" (one that takes
        any weighted stencil as data), or a kernel of your own, a `Kernel` or the name of a
        registered one; the program then says what it reads, not what it computes.
    steps_per_launch: time steps that one launch computes, with halos of as many times the reach
        and one exchange (docs/performance.md); by default what promises to be fast, and fits.
        The bits are the same.
    math: "strict" (the default: the bits of the reference), or "fast": operations contracted, and
        constants divided beforehand; the bits then depend on the device and on the division.
    zero_copy: use host memory in place on devices that share it; False treats them like
        devices with memory of their own.
    memory_cap: the most that a run may take of the memory of each device, in bytes or such as
        "4g"; by default what the environment variable CONTROLLERS_MEMORY_CAP says, else all.
        What does not fit is refused, by a `MemoryCapError`, before anything is allocated.
    trace: record a timeline of the runs, for `save_trace`.
    watchdog: seconds after which the job ends if no step or call has ended, every rank saying
        where it is; 0 for never.  By default what the variable CONTROLLERS_WATCHDOG says.
        Without it they say so once, after 30 s, and go on.
    check: watch every access, and raise `CheckError` where one is wrong (docs/checking.md): True,
        or "oclgrind" to run all kernels under Oclgrind.  By default what the environment variable
        CONTROLLERS_CHECK says, else False.  Slow.
    tune: for so many seconds, the first steps try other configurations of the kernels and go on
        with the fastest, which is kept for later runs (docs/tuning.md); 0, the default, takes
        what was kept or is good in general.  The bits are the same.
    """

    def __init__(
        self,
        program: Program,
        sizes: int | Sequence[int],
        *,
        partition: str | None = None,
        weights: Sequence[float] | None = None,
        align: int | Sequence[int] = 1,
        block: int | Sequence[int] | None = None,
        boundary: str | Sequence[str] = "fixed",
        devices: str | Sequence[str] | None = None,
        comm: Communicator | None = None,
        overlap: Overlap = "auto",
        places_per_controller: int = 1,
        kernel: str | Kernel | None = None,
        steps_per_launch: int | None = None,
        math: Math = "strict",
        zero_copy: bool = True,
        memory_cap: str | int | None = None,
        trace: bool = False,
        watchdog: float | None = None,
        check: Check = None,
        tune: float = 0.0,
    ) -> None:
        check_communicator(comm)
        self.comm = default_communicator() if comm is None else comm
        install_where_ranks_are(self.comm)
        refuse_together(self.comm, lambda: check_options(
            program=program, sizes=sizes, partition=partition, weights=weights, align=align,
            block=block, boundary=boundary, devices=devices, kernel=kernel, zero_copy=zero_copy,
            places_per_controller=places_per_controller, steps_per_launch=steps_per_launch,
            memory_cap=memory_cap, trace=trace, watchdog=watchdog, tune=tune,
        ))  # fmt: skip
        self.calls = Calls(self.comm, f"a computation of {program.name}")
        self.state = State()
        limit_s = limit(os.environ.get(VARIABLE) if watchdog is None else watchdog)
        self._watched = Watched(self.calls)
        self._watchdog = Watchdog(limit_s, self._watched)
        self._is_limited = limit_s is not None
        self._check = setting_of(check)
        with self.calls.agreed(
            "set-up", package=controllers.__version__, program=described(program),
            sizes=sizes, partition=partition,
            weights=weights, align=align, block=block, boundary=boundary, overlap=overlap,
            places_per_controller=places_per_controller, trace=trace, watchdog=limit_s,
            check=self._check, steps_per_launch=steps_per_launch, math=math, tune=tune,
        ):  # fmt: skip
            self.program = program = program.with_math(math)
            number = next_number(self.comm)
            self.calls.owner = f"computation {number} ({program.name})"
            self._watchdog.connect(self.comm, number)
            self.domain = domain_of(program, sizes)
            self._periodic = periodic_axes(boundary, program.n_axes)
            if overlap not in ("auto", "on", "off"):
                raise ValueError(f"overlap is one of auto, on, off, got {overlap!r}")
            self._overlap: Overlap = overlap
            self._places_per_controller = places_per_controller
            self._steps_per_launch = steps_per_launch
            choice = self._kernel = agreed_kernel(self.comm, kernel)
            check_math(math, choice, checked=self._check != "off")
            check_tuning(tune, choice, self._check)
            if isinstance(choice, Kernel):
                choice = choice.with_scalars(domain_values(self.domain))
            self._controllers = open_controllers(
                self.comm, devices, program,
                zero_copy=zero_copy, kernel=choice, memory_cap=memory_cap, check=self._check,
            )  # fmt: skip
            self.layout, self.placement = self._divided(partition, weights, align, block)
            plan = self._new_plan(self.layout, self.placement)
            self._messages = self.comm.Dup()
            self._timings = Timings()
            self._engine = self._new_engine(plan, self.placement)
            self._trace = Trace(self._messages) if trace else None
            self._tuner = Tuner(self._engine, self.comm, tune) if tune else None
            self._engine.clear()

    @noted(use="sets")
    def load(self, init: Callable[[TileView], None]) -> None:
        """Set the field: `init` is called once per place of this rank, its array zeroed.

        Steps count from 0 again.  Not collective by itself.  What `init` assigns to the array is
        converted by NumPy, which wraps integers; `TileView.write` refuses what does not fit.
        """
        function(init, "init")
        self._access.load(init)

    @noted(use="reads")
    def visit(self, output: Callable[[TileView], None]) -> None:
        """Look at the field: `output` is called once per place of this rank.

        An array may be the tile's own memory: copy what you keep, and change the field by
        `load` alone.  Not collective by itself.
        """
        function(output, "output")
        self._access.visit(output)

    @collective("root", use="sets")
    def scatter(self, whole: npt.NDArray[Any] | None, root: int = 0) -> None:
        """Set the field from an array that `root` holds (None elsewhere).

        ValueError on all ranks, and the field as it was, if a value does not fit the dtype.
        """
        self._access.scatter(whole, root)

    @collective("root", use="reads")
    def gather(
        self, root: int = 0, out: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any] | None:
        """The whole field on `root`, into `out` if given there; None on the other ranks."""
        return self._access.gather(root, out)

    @collective("path", use="sets")
    def load_file(self, path: str | os.PathLike[str]) -> None:
        """Set the field from a .npy file that all ranks can read; each reads its own cells.

        ValueError on all ranks if it cannot be read, is another file on some rank, has another
        extent, or does not fit the dtype, which is found while the field is being set.
        """
        file_name(path, "path")
        self._access.read(path)

    @collective("path", use="reads")
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the field to a .npy file, each rank its own cells; no rank holds the whole.

        OSError on all ranks, and no file, if that fails on any of them.
        """
        file_name(path, "path")
        self._access.write(path, self.calls.go_on)

    @collective("partition", "weights", "align", "block", use="reads")
    def redistribute(
        self,
        *,
        partition: str | None = None,
        weights: Sequence[float] | None = None,
        align: int | Sequence[int] = 1,
        block: int | Sequence[int] | None = None,
    ) -> Redistribution:
        """Divide the field otherwise; it keeps its values, and steps go on as if undisturbed.

        The arguments are those of the constructor.  Cells that change the controller are sent,
        all others copied where they are; meanwhile old and new tiles are both in memory, and
        refused where that exceeds the cap.  Returns what has moved.
        """
        check_options(partition=partition, weights=weights, align=align, block=block)
        layout, placement = self._divided(partition, weights, align, block)
        moves = Redistribution(self.layout, layout, self.placement.ranks, placement.ranks)
        plan = self._new_plan(layout, placement)
        old, new = self._engine, self._new_engine(plan, placement)
        relocate(moves, old, new, self.comm)
        old.close()
        self._engine, self.layout, self.placement = new, layout, placement
        self._timings.new_places()
        if self._tuner is not None:
            self._tuner = Tuner(new, self.comm, 0.0, self._tuner)
        return moves

    def run(self, n_steps: int, progress: Watcher = None) -> None:
        """Run `n_steps` steps; `progress` is told now and then how far this rank is.

        progress: True for a bar of rank 0 on standard error, a function that is called with the
            steps done and their total, or a bar such as tqdm's, with `update` and `total`.

        Ctrl-C, on any rank, or an error of `progress` end the run at a step that all ranks share:
        the exception is raised on all of them, the field can be saved, and `run` goes on from
        there.  After another error, or a second Ctrl-C, the field is torn until it is set anew.
        """
        self.state.check_idle("run")
        told = told_by(progress, self.comm)
        n_steps = whole(n_steps, "n_steps")
        with Interruption(self._engine.course, self.comm, told) as interruption:
            self._run(n_steps, interruption)

    @collective("n_steps", use="reads")
    def _run(self, n_steps: int, interruption: Interruption) -> None:
        if n_steps < 0:
            raise ValueError(f"the number of steps must not be negative, got {n_steps}")
        before, progress = self._engine.n_steps, interruption.progress
        try:
            if self._tuner is not None:
                self._tuner.run(n_steps, self._timings, progress, self._trace)
            else:
                self._timings.run(self._engine, n_steps, self.comm, progress, self._trace)
        except BaseException:
            if self._engine.torn:
                self.state.tear("run", is_lost=self.comm.size > 1)
            raise
        interruption.settle(self._engine.n_steps - before, n_steps)

    @collective(or_closed=True)
    def report(self) -> Report:
        """What all steps so far have cost, the same on all ranks; places since they are as now."""
        tuning = None if self._tuner is None else self._tuner.report()
        return self._timings.report(self._engine, self._controllers.report(), tuning, self.comm)

    @collective("path")
    def save_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the timeline of all ranks; OSError on all of them, and no file, if that fails."""
        if self._trace is None:
            raise ValueError("no timeline was recorded; make the Computation with trace=True")
        file_name(path, "path")
        save_timeline(self._trace.timeline(), path, self.comm)

    @collective()
    def explain(self) -> str:
        """Program, layout, messages, plan, kernels and bytes per place, the same on all ranks."""
        return explain(self.plan.of_rank(None), self._configurations())

    @collective()
    def configurations(self) -> list[Configuration]:
        """The kernels of all places and what they are launched on, the same on all ranks."""
        return self._configurations()

    def _configurations(self) -> list[Configuration]:
        everyone = self.comm.allgather(self._engine.configurations())
        return [one for rank in everyone for one in rank]

    def close(self) -> None:
        """Give back what belongs to MPI; tiles go with the last reference to the object."""
        if not self.state.closed:
            self._close()

    @collective()
    def _close(self) -> None:
        self.state.closed = True
        self._engine.close()
        self._messages.Free()
        self._watchdog.stop()

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

    @property
    def _access(self) -> FieldAccess:
        return FieldAccess(self._engine, self.comm, self.state)

    @property
    def facts(self) -> dict[str, object]:
        """What is the same on all ranks when they use the field."""
        return {"steps so far": self._engine.n_steps}

    @property
    def plan(self) -> Plan:
        """What happens in one step, of `plan.steps_per_launch` time steps."""
        return self._engine.plan

    def _divided(
        self,
        partition: str | None,
        weights: Sequence[float] | None,
        align: int | Sequence[int],
        block: int | Sequence[int] | None,
    ) -> tuple[Layout, Placement]:
        """The domain cut into places, and where these are."""
        return divided(
            self._controllers, self.program, self.domain, partition, weights,
            align=align, block=block, n_each=self._places_per_controller,
        )  # fmt: skip

    def _new_plan(self, layout: Layout, placement: Placement) -> Plan:
        """This rank's part; refused where it does not fit in memory."""

        def plan_of(n_steps: int) -> Plan:
            return Plan(
                self.program, layout, self._periodic, placement.locations,
                overlap=self._overlap, only_rank=self.comm.rank, steps_per_launch=n_steps,
            )  # fmt: skip

        plan = plan_with_steps(
            plan_of, self._kernel, self._steps_per_launch, watched=self._check != "off",
            usual=lambda plan: agreed_steps(plan, placement.executors, self.comm),
            fits=lambda plan: fits(
                plan, placement.executors, self._controllers.largest_bytes, self.comm
            ),
        )  # fmt: skip
        check_capacity(plan, placement.executors, self.comm)
        return plan

    def _new_engine(self, plan: Plan, placement: Placement) -> Engine:
        """Built, connected, its memory touched, so that steps cost what they always will."""
        kind = Engine if self._check == "off" else CheckedEngine
        engine = kind(plan, placement.executors, self._messages)
        self._watched.engine = engine
        if self._is_limited:
            engine.watch()
        if self._check == "off":    # a checked engine wants cells that have been set
            labelled(placement.first_launches, engine.run)(plan.n_phases * plan.steps_per_launch)
        return engine
