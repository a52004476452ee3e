# SPDX-License-Identifier: MIT
"""When the field is divided anew: what a window has shown, what other shares would gain and cost.

    windows   1      2      3      4      5      6      7      8
    device 1  ####   ##     ##     ##     ####   ####   ##     ##      seconds of a step
    device 2  #      ##     ##     ##     #      #      ##     ##
              move   settled              doubt  move   settled

Arithmetic alone: from the same numbers all ranks decide the same.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from controllers.balance.shares import equal_times
from controllers.balance.sightings import Sightings
from controllers.plan.rate import Rate

WORTH = 0.02        # of a step's time: so much must be gained by a move
DOUBT = 0.05        # ... once shares are settled, and by two windows in a row
CHANGED = 1.15      # a device that takes so many times longer, or less, is another one
FADES = 3           # windows before the newest one that count then
# docs/decisions/0116-little-gains-need-long-looks.md
CLEAR = 0.2         # ... of a step by a move after any window, less by one after more of them, ...
ENOUGH, LONG_S = 0.2, 10.0      # ... until such a part of those that are left was seen, or so long
# docs/decisions/0115-who-has-few-cells-is-early.md
FEW, MANY = 0.05, 0.15      # of the cells of the largest device ...
MOST_IN_TIME = 0.9          # ... of the steps of a device with few; with many, a half
MOST_MOVES = 3      # until shares are settled

# How many cells each device gets where the shares are these, cuts being where they can be.
CellsOf = Callable[[Sequence[float]], Sequence[int]]
# The seconds that a move to such shares takes.
CostOf = Callable[[Sequence[float]], float]


@dataclass(frozen=True)
class Window:
    """What was seen of all devices: seconds of a step, and the cells of each.

    The part of a device's steps that take no longer is that of `parts_in_time`.
    n_left: steps that such shares would still be used for.  n_steps: that it lasted.
    """

    seconds: Sequence[float]
    cells: Sequence[int]
    n_left: int
    cost_of: CostOf
    n_steps: int


@dataclass(frozen=True)
class Decision:
    """New shares, or none, and why.

    now_s, new_s: seconds of a step as it is and with the best shares, as the model has it.
    gain_s: over the steps that are left.
    """

    shares: tuple[float, ...] | None
    why: str
    now_s: float
    new_s: float
    gain_s: float
    cost_s: float


class Decider:
    """Decides window by window.

    least: cells that each device keeps.  follows: whether it goes on once shares are settled.
    """

    def __init__(self, n_devices: int, least: float, *, follows: bool = False) -> None:
        self.least = least
        self.settled = False
        self.n_moves = 0            # in all
        self._follows = follows
        self._sightings = [Sightings() for _ in range(n_devices)]
        self._moves_left = MOST_MOVES
        self._usual: Sequence[float] = ()   # seconds of each when shares were settled
        self._n_doubts = self._n_odd = 0

    @property
    def over(self) -> bool:
        """Whether nothing is decided any more."""
        return self.settled and not self._follows

    @property
    def rates(self) -> list[Rate]:
        """Of all devices, as seen last."""
        return [one.rate for one in self._sightings]

    @property
    def newest(self) -> list[Mapping[int, float]]:
        """Of all devices, the seconds of steps on the cells that they have, as seen last."""
        return [one.newest for one in self._sightings]

    def decide(self, window: Window, cells_of: CellsOf) -> Decision:
        """What comes of a window."""
        self._n_odd = self._n_odd + 1 if self._is_odd(window) else 0
        if self._n_odd == 1:
            now_s = self._now(window)
            return self._stays(window, "a device takes other times than before", now_s, now_s)
        for one, cells, seconds in zip(self._sightings, window.cells, window.seconds):
            if cells:
                is_odd = self._n_odd > 0 and one.is_odd(cells, seconds)
                if self.settled:
                    one.fade(FADES * window.n_steps)
                one.add(cells, seconds, window.n_steps)
                if is_odd:
                    one.forget()
        if not all(one.known for one in self._sightings):   # shares of 0, which somebody wants
            self.settled = True
            now_s = max(window.seconds)
            return self._stays(window, "a device has no cells", now_s, now_s)
        if self.settled and self._is_other(window, cells_of):
            self.settled, self._moves_left = False, MOST_MOVES
            for one, now, usual in zip(self._sightings, window.seconds, self._usual):
                if not usual / CHANGED < now < usual * CHANGED:
                    one.forget()
        return self._decided(window, cells_of)

    def foreseen(self, rates: Sequence[Rate], window: Window, cells_of: CellsOf) -> Decision:
        """What comes of rates that were seen elsewhere: a move, or none; neither settles.

        They are not taken for seen: alone a device may be faster than beside others.
        """
        shares, new_s = self._best(rates, window, cells_of)
        now_s, cost_s = max(window.seconds), window.cost_of(shares)
        gain_s = (now_s - new_s) * window.n_left
        if new_s > (1 - DOUBT) * now_s or gain_s <= cost_s:
            return self._stays(window, "a move would not pay", now_s, new_s, cost_s)
        return self._moves(shares, window, now_s, new_s, cost_s)

    def _is_odd(self, window: Window) -> bool:
        """Whether a device takes far longer, or less, than so far; while shares are looked for."""
        return not self.settled and any(
            one.is_odd(cells, seconds)
            for one, cells, seconds in zip(self._sightings, window.cells, window.seconds)
        )

    def _is_other(self, window: Window, cells_of: CellsOf) -> bool:
        """Whether two windows have said that the settled shares are not right any more."""
        new_s = self._best(self.rates, window, cells_of)[1]
        is_new = any(
            abs(now - usual) > DOUBT * usual for now, usual in zip(window.seconds, self._usual)
        )
        doubted = is_new and new_s < (1 - DOUBT) * max(window.seconds)
        self._n_doubts = self._n_doubts + 1 if doubted else 0
        if self._n_doubts < 2:
            return False
        self._n_doubts = 0
        return True

    def _decided(self, window: Window, cells_of: CellsOf) -> Decision:
        shares, new_s = self._best(self.rates, window, cells_of)
        now_s, cost_s = self._now(window), window.cost_of(shares)
        if self.settled:
            return self._stays(window, "settled", now_s, new_s, cost_s)
        seen = self._seen(window)
        most = DOUBT if self._follows else CLEAR    # who follows sets right what was wrong
        worth = max(_worth(window), min(most, WORTH / math.sqrt(seen)))
        if new_s > (1 - worth) * now_s:
            why = f"other shares would gain less than {worth:.0%}"
            if seen == 1:
                self._settle(window)
            return self._stays(window, why, now_s, new_s, cost_s)
        if not self._moves_left:
            self._settle(window)
            return self._stays(window, f"{MOST_MOVES} moves were made", now_s, new_s, cost_s)
        if (now_s - new_s) * window.n_left <= cost_s:
            why = "a move costs more than it would gain"
            return self._stays(window, why, now_s, new_s, cost_s)
        return self._moves(shares, window, now_s, new_s, cost_s)

    def _seen(self, window: Window) -> float:
        """Which part of the steps that are enough was seen with such shares, 1 at most."""
        enough = min(ENOUGH * window.n_left, LONG_S / max(window.seconds))
        n_seen = min(one.n_near for one in self._sightings)
        return min(1.0, n_seen / max(1.0, enough))

    def _now(self, window: Window) -> float:
        """The seconds of a step as it is, by all that was seen."""
        return max(
            rate.seconds(n) for rate, n in zip(self.rates, window.cells, strict=True)
        )  # fmt: skip

    def _best(
        self, rates: Sequence[Rate], window: Window, cells_of: CellsOf
    ) -> tuple[tuple[float, ...], float]:
        """The shares by which all take equally long, and the seconds of a step with them."""
        n_cells = sum(window.cells)
        shares = tuple(n / n_cells for n in equal_times(rates, n_cells, self.least))
        cells = cells_of(shares)
        return shares, max(rate.seconds(n) for rate, n in zip(rates, cells, strict=True))

    def _moves(
        self, shares: tuple[float, ...], window: Window, now_s: float, new_s: float, cost_s: float
    ) -> Decision:
        self._moves_left -= 1
        self.n_moves += 1
        gain_s = (now_s - new_s) * window.n_left
        return Decision(shares, "devices take unlike times", now_s, new_s, gain_s, cost_s)

    def _settle(self, window: Window) -> None:
        self.settled, self._usual = True, window.seconds

    def _stays(
        self, window: Window, why: str, now_s: float, new_s: float, cost_s: float = 0.0
    ) -> Decision:
        gain_s = max(0.0, now_s - new_s) * window.n_left
        return Decision(None, why, now_s, new_s, gain_s, cost_s)


def parts_in_time(cells: Sequence[int]) -> list[float]:
    """Which part of the steps of each device the others should not wait for.

    Of those with few cells nothing is lost while they wait.

    >>> parts_in_time([1000, 990, 100, 50, 0])
    [0.5, 0.5, 0.7, 0.9, 0.9]
    """
    part = np.interp(np.array(cells) / max(cells), [FEW, MANY], [MOST_IN_TIME, 0.5])
    return [round(one, 6) for one in part.tolist()]


def _worth(window: Window) -> float:
    """What part of a step a move has to gain: late steps scatter more than the middle ones."""
    slowest = max(range(len(window.cells)), key=lambda one: window.seconds[one])
    part = parts_in_time(window.cells)[slowest]
    return float(np.interp(part, [0.5, MOST_IN_TIME], [WORTH, DOUBT]))
