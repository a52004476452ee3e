# SPDX-License-Identifier: MIT
"""Between two windows of steps: who decides on shares is asked, and the field is divided anew."""
from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from controllers import tuning
from controllers.balance.balancer import Balancer, cells_on
from controllers.balance.balancer import Terms as BalanceTerms
from controllers.balance.calibration import Allowance, Trial, calibrated, slab
from controllers.balance.chooser import Ahead
from controllers.balance.first import First
from controllers.balance.prospects import Devices
from controllers.balance.remembered import ON_SCRATCH
from controllers.engine import Course
from controllers.kernel.build import BuildError
from controllers.memory.ledger import MemoryCapError
from controllers.placement.link_trial import links_of
from controllers.placement.placement import Controllers
from controllers.placement.relocation import go_on, relocate, relocate_in_turns, shift
from controllers.placement.temporal import least_cells
from controllers.plan.rate import Rate
from controllers.report.timings import Timings
from controllers.run.assembly import Assembly, Draft, drafted
from controllers.run.choice import Choice
from controllers.run.interruption import Interruption
from controllers.run.looks import AllLooks
from controllers.run.terms import Terms, agree, keep_times
from controllers.run.ways import Ways
from controllers.run.widened import Widened
from controllers.settings.request import Request
from controllers.tuning.widths import WidthChooser
from hitmap.comm import Communicator
from hitmap.redistribute import Redistribution

LEAST_S = 1e-3      # a calibration that may take less is none
_logger = logging.getLogger(__name__)


