# SPDX-License-Identifier: MIT
"""The devices of a run that chooses them itself: told of its steps, it says which to go on with.

Sets of devices are compared with shares, and with halos of a width, that suit them.  All ranks hold
the same numbers, and so choose the same.
"""
from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from controllers.balance.chooser import BUDGET, LAUNCHES, PIECE_S, WORTH, Ahead, Chooser, piece
from controllers.balance.first import BY_CLASS, described_devices, hindrance, rates_of
from controllers.balance.prospects import Devices, Exchanges, Prospect, alone, prospects
from controllers.balance.remembered import RememberedSets
from controllers.links.link import Links
from controllers.placement.own_kernel import as_planned
from controllers.plan.rate import Rate
from controllers.report.choice_report import ChoiceLine, ChoiceReport, together
from controllers.run.terms import Terms
from controllers.tuning.widths import LOST
from hitmap.comm import Communicator

SCALED = "by the class of the devices, as fast as the first steps were"
GLANCE, GLANCE_S = 2000, 0.02   # launches or seconds of a run of which a piece more is little
_logger = logging.getLogger(__name__)


class Choice:
    """Chooses among the devices of all ranks, which `terms` have opened.  Made collectively."""

    def __init__(self, terms: Terms, comm: Communicator) -> None:
        self._terms, self._comm = terms, comm
        described = described_devices(terms.controllers, terms.program, terms.domain, comm)
        self.source, self._rates = rates_of(described, terms.program)
        self._links: Links | None = None
        self._why = hindrance(terms.execution, terms.kernel)    # there are no trials
        self._n_steps, self._seconds, self._step_s = 0, 0.0, 0.0    # of the piece under way
        self.asks = self.is_guess       # for a calibration
        self._chooser = Chooser(
            self._prospects(), is_guess=self.is_guess,
            lost=LOST if terms.execution.halo_width_search else 0,
        )  # fmt: skip
        self._kept = RememberedSets(
            [f"{one.kind} {one.name} {one.compute_units}" for one in described], terms.program,
            terms.domain, terms.execution.facts,
        )  # fmt: skip
        self._chooser.begin(comm.bcast(self._known() if comm.rank == 0 else {}))
        self._begin()

    def _known(self) -> dict[Devices, float]:
        return self._kept.load(one.devices for one in self._chooser.prospects)

    @property
    def devices(self) -> Devices:
        """Those that compute, or are to compute, by their numbers in order of rank."""
        return self._chooser.current

    @property
    def is_guess(self) -> bool:
        """Whether little is known of how fast the devices are."""
        return self.source in (BY_CLASS, SCALED)

    @property
    def expected_s(self) -> float:
        """Of a step, on the devices that compute."""
        return self._step_s

    @property
    def every(self) -> Terms:
        """The terms with all devices."""
        return self._terms

    def terms(self, devices: Devices) -> Terms:
        """The terms with these devices alone, the program as it is planned for them."""
        terms, every = self._terms, self._terms.controllers
        kinds = {every.locations[number].kind for number in devices}
        program = as_planned(terms.program, terms.kernel, terms.execution, kinds)
        return replace(terms, controllers=every.only(devices, program))

    def learn(
        self, rates: Sequence[Rate | None], links: Links | None, ahead: Ahead
    ) -> Devices | None:
        """What a calibration has found; where to go on, if that is elsewhere now and pays."""
        self._rates = tuple(
            rate or guess for rate, guess in zip(rates, self._rates, strict=True)
        )
        self.source, self._links = "those of a calibration", links
        self._chooser.expect(self._prospects())
        chooser, before = self._chooser, self._chooser.current
        found = chooser.first_again(is_guess=False)
        chooser.current = before
        if found is None or found == before:
            return None
        gain_s = chooser.expected(before) - chooser.model(found)
        return found if gain_s * ahead.n_steps > ahead.move_s else None

    def refuse(self, devices: Devices, error: Exception) -> bool:
        """These cannot compute together; whether there are others to begin with."""
        self._chooser.refuse(devices, str(error))
        _logger.info("devices: %s: %s", self._names(devices), error)
        if devices != self.devices:
            return True
        found = self._chooser.first_again(is_guess=self.is_guess)
        self._begin()
        return found is not None

    def wanted(self, ahead: Ahead, per_launch: int) -> int:
        """How many steps to run before `decide`: whole launches, or all."""
        if self._why or not (self._chooser.looks(ahead) or self._glances(ahead, per_launch)):
            return ahead.n_steps
        left = max(1, self._piece_steps(per_launch) - self._n_steps)
        return -(-left // per_launch) * per_launch

    def ran(self, n_steps: int, seconds: float, per_launch: int) -> None:
        """The devices that compute have run steps, with shares that are settled."""
        self._n_steps += n_steps
        self._seconds += seconds
        if self._n_steps < self._piece_steps(per_launch):
            return
        self._step_s = self._seconds / self._n_steps
        if self._seconds >= PIECE_S / 2 or self._chooser.is_seen:
            self._chooser.saw(self._step_s)
        self._scale()
        self._n_steps, self._seconds = 0, 0.0

    def decide(self, ahead: Ahead) -> Devices | None:
        """The devices to go on with, where these are others."""
        if self._why or not self._chooser.is_seen:
            return None
        found = self._chooser.choose(ahead)
        if self._comm.rank == 0 and self._chooser.all_seen != self._kept.known:
            self._kept.store(self._chooser.all_seen)
        return found

    def rests(self, ahead: Ahead) -> bool:
        """Whether nothing is looked at in so many steps."""
        return bool(self._why) or not self._chooser.looks(ahead)

    def moved(self, devices: Devices) -> None:
        """These compute from now on."""
        self._chooser.current = devices
        self._begin()
        if self._comm.rank == 0:
            _logger.info("devices: %s go on", self._names(devices))

    def report(self) -> ChoiceReport:
        """What came of it so far."""
        chooser = self._chooser
        lines = tuple(
            ChoiceLine(self._named(one.devices), one.seconds, chooser.seen(one.devices),
                       self._verdict(one))
            for one in chooser.prospects
        )  # fmt: skip
        return ChoiceReport(
            self._named(self.devices), lines, self.source, chooser.n_trials, chooser.spent_s
        )

    def _verdict(self, one: Prospect) -> str:
        """What became of a prospect, for people."""
        chooser = self._chooser
        if one.devices == self.devices:
            return f"chosen{f', without trials: {self._why}' if self._why else ''}"
        if one.devices in chooser.refused:
            return f"refused: {chooser.refused[one.devices]}"
        if chooser.seen(one.devices) is not None:
            return "slower"
        if one.least_s > (1 - WORTH) * chooser.best_s:
            return "which cannot be faster"
        return f"not tried: a trial would take over {BUDGET:.0%} of the run, or more than it gains"

    def _scale(self) -> None:
        """What was seen of some devices says how fast others of their class are."""
        if self.source != BY_CLASS:
            return
        self.asks = True
        factor = self._step_s / self._chooser.model(self.devices)
        self._rates = tuple(Rate(0.0, factor * rate.cell_s) for rate in self._rates)
        self.source = SCALED
        self._chooser.expect(self._prospects())

    def _prospects(self) -> list[Prospect]:
        controllers, terms = self._terms.controllers, self._terms
        pairs = zip(self._rates, controllers.locations, strict=True)
        rates = [alone(rate, where.kind) for rate, where in pairs]
        exchange = Exchanges.of(
            terms.planned, terms.domain, controllers.locations, self._links
        )
        return prospects(rates, terms.domain.n_cells, exchange, is_guess=self.is_guess)

    def _glances(self, ahead: Ahead, per_launch: int) -> bool:
        """Whether the run is long enough for a first piece that says how long a step takes."""
        is_long = ahead.n_steps * self._step_s > GLANCE_S or ahead.n_steps > GLANCE * per_launch
        return self.source == BY_CLASS and is_long

    def _piece_steps(self, per_launch: int) -> int:
        return max(LAUNCHES * per_launch, piece(self._step_s))

    def _begin(self) -> None:
        self._n_steps, self._seconds = 0, 0.0
        self._step_s = self._chooser.expected(self.devices)

    def _named(self, devices: Devices) -> tuple[str, ...]:
        return tuple(self._terms.controllers.locations[number].device for number in devices)

    def _names(self, devices: Devices) -> str:
        return together(self._named(devices))

