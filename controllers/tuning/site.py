# SPDX-License-Identifier: MIT
"""A site of tuning: launches of one stage on one device of a run that share a configuration.

The search starts from the configuration in use.  Candidates are built and checked on small tiles of
their own before they may do a step of the run.
"""
from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite

from controllers.device.event import Profile
from controllers.engine import Configurable
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.candidate import Candidate, OwnCandidate
from controllers.kernel.choices import Key
from controllers.kernel.configuration import Placed
from controllers.kernel.variant import Kernel
from controllers.kernel.winners import Winner
from controllers.memory.ledger import MemoryCapError
from controllers.program.sweep import Sweep
from controllers.tuning.bench import Bench
from controllers.tuning.scratch import scratch
from controllers.tuning.search import Search
from controllers.tuning.space import Space
from controllers.tuning.spending import Spending
from controllers.tuning.timing import n_launches, typical
from controllers.tuning.trials import Trials

_logger = logging.getLogger(__name__)
WORTH = 0.98    # of the time of what is in use: a smaller gain may be noise


@dataclass(frozen=True)
class KeyedLaunches:
    """Those with the same key: the numbers of all, and of the largest ones, which are `placed`."""

    executor: OpenCLExecutor
    sweep: Sweep
    key: Key
    numbers: frozenset[int]
    largest: frozenset[int]
    placed: Placed


class Site:
    """The search for the configuration of some launches of a run."""

    def __init__(
        self, engine: Configurable, launches: KeyedLaunches, search: Search[Candidate]
    ) -> None:
        self.launches, self.plan = launches, engine.plan
        self._engine = engine
        self._choices = launches.executor.choices
        program, sweep, executor = engine.plan.program, launches.sweep, launches.executor
        launch = executor.launch_of(program, sweep, launches.placed)
        offer = executor.offer(program, sweep)
        self._used = self._kept = self._choices.configuration(offer, launch)
        found = offer.candidates(launch)
        self._trials = Trials(Space([self._used, *found]), search)
        self._n_at_once = sweep.count
        self._bench = Bench(executor, program, *scratch(launches.placed, sweep))
        self._times: dict[Candidate, list[float]] = {}

    def prepare(self, spending: Spending) -> int:
        """Choose, build and check the next candidates; how many there are, 0 at the end.

        The time that this takes is spent; 0 as well when no more is left.
        """
        self._times = {}
        while len(self._times) < 2 and (batch := self._trials.batch()):
            self._times.clear()
            for config in batch:
                if not spending.left_s:
                    self._times.clear()
                    return 0
                with spending.counting():
                    problem = self._bench.problem(config)
                if problem is None:
                    self._times[config] = []
                else:
                    self._trials.discard(config, problem)
                    self._tell_of(config, problem)
        return len(self._times)

    def turn(self, number: int) -> None:
        """The next steps are made with candidate `number`; with the best where there are fewer."""
        self._use([*self._times, *[self._trials.best] * (number + 1)][number])

    def note(self, profiles: Sequence[Profile]) -> None:
        """So the largest launches of these steps have run."""
        if self._used in self._times:
            self._times[self._used] += [(p.end - p.start) * 1e-9 for p in profiles]

    def tell(self) -> None:
        """All candidates have had their turns."""
        if self._times:
            times = {m: typical(its) / self._n_at_once for m, its in self._times.items()}
            self._trials.tell(times)

    def settle(self) -> None:
        """Use the best so far, and keep it for later runs."""
        best = self._best
        self._use(best)
        if best != self._kept:
            self._kept = best
            self._choices.keep(self.launches.key, Winner(best, self._trials.seconds(best)))

    @property
    def n_tried(self) -> int:
        """Configurations tried in place of the one in use, of any use or none."""
        return len(self._trials.ratios) - 1

    @property
    def seconds(self) -> tuple[float, float]:
        """Of a step of the largest launches: at first, and with the best one found; or 0, 0."""
        first = self._trials.seconds(self._trials.space.default)
        return (first, self._trials.seconds(self._best)) if isfinite(first) else (0.0, 0.0)

    @property
    def _best(self) -> Candidate:
        best = self._trials.best
        return best if self._trials.ratios[best] <= WORTH else self._trials.space.default

    @property
    def n_steps(self) -> int:
        """Time steps of a turn: whole launches."""
        seconds = self._trials.seconds(self._trials.space.default)
        return self._engine.steps_of(n_launches(seconds * self._n_at_once))

    def _tell_of(self, config: Candidate, problem: str) -> None:
        """A kernel of the user's own that is of no use is the user's to look into."""
        if isinstance(config, OwnCandidate):
            kernel = self.launches.executor.kernel
            name = kernel.name if isinstance(kernel, Kernel) else kernel
            _logger.warning("kernel %r, %s: not tried, it %s", name, config.described(), problem)

    def _use(self, config: Candidate) -> None:
        if config != self._used:
            self._used = config
            self._choices.use(self.launches.key, config)
            self._engine.rebind(self.launches.numbers)


def sites(engine: Configurable, search: Search[Candidate]) -> Iterator[Site]:
    """One per stage and device of this rank, where it computes most cells and has a choice."""
    for launches in chosen_launches(engine):
        try:
            yield Site(engine, launches, search)
        except MemoryCapError:      # no room for the small tiles: it goes on as it is
            pass


def chosen_launches(engine: Configurable) -> Iterator[KeyedLaunches]:
    """Per stage and device of this rank, the launches like the largest, if there is a choice."""
    plan = engine.plan
    for executor in dict.fromkeys(engine.executors[place] for place in plan.places):
        if isinstance(executor, OpenCLExecutor):
            here = [place for place in plan.places if engine.executors[place] is executor]
            for sweep in plan.sweeps_of(here):
                launches = None if sweep.completes else _largest(engine, executor, sweep)
                if launches is not None:    # of what completes them little depends
                    yield launches


def _largest(engine: Configurable, executor: OpenCLExecutor, sweep: Sweep) -> KeyedLaunches | None:
    """The launches of a stage that are like the largest one; None where nothing can be chosen."""
    plan, program = engine.plan, engine.plan.program
    keys, boxes, offer = {}, {}, executor.offer(program, sweep)
    for operation in plan.operations:
        if operation.sweep is None or engine.executors.get(operation.place) is not executor:
            continue
        if plan.sweep_at(operation.sweep, operation.launch, operation.place) is not sweep:
            continue
        placed = (
            operation.launched,
            {field: plan.geometry(field, operation.place) for field in program.dtypes},
        )
        launch = executor.launch_of(program, sweep, placed)
        if offer.can_vary(launch):
            keys[operation.number] = executor.choices.key(offer, launch)
            boxes[operation.number] = placed
    if not boxes:
        return None
    most = max(boxes, key=lambda n: boxes[n][0].n_cells)
    alike = frozenset(n for n, key in keys.items() if key == keys[most])
    largest = frozenset(n for n in alike if boxes[n][0].n_cells == boxes[most][0].n_cells)
    return KeyedLaunches(executor, sweep, keys[most], alike, largest, boxes[most])
