# SPDX-License-Identifier: MIT
"""Tuning before a run: configurations are tried on boxes like those that the run will compute."""
from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite

import pyopencl as cl

from controllers import kgt
from controllers.configuration import Placed
from controllers.executor import Executor
from controllers.ledger import MemoryCapError
from controllers.opencl_executor import OpenCLExecutor
from controllers.partition import domain_of, periodic_axes
from controllers.placement import divided, open_controllers
from controllers.plan import Plan
from controllers.program import Program
from controllers.tuning.bench import Bench
from controllers.tuning.search import search_named
from controllers.tuning.site import WORTH
from controllers.tuning.space import Space
from controllers.tuning.trials import Budget, Trials, tune
from controllers.winners import Winner
from hitmap.agreement import agree, raise_together
from hitmap.comm import Communicator, default_communicator


@dataclass(frozen=True)
class Tried:
    """A configuration: `seconds` of a step and their `ratio` to the default's, or its `problem`."""

    configuration: kgt.Configuration
    seconds: float | None
    ratio: float | None
    problem: str = ""


@dataclass(frozen=True)
class Tuned:
    """What came of the search for one stage on one device of a rank.

    tried: the default first, then by time; of a space of `n_configurations`, in `seconds`.
    winner: from now on the choice for boxes like this one; `kept` for later runs too.
    """

    device: str
    stage: str
    extent: tuple[int, ...]
    n_configurations: int
    tried: tuple[Tried, ...]
    winner: kgt.Configuration
    seconds: float
    kept: bool
    rank: int = 0


def tune_program(
    program: Program,
    sizes: int | Sequence[int],
    *,
    boundary: str | Sequence[str] = "fixed",
    devices: str | Sequence[str] | None = None,
    comm: Communicator | None = None,
    memory_cap: str | int | None = None,
    seconds: float = 30.0,
    search: str = "hill_climb",
    seed: int = 0,
) -> list[Tuned]:
    """Find the fastest configurations of a program's kernels, and keep them for later runs.

    The first arguments are those of `Computation`.  seconds: of the search for each stage on each
    device, what is under way is finished.  search: "hill_climb", "random" or "exhaustive", which
    has no limit but `seconds`.  Returns what all ranks have found.  Collective.
    """
    comm = default_communicator() if comm is None else comm
    agree(comm, "what to tune", (program.name, sizes, boundary, seconds, search, seed))
    search_named(search)
    domain, periodic = domain_of(program, sizes), periodic_axes(boundary, program.n_axes)
    controllers = open_controllers(comm, devices, program, memory_cap=memory_cap)
    layout, placement = divided(
        controllers, program, domain, None, None, align=1, block=None, n_each=1
    )
    plan = Plan(program, layout, periodic, placement.locations, only_rank=comm.rank)
    found: list[Tuned] = []
    problem = None
    try:
        for executor, number, placed in _benches(plan, placement.executors):
            bench = Bench(executor, program, number, placed)
            found.append(_tuned(bench, Budget(seconds=seconds), search, seed))
    except (MemoryCapError, RuntimeError, cl.Error) as error:
        problem = str(error)
    raise_together(comm, problem)
    ranks = enumerate(comm.allgather(found))
    everyone = [replace(one, rank=rank) for rank, its in ranks for one in its]
    if not everyone:
        raise ValueError("there is nothing to tune: only OpenCL devices have configurations")
    return everyone


def _benches(
    plan: Plan, executors: Mapping[int, Executor]
) -> Iterator[tuple[OpenCLExecutor, int, Placed]]:
    """Per device of this rank and stage, the largest box that is computed there."""
    for executor in dict.fromkeys(executors[place] for place in plan.places):
        places = [place for place in plan.places if executors[place] is executor]
        for number, stage in enumerate(plan.program.stages):
            boxes = [placed for place in places for placed in plan.launched(stage, place)]
            if boxes and isinstance(executor, OpenCLExecutor):
                yield executor, number, max(boxes, key=lambda placed: placed[0].n_cells)


def _tuned(bench: Bench, budget: Budget, search: str, seed: int) -> Tuned:
    """Search for what is fastest on a bench."""
    start, candidates = time.monotonic(), bench.candidates
    where = bench.executor.device.name, bench.stage.name, bench.launch.extent
    if not candidates:
        return Tuned(*where, 1, (), None, 0.0, kept=False)
    trials = tune(Space(candidates), bench.measure, budget, search_named(search), seed)
    default = trials.space.default
    best = trials.best if trials.ratios[trials.best] <= WORTH else default
    kept = False
    if len(trials.ratios) > 1:
        kept = bench.executor.choices.keep(bench.key, Winner(best, trials.seconds(best)))
    others = sorted(
        (made for made in trials.ratios if made != default), key=trials.ratios.__getitem__
    )
    tried = tuple(_tried(trials, made) for made in (default, *others))
    return Tuned(*where, len(trials.space), tried, best, time.monotonic() - start, kept)


def _tried(trials: Trials[kgt.Configuration], made: kgt.Configuration) -> Tried:
    seconds, ratio = trials.seconds(made), trials.ratios[made]
    if not isfinite(seconds):
        return Tried(made, None, None, trials.discarded.get(made, "not measured"))
    return Tried(made, seconds, ratio)
