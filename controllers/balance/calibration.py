# SPDX-License-Identifier: MIT
"""How fast devices are, before they compute anything that counts: launches on scratch.

Each rank times its devices one after another: the kernels of the program, as the device alone would
launch them, on as many rows of the domain as show what its memory does.
"""
from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyopencl as cl

from controllers.balance.watch import LEFT_OUT, Watch
from controllers.engine import Engine, RepeatingEngine
from controllers.executor.executor import Executor
from controllers.kernel.registry import KernelChoice
from controllers.memory.ledger import MemoryCapError
from controllers.placement.own_kernel import as_planned, in_place
from controllers.placement.temporal import agreed_steps, plan_with_steps
from controllers.plan import Location, Plan
from controllers.plan.rate import Rate
from controllers.plan.rounds.paces import Steps
from controllers.program.program import Program
from controllers.settings.execution import Execution
from hitmap.comm import Communicator, SerialCommunicator
from hitmap.layout import Layout
from hitmap.shape import Shape

MOST_S = 0.3        # of launches, of all devices of a rank together, ...
MOST_PART = 0.01    # ... and with all that goes with them of the run that is ahead
MOST_STEPS = 24     # that are timed on a device
ON_HOST_NBYTES, ON_DEVICE_NBYTES = 1 << 26, 1 << 28     # of the scratch, beyond caches


@dataclass(frozen=True)
class Trial:
    """What is tried on each device: a program over a domain, by a kind of kernels."""

    program: Program
    domain: Shape
    kernel: KernelChoice
    execution: Execution


@dataclass(frozen=True)
class Allowance:
    """What a calibration may take, as all ranks have it.

    run_s: that the run ahead takes, probably.  build_s: to plan and to build for one device, as far
    as is known.  n_devices: of the rank that has most.
    """

    run_s: float
    build_s: float
    n_devices: int

    @property
    def launches_s(self) -> float:
        """Seconds of launches on each device; 0 where there is no time for any.

        >>> round(Allowance(100.0, 0.1, 2).launches_s, 3)
        0.15
        >>> round(Allowance(25.0, 0.1, 2).launches_s, 3)
        0.025
        >>> Allowance(10.0, 0.1, 2).launches_s
        0.0
        """
        left = MOST_PART * self.run_s - self.build_s * self.n_devices
        return max(0.0, min(MOST_S, left)) / self.n_devices


def calibrated(
    trial: Trial,
    located: Sequence[tuple[Location, Executor]],
    launches_s: float,
    comm: Communicator,
) -> list[Rate | None]:
    """The rates of all devices, in order of rank, those of this rank being `located`.

    launches_s: for each of them.  None for a device that cannot compute a part of the domain.
    Collective.
    """
    mine = [rate_on_scratch(trial, where, its, launches_s) for where, its in located]
    return [rate for rank in comm.allgather(mine) for rate in rank]


def rate_on_scratch(
    trial: Trial, where: Location, executor: Executor, launches_s: float
) -> Rate | None:
    """Of one device of this rank, by about so many seconds of launches.  Not collective."""
    try:
        engine = _engine(trial, where, executor)
        watch, n_cells = Watch(engine), engine.plan.layout.domain.n_cells
        seconds = _seconds(engine, watch, launches_s)
        engine.close()
    except (ValueError, RuntimeError, MemoryCapError, cl.Error):
        return None     # whoever needs the device will say what is wrong
    return Rate(0.0, seconds / n_cells) if 0 < seconds < math.inf else None


def _seconds(engine: Engine, watch: Watch, launches_s: float) -> float:
    """Of the launches of a time step; 0 where there are none."""
    engine.warm()       # kernels are built, and memory is touched
    start = time.perf_counter()
    period = 1 if engine.plan.parts else engine.plan.n_phases
    n_periods = -(-(LEFT_OUT + 2) // period)
    engine.warm(n_periods, watch)
    each_s = max(1e-9, (time.perf_counter() - start) / n_periods)
    more = min(MOST_STEPS // period, int(launches_s / each_s) - n_periods)
    if more > 0:
        engine.warm(more, watch)
    watch.read()
    return watch.times({}).get(0, 0.0) / engine.plan.span


def _engine(trial: Trial, where: Location, executor: Executor) -> Engine:
    """The device alone, with tiles of its own of a part of the domain."""
    program = as_planned(trial.program, trial.kernel, trial.execution, {where.kind})
    alone = SerialCommunicator()
    layout = Layout.bands(slab(program, trial.domain, where.shares_host), 1)
    here = Location(0, 0, where.shares_host, where.device, where.kind)

    def plan_of(n_steps: Steps) -> Plan:
        assert isinstance(n_steps, int), "one place"
        return Plan(
            program, layout, program.periodic, (here,), steps_per_launch=n_steps,
            in_place=in_place(trial.kernel, {where.kind}),
        )  # fmt: skip

    wanted = trial.execution.steps_per_launch
    plan = plan_with_steps(
        plan_of, trial.kernel, None if trial.execution.each_steps else wanted,
        usual=lambda single: agreed_steps(single, {0: executor}, alone),
    )  # fmt: skip
    kind = RepeatingEngine if plan.parts else Engine
    return kind(plan, {0: executor}, alone)


def slab(program: Program, domain: Shape, on_host: bool) -> Shape:
    """The first rows of the domain, as many as are tried.

    >>> from controllers.language.weights import Stencil
    >>> mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
    >>> slab(mean, Shape.of_extent((10**9,)), True).extent
    (8388608,)
    """
    nbytes = ON_HOST_NBYTES if on_host else ON_DEVICE_NBYTES
    n_rows, *row = domain.extent
    most = max(1, nbytes // (program.bytes_per_cell * math.prod(row)))
    least = 8 * sum(program.reach[0])
    return Shape(domain.lower, (domain.lower[0] + min(n_rows, max(least, most)), *domain.upper[1:]))
