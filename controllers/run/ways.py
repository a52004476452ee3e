# SPDX-License-Identifier: MIT
"""The ways in which a run may exchange: an engine for each that is tried, on the same tiles."""
from __future__ import annotations

import logging
from collections.abc import Sequence

from controllers.engine import Engine
from controllers.memory.ledger import MemoryCapError
from controllers.placement.placement import failing_together
from controllers.plan.distinct_ways import distinct_ways
from controllers.plan.way import ExchangeWay
from controllers.report.exchange_report import ExchangeReport
from controllers.tuning.kept_way import KeptWay
from controllers.tuning.way_trials import WayTrials
from hitmap.comm import Communicator

_logger = logging.getLogger(__name__)


class Ways:
    """Says, between two runs of the engine, in which way to go on.

    All ranks are told the same seconds and so say the same.
    """

    def __init__(self, engine: Engine, comm: Communicator) -> None:
        """`comm`: that of the engine.  Collective."""
        self._comm, self._way = comm, engine.plan.way
        self._all = distinct_ways(engine.plan)
        self._kept = KeptWay(engine.plan)
        found = comm.bcast(self._kept.load(self._all) if comm.rank == 0 else None)
        self._is_kept = found is not None
        ways: Sequence[ExchangeWay] = self._all if found is None else [found]
        self._trials = WayTrials(ways)
        self._engines = {self._way: engine}
        self._round = engine.plan.halo_width    # steps between two exchanges: what is counted
        self._n_steps, self._seconds = 0, 0.0   # of rounds that are not whole yet

    @property
    def over(self) -> bool:
        """Whether steps are run in the way that was found, and it stays."""
        return self._trials.over and self._trials.way == self._way

    def until_decision(self, left: int) -> int:
        """How many of the `left` steps are to be run before `next_engine`: whole rounds."""
        if self._trials.over:
            return left
        return min(left, self._trials.launches_left * self._round - self._n_steps)

    def ran(self, n_steps: int, seconds: float) -> None:
        """So many steps were run, in so many seconds on the slowest rank."""
        was_over = self._trials.over
        self._n_steps, self._seconds = self._n_steps + n_steps, self._seconds + seconds
        n_rounds = self._n_steps // self._round
        if not n_rounds:
            return
        self._trials.ran(n_rounds, self._seconds)
        self._n_steps, self._seconds = 0, 0.0
        if self._trials.over and not was_over and self._comm.rank == 0:
            self._kept.store(self._trials.found.way, self._all)

    def next_engine(self, now: Engine) -> Engine | None:
        """What is to run the steps from here on in place of `now`, if anything.  Collective."""
        while self._trials.way != self._way:
            way = self._trials.way
            engine = self._engines.get(way) or self._made(way, now)
            if engine is None and self._is_kept:    # by a run that had more memory
                self._trials, self._is_kept = WayTrials([self._way]), False
                return None
            if engine is None:
                self._trials.refuse()
                continue
            self._way = way
            engine.take_over(now)
            if self._trials.over:
                self._end(engine)
            return engine
        return None

    def end(self) -> None:
        """Nothing is tried any more; the engine that runs now stays."""
        self._end(self._engines[self._way])

    def report(self) -> ExchangeReport:
        """What is known."""
        found = self._trials.found
        why = "an earlier run has found it" if self._is_kept else found.why
        seconds = {str(way): each for way, each in found.seconds.items()}
        return ExchangeReport(str(self._way), why, seconds)

    def _made(self, way: ExchangeWay, now: Engine) -> Engine | None:
        """An engine of that way; None where its memories do not fit, or no kernel its boxes."""
        try:
            with failing_together(self._comm):
                plan = now.plan.by_way(way)
                engine = type(now)(plan, now.executors, self._comm, now.tiles)
        except (MemoryCapError, ValueError) as error:      # on all ranks
            _logger.info("exchange: not %s: %s", way, error)
            return None
        self._engines[way] = engine
        return engine

    def _end(self, stays: Engine) -> None:
        for engine in self._engines.values():
            if engine is not stays:
                engine.release()
        self._engines = {self._way: stays}