class Balanced(Widened):
    """Divides the fields anew, as steps show how fast the devices are."""

    _choice: Choice | None
    _tuner: tuning.Tuner | None
    _timings: Timings
    _messages: Communicator
    _first_division: First
    _is_calibrated: bool
    _asked: Request     # as it was divided when it was made
    _move_s: float      # what it takes to go on with other devices
    _ways: Ways | None
    _n_before: int      # steps of the runs before this one

    def _first_assembly(self, request: Request) -> Assembly:
        """On the devices that are asked for, or on those that promise most."""
        terms, self._choice, self._move_s = agree(request, self.comm), None, 0.0
        if not request.execution.chooses:
            return drafted(request, self.comm, terms).assembled(self._messages, self._watched)
        self._choice = choice = Choice(terms, self.comm)
        while True:
            terms = choice.terms(choice.devices)
            try:
                draft = drafted(request, self.comm, terms)
                found = draft.assembled(self._messages, self._watched)
                self._move_s = max(self.comm.allgather(found.took.seconds))
                return found
            except (MemoryCapError, BuildError, ValueError) as error:   # on all ranks
                if not choice.refuse(choice.devices, error):
                    raise

    def _new_balancer(self) -> Balancer | None:
        now = self._assembly
        self._first_division, self._is_calibrated = now.begun, not now.begun.is_guess
        if now.begun.mode == "off":
            if now.begun.why:
                _logger.info("%s: nothing is balanced: %s", self.program.name, now.begun.why)
            return None
        least = least_cells(now.engine.plan, now.begun.division)
        terms = BalanceTerms(now.begun.mode, now.devices, least, now.took.again_s, now.took.here_s)
        return Balancer(terms, now.engine, self.comm)

    def _calibrate_choice(self, choice: Choice, ahead: Ahead) -> None:
        """Once it is known how long the run is, if it is long enough."""
        choice.asks = False
        run_s = ahead.n_steps * choice.expected_s
        rates = self._rates_on_scratch(run_s, choice.every.controllers)
        if rates is None:
            return
        devices = choice.learn(rates, links_of(choice.every.controllers, self.comm), ahead)
        if devices is not None:
            self._go_on_with(devices)

    def _calibrate(self, n_steps: int) -> None:
        """Before the first steps, if these are so many that it pays to know the devices."""
        balancer, self._is_calibrated = self._balancer, True
        if balancer is None:
            return
        cells = cells_on(self.plan, self._assembly.devices)
        pairs = zip(self._first_division.rates, cells, strict=True)
        run_s = n_steps * max(rate.seconds(n) for rate, n in pairs)
        of_all = self._rates_on_scratch(run_s, self._assembly.terms.controllers)
        known = [rate for rate in of_all or () if rate is not None]
        if len(known) < len(cells):
            return
        self._first_division = replace(self._first_division, source="those of a calibration")
        shares = balancer.foresee(known, n_steps, self._assembly)
        if shares is not None:
            self._move(shares)

    def _rates_on_scratch(
        self, run_s: float, controllers: Controllers
    ) -> list[Rate | None] | None:
        """Of all devices, kept for later runs; None where a run of `run_s` has no time for it."""
        if Allowance(run_s, 0.0, 1).launches_s < LEAST_S:
            return None
        terms = self._assembly.terms
        build_s = max(self.comm.allgather(self._assembly.took.seconds))
        n_devices = max(Counter(where.rank for where in controllers.locations).values())
        launches_s = Allowance(run_s, build_s, n_devices).launches_s
        if launches_s < LEAST_S:
            return None
        trial = Trial(terms.program, terms.domain, terms.kernel, terms.execution)
        rates = calibrated(trial, controllers.located, launches_s, self.comm)
        tried = [slab(terms.program, terms.domain, where.shares_host).n_cells
                 for where in controllers.locations]  # fmt: skip
        seen = [{n: rate.seconds(n)} if rate else {} for n, rate in zip(tried, rates)]
        keep_times(replace(terms, controllers=controllers), seen, ON_SCRATCH)
        return rates

    def _to_decision(self, left: int, looks: AllLooks | None) -> int:
        """How many of the steps left to run before shares or widths are decided on."""
        engine, wanted = self._engine, left
        if self._balancer is not None:
            wanted = self._balancer.until_decision(left)
        if self._choice is not None and self._is_calm:
            per_launch = engine.plan.span
            wanted = min(wanted, self._choice.wanted(self._ahead(left), per_launch))
        if self._finding is not None:
            wanted = self._finding.until_decision(left)
        if looks is None or engine.plan.span == 1 or wanted == left:
            return wanted
        count = 0       # looks divide the run into launches
        while count < wanted:
            count += looks.left(engine.n_steps + count)
        return min(count, left)

    def _rebalance(self, left: int, interruption: Interruption) -> None:
        """Divide the field anew, if a window has ended and that pays within the steps left.

        Or go on with other devices.
        """
        before = self._assembly
        choice, ahead = self._choice, self._ahead(left)
        if choice is not None and choice.asks:
            self._calibrate_choice(choice, ahead)
        if not self._is_calibrated:
            self._calibrate(left)
        balancer = self._balancer
        if balancer is not None and not balancer.over:
            shares = balancer.decide(self._engine.n_steps, ahead.n_steps, self._assembly)
            if shares is not None:
                self._move(shares)
        if choice is not None and self._is_calm:
            devices = choice.decide(ahead)
            if devices is not None:
                self._go_on_with(devices)
        if self._assembly is not before:
            interruption.follow(self._course)

    def _ahead(self, left: int) -> Ahead:
        """Whoever runs steps again and again will probably go on."""
        return Ahead(left + self._n_before, self._move_s)

    def _ran(self, n_steps: int, seconds: float) -> None:
        """A piece of steps has taken so long, on the slowest rank."""
        if self._choice is not None and self._is_calm:
            self._choice.ran(n_steps, seconds, self.plan.span)
        if self._balancer is not None and self._finding is None:
            self._balancer.ran(n_steps)

    @property
    def _is_calm(self) -> bool:
        """Whether shares and the halo width are as they are to be, as far as is known."""
        finds = isinstance(self._chooser, WidthChooser) and not self._chooser.over
        return not finds and (self._balancer is None or self._balancer.is_calm)

    @property
    def _chooses(self) -> bool:
        """Whether steps are looked at one by one: some are run, and then it is known."""
        balances = self._balancer is not None and not self._balancer.over
        return balances or (self._choice is not None and not self._choice.rests(self._ahead(0)))

    def _go_on_with(self, devices: Devices) -> None:
        """Leave the others out; or stay, where these cannot compute.  Collective."""
        assert self._choice is not None, "whoever has chosen"
        terms = self._choice.terms(devices)
        start = time.perf_counter()
        try:
            draft = self._drafted(self._asked, terms)
            if not draft.fits_beside:
                raise MemoryCapError("no memory for a trial beside the fields as they are")
            self._divide(self._asked, draft)
        except (MemoryCapError, BuildError, ValueError) as error:   # on all ranks, unchanged
            self._choice.refuse(devices, error)
            return
        self._move_s = max(self.comm.allgather(time.perf_counter() - start))
        self._choice.moved(devices)
        self._balancer = self._new_balancer()
        self._is_calibrated = True
        self.calls.go_on()

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
                found = self._chooser
                self._divide(request, draft)
                if found is not None and found.over and found.width in self._assembly.relay.widths:
                    self._chooser = found       # which is no matter of shares
                self._balancer.moved(self._assembly.engine, stays=draft.on is not None)
        self.calls.go_on()

    def _drafted(self, request: Request, terms: Terms | None = None) -> Draft:
        """How the fields would be divided; `MemoryCapError` where that fits in no way."""
        if self._ways is not None:
            self._ways.end()
        return drafted(request, self.comm, terms or self._assembly.terms, self._engine)

    def _divide(self, request: Request, draft: Draft) -> Redistribution:
        """Divide the fields as the request says and the draft is.  Collective."""
        old = self._assembly
        moves = Redistribution(old.layout, draft.layout, old.placement.ranks, draft.placement.ranks)
        if draft.fits_beside:
            new = draft.assembled(self._messages, self._watched)
            self._arrays.moves()
            (relocate if draft.on is None else shift)(moves, old.engine, new.engine, self.comm)
            old.relay.close(old.engine)
        else:
            self._arrays.moves()
            with self.state.setting("redistribute", self.fields, is_lost=True):
                old.relay.leave(old.engine)
                homes = draft.placement.executors
                tiles = relocate_in_turns(moves, old.engine, draft.plan, homes, self.comm)
                new = draft.assembled(self._messages, self._watched, tiles)
                go_on(old.engine, new.engine)
        self._request, self._assembly = request, new
        self._arrays.moved(new.engine)
        self._chooser = self._new_chooser()
        self._timings.new_places()
        if self._tuner is not None:
            self._tuner = self._tuner.on(new.engine)
        return moves
