# SPDX-License-Identifier: MIT
"""The balance of a run: between two windows of steps all ranks decide on shares, and how.

A window has at least 20 launches and lasts at least 50 ms; the first one is shorter where devices
are so unlike that each launch is dear, and each that leads to no move is twice as long as the one
before.  After it every rank tells how long the launches of its devices have taken, and all of them
decide from the same numbers.
"""
from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from controllers.balance.decision import CostOf, Decider, Decision, Window, parts_in_time
from controllers.balance.watch import Watch
from controllers.engine import Engine, RunLog
from controllers.plan import Plan
from controllers.plan.rate import Rate
from controllers.report.balance_report import BalanceReport, Shares
from controllers.report.duration import duration
from controllers.settings.execution import Balance
from hitmap.comm import Communicator

LAUNCHES = 20       # of a window, at least, and ...
WINDOW_S = 0.05     # ... its seconds
GLANCE = 6          # the very first one ends after so few where launches take so long, ...
GLANCE_S = 1e-3
UNLIKE = 2.0        # ... and so many times longer on one device than on another
GROWTH = 64         # how many times longer than before it becomes, at most
STEADY = 4          # windows are so many times longer where shares are settled, ...
PATIENT = 16        # ... and up to so many times until they are
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Terms:
    """Of what a balance is made.

    devices: rank and number there of each.  least: cells that each keeps.  cost_s, here_s: what a
    move probably takes on this rank, to new tiles and within the room of those that there are.
    """

    mode: Balance
    devices: Sequence[tuple[int, int]]
    least: float
    cost_s: float
    here_s: float


class Fields(Protocol):
    """The fields as they are divided now.

    cells_of: what devices would get with shares, where cuts are possible.  has_room: whether their
    tiles have room for that.  keep_times: is told the
    seconds of steps of all devices, by their cells, after the first window with any shares, as so
    few steps may be left, and once shares are settled.
    """

    def cells_of(self, shares: Sequence[float]) -> Sequence[int]: ...
    def has_room(self, shares: Sequence[float]) -> bool: ...
    def keep_times(self, seen: Sequence[Mapping[int, float]], *, settled: bool) -> None: ...


