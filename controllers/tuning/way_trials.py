# SPDX-License-Identifier: MIT
"""Which of several ways to go on in: each is run for some windows of steps, and the fastest stays.

It is told seconds and says ways; who runs the steps is no concern of it.  Every step is a valid
step, so that a trial costs no more than what a slower way takes longer.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Way = TypeVar("Way")

LAUNCHES = 8        # of a window, at least, ...
WINDOW_S = 0.02     # ... and its seconds
TURNS = 3           # windows of each way, the shortest of which counts
HOPELESS = 1.2      # ways that take so many times longer than the best one get no more windows
MARGIN = 0.03       # the usual way is left where that saves so much of a step
BUDGET_S = 1.0      # what trials may take longer, together, than the usual way would have


@dataclass(frozen=True)
class Found(Generic[Way]):
    """What trials have come to: seconds of a launch by way, as far as each was tried."""

    way: Way
    seconds: dict[Way, float]
    why: str


class WayTrials(Generic[Way]):
    """Windows of steps, each in one way; the first of `ways` is the usual one."""

    def __init__(self, ways: Sequence[Way], budget_s: float = BUDGET_S) -> None:
        self._ways, self._usual, self._budget_s = [*ways], ways[0], budget_s
        self._times: dict[Way, list[float]] = {way: [] for way in ways}
        self._turn, self._next = 0, 0
        self._lost_s = 0.0
        self._launches, self._seconds = 0, 0.0      # of this window so far
        self._wanted = LAUNCHES
        self._is_warm = {self._usual}   # ways that were run: drivers build at first launches
        self._found: Found[Way] | None = None
        self.n_windows = 0
        if len(self._ways) == 1:
            self._end("there is no other way")

    @property
    def over(self) -> bool:
        """Whether all is known that will be."""
        return self._found is not None

    @property
    def way(self) -> Way:
        """The one to run steps in now."""
        return self._ways[self._next] if self._found is None else self._found.way

    @property
    def found(self) -> Found[Way]:
        """What is known by now."""
        if self._found is not None:
            return self._found
        return Found(self._usual, self._best(), "too few steps to tell")

    @property
    def launches_left(self) -> int:
        """Of this window; before the first one in a way it is run once, which does not count."""
        return max(1, self._wanted - self._launches) if self.way in self._is_warm else 1

    def refuse(self) -> None:
        """The way that is to be tried now cannot be run; the usual one can."""
        assert self.way != self._usual, "it has run already"
        del self._times[self._ways.pop(self._next)]
        self._advance(0)

    def ran(self, n_launches: int, seconds: float) -> None:
        """So many launches were run in the way that was wanted; all ranks must be told the same."""
        if self.over or not n_launches:
            return
        if self.way not in self._is_warm:
            self._is_warm.add(self.way)
            return
        self._launches += n_launches
        self._seconds += seconds
        if self._launches < self._wanted:
            return
        each = self._seconds / self._launches
        if not self.n_windows:      # the first one says how many launches a window has
            self._wanted = max(LAUNCHES, math.ceil(WINDOW_S / max(each, 1e-9)))
        self._times[self.way].append(each)
        usual = min(self._times[self._usual])
        self._lost_s += max(0.0, each - usual) * self._launches
        self.n_windows += 1
        self._launches, self._seconds = 0, 0.0
        if self._lost_s > self._budget_s:
            self._end("the budget is spent")
            return
        self._advance(1)

    def _advance(self, count: int) -> None:
        """On to the next way; after all of them the next turn, of those that are not hopeless."""
        self._next += count
        if self._next < len(self._ways):
            return
        self._turn, self._next = self._turn + 1, 0
        best = self._best()
        limit = HOPELESS * min(best.values())
        self._ways = [way for way in self._ways if best[way] <= limit or way == self._usual]
        if self._turn == TURNS or len(self._ways) == 1:
            self._end("")

    def _best(self) -> dict[Way, float]:
        return {way: min(times) for way, times in self._times.items() if times}

    def _end(self, why: str) -> None:
        best = self._best()
        fastest = min(best, key=best.__getitem__, default=self._usual)
        if best and fastest != self._usual:
            saved = 1 - best[fastest] / best[self._usual]
            if saved < MARGIN:
                fastest, told = self._usual, f"no other saves {MARGIN:.0%} of a launch"
            else:
                told = f"it saves {saved:.0%} of a launch"
        else:
            told = "none is faster" if best else ""
        self._found = Found(fastest, best, "; ".join(filter(None, (told, why))))
