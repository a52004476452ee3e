# SPDX-License-Identifier: MIT
"""Tuning while a run is under way: its first steps try configurations, and count like all others.

Every configuration gives the same bits, so no step is lost.  Steps are run a few at a time, each
time with another candidate; the ranks, whose devices and candidates may differ, agree on how many
such turns there are and how many steps each takes.
"""
from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from controllers.check import Setting
from controllers.device.event import Profile
from controllers.engine import Engine, Looks, Progress, Runner
from controllers.kernel.offer import check_choice
from controllers.kernel.registry import KernelChoice
from controllers.plan import Operation, Plan
from controllers.program.program import Program
from controllers.report.timings import Timings
from controllers.report.trace import Trace
from controllers.report.tuning_report import TuningReport
from controllers.tuning.hill_climb import hill_climb
from controllers.tuning.site import sites
from controllers.tuning.spending import Spending
from controllers.tuning.timing import turns
from hitmap.comm import Communicator


def check_tuning(
    seconds: float, kernel: KernelChoice, program: Program, check: Setting
) -> None:
    """ValueError where a run cannot be tuned at all."""
    if seconds and check != "off":
        raise ValueError(
            "tune searches among configurations, of which a run under check has none; leave it out"
        )
    if seconds:
        check_choice(kernel, program)


class Tuner:
    """Searches for the configurations of the places of this rank, for some seconds.

    All methods but `report` are collective.
    """

    def __init__(
        self, engine: Engine, comm: Communicator, seconds: float, before: Tuner | None = None
    ) -> None:
        """`before` has searched in the same run, for other places, and spent of the seconds."""
        self._spending, self._n_before = Spending(seconds), 0
        self._counted_s = 0.0   # spent on steps that `timings` counts
        if before is not None:
            self._spending, self._n_before = before._spending, before._n_tried
            self._counted_s = before._counted_s
        self._engine, self._comm = engine, comm
        with self._spending.counting():
            self._sites = [s for one in engine.configurable for s in sites(one, hill_climb)]
        self._turns: deque[int] = deque()
        self._n_steps = 0       # of each of these turns
        self._heard: list[_Heard] = []
        self._over = False

    def run(
        self,
        n_steps: int,
        timings: Timings,
        progress: Progress | None = None,
        trace: Trace | None = None,
        until: float = math.inf,
        looks: Looks | None = None,
    ) -> None:
        """Run `n_steps` steps, which `timings` counts; those that try something are not traced.

        until, looks: see `Engine.run`.
        """
        done, first = 0, self._engine.n_steps
        while self._turns or self._next_turns():
            if done + self._n_steps > n_steps:
                break
            before = self._engine.n_steps
            self._turn(self._turns.popleft(), timings, until, looks)
            done += self._n_steps
            if progress is not None:
                progress(done, n_steps)
            if self._engine.course.ended or self._engine.n_steps < before + self._n_steps:
                break
        for site in self._sites:
            site.settle()
        if self._engine.course.ended or self._engine.n_steps < first + done:
            return
        rest = None if progress is None else lambda so_far, _: progress(done + so_far, n_steps)
        timings.run(self._engine, n_steps - done, self._comm, rest, trace, until=until, looks=looks)

    def on(self, engine: Engine) -> Tuner:
        """Whoever goes on with the launches of this engine, for what is left of the seconds."""
        return self if engine is self._engine else Tuner(engine, self._comm, 0.0, self)

    def report(self) -> TuningReport:
        """What this rank has tried, gained and spent so far."""
        times = [site.seconds for site in self._sites]
        spent_s = self._spending.spent_s
        return TuningReport(
            self._n_tried,
            sum(first for first, _ in times),
            sum(best for _, best in times),
            self._spending.budget_s,
            spent_s,
            max(0.0, spent_s - self._counted_s),
        )

    @property
    def _n_tried(self) -> int:
        return self._n_before + sum(site.n_tried for site in self._sites)

    def steps(self, first: int, last: int) -> range:
        """All but the first: it finds in the caches what another configuration has left there.

        Where steps have parts these have first ones of their own.
        """
        return range(first + (not self._engine.plan.parts), last + 1)

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        self._heard.append(_Heard(self._engine.plan, operation.number, profile))

    def within(self, engine: Runner, step: int) -> PartOfTurn:
        """Hears of the launches of a part of a step."""
        return PartOfTurn(engine.plan, self._heard)

    def _turn(
        self, number: int, timings: Timings, until: float, looks: Looks | None
    ) -> None:
        """Some steps with one candidate at each site; the last turns if the seconds are over."""
        counted_s, self._heard = timings.seconds, []
        with self._spending.counting():
            for site in self._sites:
                site.turn(number)
            timings.run(
                self._engine, self._n_steps, self._comm, log=self, until=until, looks=looks
            )
            for site in self._sites:
                heard = [one for one in self._heard if one.plan is site.plan
                         and one.number in site.launches.largest]  # fmt: skip
                # of a repeat that is soon over there may be no others
                site.note([one.profile for one in heard if not one.is_first]
                          or [one.profile for one in heard])  # fmt: skip
                if not self._turns:
                    site.tell()
        self._counted_s += timings.seconds - counted_s
        self._over = not self._all(self._spending.left_s > 0)
        if self._over:
            self._turns.clear()

    def _next_turns(self) -> bool:
        """Prepare the next candidates; whether there are any, and time for them."""
        self._spending.end_piece()
        if self._over or not self._all(self._spending.fits):
            self._over = True
            return False
        n_turns = max([site.prepare(self._spending) for site in self._sites], default=0)
        n_steps = max([site.n_steps for site in self._sites], default=0)
        everyone = self._comm.allgather((n_turns, n_steps, self._spending.left_s > 0))
        n_turns, self._n_steps = max(n for n, _, _ in everyone), max(n for _, n, _ in everyone)
        self._over = n_turns == 0 or not all(in_time for _, _, in_time in everyone)
        if not self._over:
            self._turns.extend(turns(range(n_turns)))
        return not self._over

    def _all(self, mine: bool) -> bool:
        """Whether it is so on all ranks."""
        return all(self._comm.allgather(mine))


@dataclass(frozen=True)
class _Heard:
    """A launch; `is_first`: as a part of a step began, after another one or another candidate."""

    plan: Plan
    number: int
    profile: Profile
    is_first: bool = False


class PartOfTurn:
    """Hears of the launches of a part of a step, which is repeated or not."""

    def __init__(self, plan: Plan, heard: list[_Heard]) -> None:
        self._plan, self._heard, self._first = plan, heard, -1

    def steps(self, first: int, last: int) -> range:
        """All of them."""
        self._first = first
        return range(first, last + 1)

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        is_first = step == self._first
        self._heard.append(_Heard(self._plan, operation.number, profile, is_first))

    def within(self, engine: Runner, step: int) -> PartOfTurn:
        """The same: parts have none."""
        return self