class Balancer:
    """Watches the steps of a run, and says when and how the field is to be divided anew."""

    def __init__(self, terms: Terms, engine: Engine, comm: Communicator) -> None:
        self._terms, self._comm = terms, comm
        self._decider = Decider(len(terms.devices), terms.least, follows=terms.mode == "dynamic")
        self._costs = {False: terms.cost_s, True: terms.here_s}     # by whether tiles stay
        self._spent_s, self._stays = 0.0, False
        self._first_s = self._last_s = 0.0
        self._history: list[Shares] = []
        self._pay = 0.0, 0.0    # what the next move gains and costs, as far as is known
        self._why, self._gave_up = "too few steps to tell", False
        self._wanted, self._stretch = GLANCE, 1
        self._is_glance, self._is_calm, self._is_kept = True, False, False
        self._cells: Sequence[int] = ()
        self._attach(engine)

    @property
    def over(self) -> bool:
        """Whether nothing is decided any more."""
        return self._gave_up or self._decider.over

    @property
    def is_calm(self) -> bool:
        """Whether the last window has led to no move, or nothing is decided any more."""
        return self.over or self._is_calm

    @property
    def log(self) -> RunLog | None:
        """Who looks at the steps."""
        return None if self.over else self._watch

    def until_decision(self, left: int) -> int:
        """How many of the `left` steps are to be run before `decide`: whole launches."""
        if self.over:
            return left
        wanted = max(1, self._wanted - self._n_launches) * self._per_launch
        return min(left, wanted)

    def ran(self, n_steps: int) -> None:
        """So many steps were run."""
        self._watch.read()
        self._n_launches += n_steps // self._per_launch

    def decide(self, step: int, n_left: int, fields: Fields) -> tuple[float, ...] | None:
        """New shares, if the window is over and they pay within `n_left` steps.  Collective."""
        if self.over or self._n_launches < self._wanted:
            return None
        parts = zip(self._terms.devices, parts_in_time(self._cells))
        mine = {number: part for (rank, number), part in parts if rank == self._comm.rank}
        everyone = self._comm.allgather((self._watch.times(mine), self._costs))
        times = [everyone[rank][0].get(number, 0.0) for rank, number in self._terms.devices]
        if not self._is_enough(times):
            return None
        seconds = [one / self._per_launch for one in times]
        cost_of = _cost_of([costs for _, costs in everyone], fields)
        window = Window(seconds, self._cells, n_left, cost_of, self._n_launches * self._per_launch)
        settled = self._decider.settled
        found = self._decider.decide(window, fields.cells_of)
        self._note(step, window, found)
        settles = self._decider.settled and not settled
        if (settles or not self._is_kept) and all(self._cells):
            self._is_kept = True
            fields.keep_times(self._decider.newest, settled=self._decider.settled)
        return found.shares

    def foresee(
        self, rates: Sequence[Rate], n_left: int, fields: Fields
    ) -> tuple[float, ...] | None:
        """New shares before the first window, by rates that were seen elsewhere.  Collective."""
        if not all(self._cells):
            return None
        seconds = [rate.seconds(n) for rate, n in zip(rates, self._cells, strict=True)]
        cost_of = _cost_of(self._comm.allgather(self._costs), fields)
        window = Window(seconds, self._cells, n_left, cost_of, 0)
        found = self._decider.foreseen(rates, window, fields.cells_of)
        self._pay = found.gain_s, found.cost_s
        return found.shares

    @contextmanager
    def moving(self) -> Iterator[None]:
        """In here the field is divided anew; it takes as long the next time."""
        start = time.perf_counter()
        yield
        took_s = time.perf_counter() - start
        self._costs[self._stays] = took_s
        self._spent_s += took_s

    def moved(self, engine: Engine, *, stays: bool) -> None:
        """It was: `engine` runs the steps from now on, perhaps on the same tiles."""
        self._stays = stays
        self._attach(engine)

    def follow(self, engine: Engine) -> None:
        """The field is divided as it was, but this engine runs the steps from now on."""
        self._watch, self._n_launches = Watch(engine, self._wanted), 0
        self._per_launch = engine.plan.span

    def give_up(self, why: str) -> None:
        """It cannot be."""
        self._gave_up, self._why = True, why
        _logger.info("balance: %s", why)

    def report(self) -> BalanceReport:
        """What came of it so far."""
        return BalanceReport(
            self._terms.mode, tuple(self._history), self._first_s, self._last_s, self._spent_s,
            self._why,
        )  # fmt: skip

    def _attach(self, engine: Engine) -> None:
        self._watch, self._n_launches, self._is_kept = Watch(engine, self._wanted), 0, False
        self._per_launch = engine.plan.span
        self._cells = cells_on(engine.plan, self._terms.devices)
        n_cells = sum(self._cells)
        shares = tuple(cells / n_cells for cells in self._cells)
        self._history.append(Shares(engine.n_steps, shares, *self._pay))

    def _is_enough(self, times: Sequence[float]) -> bool:
        """Whether such times of launches decide; else the window goes on."""
        launch_s = max(times)
        if self._is_glance:
            self._is_glance, self._wanted = False, LAUNCHES
            return launch_s >= GLANCE_S and launch_s > UNLIKE * min(times)
        if launch_s * self._n_launches >= WINDOW_S:
            return True
        most = GROWTH * self._n_launches
        self._wanted = min(most, math.ceil(WINDOW_S / launch_s)) if launch_s else most
        self._wanted = max(self._wanted, self._n_launches + 1)
        self._watch.expect(self._wanted)
        return False

    def _note(self, step: int, window: Window, found: Decision) -> None:
        """What was decided; and the next window."""
        self._why, self._last_s = found.why, found.now_s
        self._first_s = self._first_s or found.now_s
        self._pay = found.gain_s, found.cost_s
        moves = found.shares is not None
        self._is_calm = not moves
        self._stretch = 1 if moves else (
            STEADY if self._decider.settled else min(2 * self._stretch, PATIENT)
        )  # fmt: skip
        shortest = max(LAUNCHES, math.ceil(WINDOW_S / max(window.seconds) / self._per_launch))
        self._wanted, self._n_launches = shortest * self._stretch, 0
        self._watch.begin(self._wanted)
        if self._comm.rank:     # all decide the same
            return
        _logger.info(
            "balance after step %d: %s a step, with the best shares %s; over %d steps a gain of %s "
            "for %s: %s", step, duration(found.now_s), duration(found.new_s), window.n_left,
            duration(found.gain_s), duration(found.cost_s), found.why,
        )  # fmt: skip


def _cost_of(everyone: Sequence[Mapping[bool, float]], fields: Fields) -> CostOf:
    """What moves take on the slowest rank."""

    def cost_of(shares: Sequence[float]) -> float:
        stays = fields.has_room(shares)
        return max(costs[stays] for costs in everyone)

    return cost_of


def cells_on(plan: Plan, devices: Sequence[tuple[int, int]]) -> list[int]:
    """The cells of each device."""
    found = dict.fromkeys(devices, 0)
    for box, where in zip(plan.layout.owned, plan.locations, strict=True):
        found[where.rank, where.controller] += box.n_cells
    return [*found.values()]
