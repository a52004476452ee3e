# SPDX-License-Identifier: MIT
"""Tuning before a run: configurations are tried on boxes like those that the run will compute."""
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import pyopencl as cl

from controllers import kgt
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.candidate import Candidate
from controllers.kernel.configuration import Placed
from controllers.kernel.offer import Offer, check_choice
from controllers.kernel.registry import KernelChoice, agreed_kernel, check_math
from controllers.kernel.user_kernel import with_domain
from controllers.kernel.variant import Kernel
from controllers.kernel.winners import Winner
from controllers.memory.ledger import MemoryCapError
from controllers.placement.link_trial import links_of
from controllers.placement.own_kernel import (
    check_boxes,
    check_launches,
    in_place,
    overlap_for,
)
from controllers.placement.placement import open_controllers
from controllers.placement.places import divide
from controllers.placement.temporal import plan_with_steps
from controllers.plan import Location, Plan
from controllers.plan.rounds.paces import Steps
from controllers.program.program import Program
from controllers.program.steps import can_combine, without_folds
from controllers.program.sweep import Sweep
from controllers.settings.division import Division
from controllers.settings.domain import Boundaries, domain_of
from controllers.settings.execution import Execution
from controllers.settings.initial import Given
from controllers.settings.request import Described, DTypes, Request, Sizes
from controllers.tuning.bench import Bench
from controllers.tuning.search import search_named
from controllers.tuning.site import WORTH
from controllers.tuning.space import Space
from controllers.tuning.spending import Spending
from controllers.tuning.trials import Budget, Trials
from controllers.tuning.trials import tune as try_out
from hitmap.agreement import agree, raise_together
from hitmap.comm import Communicator, default_communicator
from hitmap.layout import Layout


@dataclass(frozen=True)
class Tried:
    """A configuration: `seconds` of a step and their `ratio` to the default's, or its `problem`."""

    configuration: Candidate
    seconds: float | None
    ratio: float | None
    problem: str = ""


@dataclass(frozen=True)
class Tuned:
    """What came of the search for one stage on one device of a rank.

    at_once: seconds of a step by numbers of steps per launch, each by its default configuration;
        the search is among those with the fastest number.
    tried: the default first, then by time, then what was refused as the default of another number
        of steps; of a space of `n_configurations`, in `seconds`.
    winner: from now on the choice for boxes like this one; `kept` for later runs too.
    """

    device: str
    stage: str
    extent: tuple[int, ...]
    at_once: tuple[tuple[int, float], ...]
    n_configurations: int
    tried: tuple[Tried, ...]
    winner: Candidate
    seconds: float
    kept: bool
    rank: int = 0


def tune(
    program: Described,
    sizes: Sizes,
    *,
    dtype: DTypes = None,
    boundary: Boundaries = None,
    dt: float | None = None,
    init: Mapping[str, Given] | None = None,
    comm: Communicator | None = None,
    seconds: float = 30.0,
    search: str = "hill_climb",
    seed: int = 0,
    division: Division | None = None,
    execution: Execution | None = None,
    **keywords: Any,
) -> list[Tuned]:
    """Find the fastest configurations of a program's kernels, and keep them for later runs.

    The other arguments are those of `Computation`, initial values and parameters by their names
    included; of the values only the dtypes matter, and none need be given.  Of the execution the
    devices, the memory cap, the arithmetic and the kernel matter.  A kernel of your own is tuned if
    it has several variants for a device, or a space of values (docs/kernels.md).

    seconds: of the search for each stage on each device; nothing is begun that would exceed them,
    as far as can be told from what came before.
    search: "hill_climb", "dichotomic", "random" or "exhaustive", which has no limit but `seconds`.
    Returns what all ranks have found.  Collective.
    """
    request = Request.of(
        program, sizes, dtype=dtype, boundary=boundary, dt=dt, init=init, division=division,
        execution=execution, keywords=keywords,
    )  # fmt: skip
    comm = default_communicator() if comm is None else comm
    facts = request.program.name, seconds, search, seed, *sorted(request.facts.items())
    agree(comm, "what to tune", facts)
    search_named(search)
    tuned = request.program.with_math(request.execution.math)
    domain = domain_of(tuned, request.sizes)
    kernel = agreed_kernel(comm, request.execution.kernel)
    check_math(tuned.math, kernel)
    check_choice(kernel, tuned)
    own = with_domain(kernel, domain) if isinstance(kernel, Kernel) else kernel
    controllers = open_controllers(comm, tuned, request.execution, kernel=own)
    tuned = controllers.program
    layout, placement = divide(
        controllers, tuned, domain, request.division, lambda: links_of(controllers, comm)
    )
    plans = _plans(tuned, layout, placement.locations, comm.rank, kernel)
    for plan in plans.values():
        check_boxes(kernel, plan, placement.executors, comm)
    found: list[Tuned] = []
    problem = None
    try:
        for executor, number in _stages(plans[min(plans)], placement.executors):
            site = _Search(plans, placement.executors, executor, number)
            found.append(site.tuned(Budget(seconds=seconds), search, seed))
    except (MemoryCapError, RuntimeError, cl.Error) as error:
        problem = str(error)
    raise_together(comm, problem)
    ranks = enumerate(comm.allgather(found))
    everyone = [replace(one, rank=rank) for rank, its in ranks for one in its]
    if not everyone:
        raise ValueError("there is nothing to tune: only OpenCL devices have configurations")
    return everyone


