# SPDX-License-Identifier: MIT
"""Between two windows of steps: who decides on shares is asked, and the field is divided anew."""
from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from controllers import tuning
from controllers.balance.balancer import Balancer, Terms, cells_on
from controllers.balance.calibration import Allowance, Trial, calibrated
from controllers.balance.first import First
from controllers.engine import Course
from controllers.memory.ledger import MemoryCapError
from controllers.placement.relocation import go_on, relocate, relocate_in_turns
from controllers.plan.rate import Rate
from controllers.report.timings import Timings
from controllers.run.assembly import Draft, drafted, least_cells
from controllers.run.interruption import Interruption
from controllers.run.looks import AllLooks
from controllers.run.overview import Overview
from controllers.run.watchdog import Watched
from controllers.run.ways import Ways
from controllers.settings.request import Request
from hitmap.comm import Communicator
from hitmap.redistribute import Redistribution

LEAST_S = 1e-3      # a calibration that may take less is none
_logger = logging.getLogger(__name__)


class Balanced(Overview):
    """Divides the fields anew, as steps show how fast the devices are."""

    _balancer: Balancer | None
    _tuner: tuning.Tuner | None
    _timings: Timings
    _messages: Communicator
    _watched: Watched
    _first_division: First
    _is_calibrated: bool
    _ways: Ways | None
    _n_before: int      # steps of the runs before this one

    def _new_balancer(self) -> Balancer | None:
        now = self._assembly
        self._first_division, self._is_calibrated = now.begun, not now.begun.is_guess
        if now.begun.mode == "off":
            if now.begun.why:
                _logger.info("%s: nothing is balanced: %s", self.program.name, now.begun.why)
            return None
        least = least_cells(now.engine.plan, now.begun.division)
        terms = Terms(now.begun.mode, now.devices, least, now.seconds)
        return Balancer(terms, now.engine, self.comm)

    def _calibrate(self, n_steps: int, interruption: Interruption) -> None:
        """Before the first steps, if these are so many that it pays to know the devices."""
        balancer, self._is_calibrated = self._balancer, True
        if balancer is None:
            return
        cells = cells_on(self.plan, self._assembly.devices)
        pairs = zip(self._first_division.rates, cells, strict=True)
        run_s = n_steps * max(rate.seconds(n) for rate, n in pairs)
        rates = self._rates_on_scratch(run_s)
        if rates is None:
            return
        self._first_division = replace(self._first_division, source="those of a calibration")
        shares = balancer.foresee(rates, n_steps, self._assembly)
        if shares is not None:
            self._move(shares)
            interruption.follow(self._course)

    def _rates_on_scratch(self, run_s: float) -> list[Rate] | None:
        """Of all devices, kept for later runs; None where a run of `run_s` has no time for it."""
        if Allowance(run_s, 0.0, 1).launches_s < LEAST_S:
            return None
        terms, now = self._assembly.terms, self._assembly
        build_s = max(self.comm.allgather(now.seconds))
        n_devices = max(Counter(where.rank for where in terms.controllers.locations).values())
        launches_s = Allowance(run_s, build_s, n_devices).launches_s
        if launches_s < LEAST_S:
            return None
        trial = Trial(terms.program, terms.domain, terms.kernel, terms.execution)
        found = calibrated(trial, terms.controllers.located, launches_s, self.comm)
        rates = [rate for rate in found if rate is not None]
        if len(rates) < len(found):
            return None
        now.keep_rates(rates)
        return rates

    def _to_decision(self, left: int, looks: AllLooks | None) -> int:
        """How many of the steps left to run before shares are decided on: to a look, if any."""
        if self._balancer is None:
            return left
        wanted, engine = self._balancer.until_decision(left), self._engine
        if looks is None or engine.plan.steps_per_launch == 1 or wanted == left:
            return wanted
        count = 0       # looks divide the run into launches
        while count < wanted:
            count += looks.left(engine.n_steps + count)
        return min(count, left)

    def _rebalance(self, left: int, interruption: Interruption) -> None:
        """Divide the field anew, if a window has ended and that pays within the steps left."""
        if self._balancer is None or self._balancer.over:
            return
        if not self._is_calibrated:
            self._calibrate(left, interruption)
        # whoever runs steps again and again will probably go on
        n_left = left + self._n_before
        shares = self._balancer.decide(self._engine.n_steps, n_left, self._assembly)
        if shares is not None:
            self._move(shares)
            interruption.follow(self._course)

    @property
    def _course(self) -> Course:
        return self._engine.course

    def _move(self, shares: Sequence[float]) -> None:
        assert self._balancer is not None, "whoever has decided on shares"
        request = replace(self._request, division=self._assembly.divided(shares)[0])
        with self._balancer.moving():
            try:
                draft = self._drafted(request)
            except MemoryCapError as error:     # on all ranks, before anything has changed
                self._balancer.give_up(f"no memory for a move: {error}")
            else:
                self._divide(request, draft)
                self._balancer.moved(self._assembly.engine)
        self.calls.go_on()

    def _drafted(self, request: Request) -> Draft:
        """How the fields would be divided; `MemoryCapError` where that fits in no way."""
        if self._ways is not None:
            self._ways.end()
        return drafted(request, self.comm, self._assembly.terms, self._engine)

    def _divide(self, request: Request, draft: Draft) -> Redistribution:
        """Divide the fields as the request says and the draft is.  Collective."""
        old = self._assembly
        moves = Redistribution(old.layout, draft.layout, old.placement.ranks, draft.placement.ranks)
        if draft.fits_beside:
            new = draft.assembled(self._messages, self._watched)
            self._arrays.moves()
            relocate(moves, old.engine, new.engine, self.comm)
            old.engine.close()
        else:
            self._arrays.moves()
            with self.state.setting("redistribute", self.fields, is_lost=True):
                homes = draft.placement.executors
                tiles = relocate_in_turns(moves, old.engine, draft.plan, homes, self.comm)
                new = draft.assembled(self._messages, self._watched, tiles)
                go_on(old.engine, new.engine)
        self._request, self._assembly = request, new
        self._arrays.moved(new.engine)
        self._timings.new_places()
        if self._tuner is not None:
            self._tuner = tuning.Tuner(new.engine, self.comm, 0.0, self._tuner)
        return moves
