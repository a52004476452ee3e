# SPDX-License-Identifier: MIT
"""The rows of a hybrid task: the share of each side, in pieces where several may do them.

Shares lie one after another.  Small pieces are where another side's rows begin, as far as there is
one, and are done last: so who is early takes rows beside its own.
"""
# docs/decisions/0097-unsure-shares-have-tails.md
# docs/decisions/0119-guessed-shares-are-done-by-who-has-time.md
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from controllers.estimates.estimate import Estimate
from controllers.pool.forecast import Forecast
from controllers.pool.hybrid.division import TRIALS
from controllers.pool.hybrid.side import Side
from controllers.pool.hybrid.tails import parts_of
from controllers.pool.job import Job
from controllers.pool.pieces import HelpS, Rows, least_s


class SideRows(NamedTuple):
    """A side, and its pieces, those first that it does first: from the first row on if `goes_up`.

    help_s: how long a row takes others that may help, as is known when the job of the side begins;
    None where shares are no guesses.
    """

    side: Side
    rows: list[Rows]
    goes_up: bool
    help_s: HelpS | None = None


class Cutting:
    """For who holds the pool's lock."""

    def __init__(self, forecast: Forecast) -> None:
        self._forecast = forecast

    def cut(
        self, size: float, n_rows: int, n: int, shares: Sequence[tuple[Side, int]], *,
        is_divided: bool,
    ) -> list[SideRows]:  # fmt: skip
        """Of sides with so many of n units of all rows, `size` being how much there is to do.

        is_divided: others may take of a share.
        """
        is_divided = is_divided and len(shares) > 1
        known = [self._known(side, size * count / n) if is_divided else None
                 for side, count in shares]  # fmt: skip
        # who is early finds as much elsewhere as it has of the whole; the less the slower it is
        early = [0.0 if one is None else (1 - one.least_s / one.seconds) * count / n
                 for one, (_, count) in zip(known, shares)]  # fmt: skip
        is_guess = is_divided and self.is_guess([side for side, _ in shares])
        found: list[SideRows] = []
        first = 0
        for number, (side, count) in enumerate(shares):
            low, high = n_rows * first // n, n_rows * (first + count) // n
            first += count
            others = max(early[:number] + early[number + 1 :], default=0.0)
            parts = parts_of(high - low, side.n_jobs, known[number], others)
            if found:
                rows = [(high - last, high - start) for start, last in parts]
            else:
                rows = [(low + start, low + last) for start, last in parts]
            help_s = self._help_s(side, [one for one, _ in shares]) if is_guess else None
            found.append(SideRows(side, rows, not found, help_s))
        return found

    def is_guess(self, sides: Sequence[Side]) -> bool:
        """Whether so little is known of one of them that shares are guesses."""
        return any(self._forecast.is_new(side.way) for side in sides)

    def shares_by_now(self, size: float, sides: Sequence[Side]) -> list[float] | None:
        """What of a task that has so much to do suits each side, by what is known of all by now.

        As much as a trial at least, since parts of the task are there.  None where nothing is known
        of one.  Where something lies makes no difference.
        """
        speeds = [1 / one.seconds for one in self._known_by_now(sides, size) if one is not None]
        if len(speeds) < len(sides):
            return None
        found = [max(one / sum(speeds), 1 / TRIALS) for one in speeds]
        found[found.index(max(found))] -= sum(found) - 1
        return found

    def _known(self, side: Side, size: float) -> Estimate | None:
        return self._forecast.known(side.way, size / side.n_jobs, side.cores)

    def _known_by_now(self, sides: Sequence[Side], size: float) -> list[Estimate | None]:
        self._forecast.refresh()    # nobody may have had time for that since
        return [self._known(side, size) for side in sides]

    def _help_s(self, own: Side, sides: Sequence[Side]) -> HelpS:
        """Says how long a row of a side's job takes all the others, and foresees that job anew."""
        others = [side for side in sides if side is not own]

        def help_s(job: Job) -> float | None:
            its = self._known(own, job.size)
            if its is None or its.seconds <= least_s(own.n_jobs):   # it is one piece
                return None
            its, *known = self._known_by_now([own, *others], job.size)
            speed = sum(1 / one.seconds for one in known if one is not None)
            if its is None or not speed:
                return None
            assert job.rows is not None, "a part of a task"
            job.seconds = its.seconds
            return 1 / speed / (job.rows[1] - job.rows[0])

        return help_s