def _plans(
    program: Program,
    layout: Layout,
    locations: Sequence[Location],
    rank: int,
    kernel: KernelChoice,
) -> dict[int, Plan]:
    """Plans by steps per launch, as far as there are kernels of so many for all boxes."""

    def plan_of(n_steps: Steps) -> Plan:
        assert isinstance(n_steps, int), "all places alike"
        return Plan(
            program, layout, program.periodic, locations, overlap=overlap_for("auto", kernel),
            only_rank=rank, steps_per_launch=n_steps,
            in_place=in_place(kernel, {where.kind for where in locations}),
        )  # fmt: skip

    if isinstance(kernel, Kernel):
        return {n_steps: check_launches(kernel, plan_of(n_steps)) for n_steps in kernel.steps}
    plans = {1: plan_of(1)}
    if not can_combine(program, layout.domain):
        return plans
    kinds = {where.kind for where in locations}
    (sweep,) = plans[1].sweeps
    stage = without_folds(sweep.stage)
    counts = [set(kgt.step_counts(program, stage, kind)) for kind in kinds]
    for n_steps in sorted(set.intersection(*counts) - {1}):
        try:
            plans[n_steps] = plan_with_steps(plan_of, kernel, n_steps)
        except ValueError:      # no kernel, or no such halo
            continue
    return plans


def _stages(
    plan: Plan, executors: Mapping[int, Executor]
) -> Iterator[tuple[OpenCLExecutor, int]]:
    """The devices of this rank that compute something, with each stage."""
    for executor in dict.fromkeys(executors[place] for place in plan.places):
        for number, *_ in plan.liveness.groups:     # of what completes them little depends
            sweep = plan.sweeps[number]
            if isinstance(executor, OpenCLExecutor) and any(
                any(True for _ in plan.launched(sweep, place))
                for place in plan.places
                if executors[place] is executor
            ):
                yield executor, number


class _Search:
    """The search for one stage on one device."""

    def __init__(
        self,
        plans: Mapping[int, Plan],
        executors: Mapping[int, Executor],
        executor: OpenCLExecutor,
        number: int,
    ) -> None:
        self._plans, self._executor, self._number = plans, executor, number
        self._refused: list[Tried] = []     # as the default of some number of steps
        self._places = [place for place in plans[min(plans)].places if executors[place] is executor]

    def tuned(self, budget: Budget, search: str, seed: int) -> Tuned:
        """Choose the steps per launch, then search for what is fastest with so many."""
        start = time.monotonic()
        at_once = self._times(Spending(budget.seconds / 2))
        n_steps = min(at_once, key=at_once.__getitem__, default=min(self._plans))
        bench, listed = self._bench(n_steps), tuple(sorted(at_once.items()))
        where = self._executor.device.name, bench.sweep.name, bench.launch.extent, listed
        candidates = bench.candidates
        if not candidates:
            used = self._executor.choices.configuration(bench.offer, bench.launch)
            return Tuned(*where, 1, (), used, time.monotonic() - start, kept=False)
        left = replace(budget, seconds=budget.seconds - (time.monotonic() - start))
        trials = try_out(Space(candidates), bench.measure, left, search_named(search), seed)
        default = trials.space.default
        best = trials.best if trials.ratios[trials.best] <= WORTH else default
        kept, choices = False, self._executor.choices
        if len(trials.ratios) > 1 or len(trials.space) == 1 < len(at_once):
            seconds = trials.seconds(best) if len(trials.ratios) > 1 else at_once[n_steps]
            winner = Winner(best, seconds)
            kept = choices.keep(bench.key, winner)
            choices.keep_steps(*self._asked(), winner)
        others = sorted(
            (config for config in trials.ratios if config != default), key=trials.ratios.__getitem__
        )
        tried = (*(_tried(trials, config) for config in (default, *others)), *self._refused)
        seconds = time.monotonic() - start
        return Tuned(*where, len(trials.space), tried, best, seconds, kept)

    def _times(self, spending: Spending) -> dict[int, float]:
        """Seconds of a step by steps per launch, of the default configurations.

        The number that a run would take comes first; others are tried as far as the seconds reach.
        """
        found: dict[int, float] = {}
        plan = self._plans[min(self._plans)]
        usual = self._executor.offer(plan.program, self._sweep(plan)).usual_steps()
        for n_steps in sorted(self._plans, key=lambda n: abs(n - usual)):
            if found and not spending.fits:
                break
            with spending.piece():
                bench = self._bench(n_steps)
                for config, outcome in bench.measure(bench.candidates[:1]).items():
                    if isinstance(outcome, float):
                        found[n_steps] = outcome
                    else:
                        self._refused.append(Tried(config, None, None, outcome))
        return found

    def _bench(self, n_steps: int) -> Bench:
        """One with the largest box that the device computes."""
        return Bench(self._executor, *self._largest(self._plans[n_steps]))

    def _largest(self, plan: Plan) -> tuple[Program, Sweep, Placed]:
        sweep = self._sweep(plan)
        boxes = [placed for place in self._places for placed in plan.launched(sweep, place)]
        return plan.program, sweep, max(boxes, key=lambda placed: placed[0].n_cells)

    def _asked(self) -> tuple[Offer, kgt.Launch]:
        """As what a run asks how many steps are fast, given a plan of the fewest."""
        program, sweep, placed = self._largest(self._plans[min(self._plans)])
        launch = self._executor.launch_of(program, sweep, placed)
        return self._executor.offer(program, sweep), launch

    def _sweep(self, plan: Plan) -> Sweep:
        """The stage's; where several steps are tried, as launches compute it that do not fold."""
        sweep = plan.sweeps[self._number]
        several = len(self._plans) > 1 and bool(sweep.writes)
        return replace(sweep, stage=without_folds(sweep.stage)) if several else sweep


def _tried(trials: Trials[Candidate], config: Candidate) -> Tried:
    seconds, ratio = trials.seconds(config), trials.ratios[config]
    if not isfinite(seconds):
        return Tried(config, None, None, trials.discarded.get(config, "not measured"))
    return Tried(config, seconds, ratio)
