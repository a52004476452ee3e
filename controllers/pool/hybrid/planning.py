# SPDX-License-Identifier: MIT
"""Who does how much of a hybrid task.

To find that takes longer than to enqueue its kernels: so what was found for a call is kept, and
found anew while devices compute, when the forecast has learnt.
"""
# docs/decisions/0120-plans-are-made-while-devices-compute.md
from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import log2

from controllers.pool.cut import Cut
from controllers.pool.forecast import Forecast
from controllers.pool.hybrid.cutting import Cutting, SideRows
from controllers.pool.hybrid.division import End, end_of
from controllers.pool.hybrid.hybrid import Hybrid
from controllers.pool.hybrid.part_jobs import PartJobs
from controllers.pool.hybrid.side import Side
from controllers.pool.hybrid.sides import Sides
from controllers.pool.hybrid.worth import Worth
from controllers.pool.job import Job
from controllers.pool.share import Share
from controllers.pool.way import Way

MOST_UNITS = 512    # in which shares are counted
MOST_RENEWED = 4    # plans, the newest ones that were asked for


@dataclass
class Shares:
    """Sides of a task, how many units each one gets, and how long the task is foreseen to take.

    ends: when a side is done; none where shares were given.  foreseen_s: 0 where it is not to be
    compared with others of its kind, or little is known.
    """

    sides: list[Side]
    counts: list[int]
    ends: list[End]
    kind: Hashable
    foreseen_s: float

    @property
    def some(self) -> list[tuple[Side, int]]:
        """Those that are not 0."""
        return [one for one in zip(self.sides, self.counts) if one[1]]


@dataclass
class _Plan:
    """Of a call while no side has anything else to do; of what it was made."""

    hybrid: weakref.ref[Hybrid]     # calls keep no task
    size: float
    n_rows: int
    may_run: list[Way]
    shares: Shares
    rows: list[SideRows]
    around: Hashable
    known: Hashable     # of the times of sides


class Planning:
    """For who holds the pool's lock."""

    def __init__(self, forecast: Forecast, share: Share, sides: Sides) -> None:
        self._forecast, self._share, self._sides = forecast, share, sides
        self.cutting, self.worth = Cutting(forecast), Worth()
        self._asked: deque[_Plan] = deque(maxlen=MOST_RENEWED)
        forecast.when_learnt.append(self._renew)

    def rows(
        self, hybrid: Hybrid, cut: Cut, whole: Job, n_rows: int, jobs: PartJobs
    ) -> tuple[Shares, list[SideRows]]:
        """The shares of a task, and the rows of each; `whole` may be done by their lanes alone."""
        call, plan = whole.call, whole.call.plan
        if plan is not None and self._holds(plan, hybrid, whole):
            whole.may_run = plan.may_run
            self._asked.append(plan)
            return plan.shares, plan.rows
        around = self._around(whole) if self._forecast.is_idle else None
        shares = self.shares(hybrid, cut, whole, _units(n_rows), n_rows, jobs)
        rows = self._cut(whole.size, n_rows, shares)
        is_usual = hybrid.devices is None and not cut.summed and shares.foreseen_s > 0
        call.plan = None
        if around is not None and is_usual and self._is_settled(shares):
            call.plan = made = _Plan(
                weakref.ref(hybrid), whole.size, n_rows, [*whole.may_run], shares, rows,
                around, self._known(shares.sides),
            )  # fmt: skip
            self._asked.append(made)
        return shares, rows

    def shares(
        self, hybrid: Hybrid, cut: Cut | None, whole: Job, n: int, n_rows: int | None,
        jobs: PartJobs,
    ) -> Shares:  # fmt: skip
        """Sides, and how many of n units of a task, of one at least, each one gets."""
        parted = [one for one in whole.touches if cut is None or cut.divides(one.name)]
        rest = [one for one in whole.touches if cut is not None and not cut.divides(one.name)]
        sides = self._sides.of(
            whole.may_run, whole.size, hybrid.devices, all_of_them=hybrid.shares is not None
        )  # fmt: skip
        free = {side.way.lane for side in sides}
        whole.may_run = [way for way in whole.may_run if way.lane in free]
        ready_s = jobs.ready_s([whole])
        ends = [
            self._sides.of_rows(side, whole.size, parted, rest, n, n_rows, ready_s)
            for side in (sides if hybrid.shares is None else ())
        ]
        counts = self._sides.counts(sides, ends, n, hybrid.shares, devices=hybrid.devices)
        known_by = [(side.way, side.cores, side.n_jobs) for side in sides]
        kind, foreseen_s = (*known_by, round(log2(max(1.0, whole.size)))), 0.0
        if ends and n_rows is not None and hybrid.devices is None:
            waits = [self._sides.wait_s(side, ready_s) for side in sides]
            counts = self.worth.counts(kind, ends, counts, waits)
            if not self.cutting.is_guess(sides):
                foreseen_s = end_of(ends, counts, waits)
        return Shares(sides, counts, ends, kind, foreseen_s)

    def _cut(self, size: float, n_rows: int, shares: Shares) -> list[SideRows]:
        is_divided = bool(shares.ends)
        return self.cutting.cut(size, n_rows, _units(n_rows), shares.some, is_divided=is_divided)

    def _holds(self, plan: _Plan, hybrid: Hybrid, whole: Job) -> bool:
        """Whether it would be made so again."""
        shares = plan.shares
        return (
            plan.hybrid() is hybrid and plan.size == whole.size and self._forecast.is_idle
            and plan.known == self._known(shares.sides)
            and plan.around == self._around(whole)
            and self.worth.counts(shares.kind, shares.ends, shares.counts) == shares.counts
        )  # fmt: skip

    def _around(self, whole: Job) -> Hashable:
        """Where cells lie, as far as is foreseen, and what others hold."""
        return self._forecast.transfers.where(whole.touches), self._share.others()

    def _is_settled(self, shares: Shares) -> bool:
        """Whether they stay: a side that has none is tried now and then."""
        return self._sides.are_settled(shares.sides, shares.ends, shares.counts)

    def _known(self, sides: Sequence[Side]) -> Hashable:
        return tuple(self._forecast.known_as(side.way) for side in sides)

    def _renew(self) -> None:
        """More is known of times: plans that were asked for lately are made anew."""
        for plan in {id(one): one for one in self._asked}.values():
            old, n = plan.shares, _units(plan.n_rows)
            if plan.known == self._known(old.sides):
                continue
            ends = [
                self._sides.again(side, end, plan.size, n, plan.n_rows)
                for side, end in zip(old.sides, old.ends)
            ]
            counts = self._sides.counts(old.sides, ends, n, None)
            shares = Shares(old.sides, counts, ends, old.kind, end_of(ends, counts))
            if self._is_settled(shares):    # else who submits has to look
                plan.shares, plan.known = shares, self._known(old.sides)
                plan.rows = self._cut(plan.size, plan.n_rows, shares)
        self._asked.clear()


def _units(n_rows: int) -> int:
    return max(1, min(n_rows, MOST_UNITS))
