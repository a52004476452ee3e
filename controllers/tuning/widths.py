# SPDX-License-Identifier: MIT
"""Halo widths found while steps run: each step is a valid one, whatever the width is.

Some steps are run with one width, some with another; how long a step takes with each decides.  The
ranks agree on the slowest of them, so that all go the same way.  Which widths are tried next, a
search says, by default the one that halves (tuning/search.py).

What is lost is what slower widths take longer.  So the first windows are short, and a width that is
much slower in one gets no more; those that are left are told apart in longer ones, by turns.  In
the end widths beside the best one get a second one: somebody may have disturbed the first.

    window        1     2     3      4         each width of a batch beside the best one so far
    at least      4     4    20     20 ms
    and           5    10    20     20 steps, whole rounds
    goes on     1.5   1.2  1.05      -         if it is at most so many times as slow as the best
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from controllers.tuning.search import Search, search_named
from controllers.tuning.space import Space
from hitmap.comm import Communicator

WINDOWS = ((0.004, 5, 1.5), (0.004, 10, 1.2), (0.02, 20, 1.05), (0.02, 20, 1.0))    # see above
WARM = 4            # launches, at most, that get a width going
LOST = 360          # steps of the best width that a search takes longer, on the average
SURE = 2            # windows of a width beside the best one, at least
STALE = 2           # batches without a better width, after which the best one is taken


@dataclass(frozen=True)
class Width:
    """A halo width, as searches see it: time steps between two exchanges."""

    steps: int


class WidthChooser:
    """Says which halo width the next steps have, and learns how long they take."""

    def __init__(
        self, widths: Sequence[int], first: int, comm: Communicator, search: str = "dichotomic"
    ) -> None:
        """`widths`, rising, among them the `first`, with which the run begins."""
        others = [Width(one) for one in widths if one != first]
        self._space = Space([Width(first), *others])
        self._comm, self._times = comm, dict[Width, list[float]]()
        self._known: dict[Width, float] = {}
        find: Search[Width] = search_named(search)
        self._batches = find(self._space, self._known, Random(0))
        self._turns: Iterator[Width] = iter(())
        self._window_s, self._fewest = 0.0, 1
        self._step_s = 1.0      # of the width in use, about
        self._launch = min(widths)
        self._n_done, self._seconds = 0, 0.0    # of the window
        self._n_stale, self._best = 0, Width(first)
        self._widths = [*map(Width, sorted(widths))]
        self.width, self.over = first, len(widths) < 2
        self._is_first = True   # steps with this width: those that get it going are not timed
        self.n_tried = 0
        if not self.over:
            self._next_turn()

    def until_decision(self, left: int) -> int:
        """How many of the `left` steps are to be run with this width: whole rounds."""
        if self.over:
            return left
        return min(left, self._wanted - self._n_done)

    def ran(self, n_steps: int, seconds: float) -> None:
        """So many steps were run, in so many seconds on this rank; `width` is that of the next
        ones.  Collective.
        """
        if self.over or not n_steps:
            return
        self._n_done, self._seconds = self._n_done + n_steps, self._seconds + seconds
        if self._n_done < self._wanted:
            return
        seconds, n_steps = max(self._comm.allgather(self._seconds)), self._n_done
        self._n_done, self._seconds = 0, 0.0
        self._step_s = seconds / n_steps
        if self._is_first:      # the first ones take longer than steps with this width do
            self._step_s = min(self._step_s, *map(min, self._times.values()), math.inf)
            self._is_first = False
            return
        self._times.setdefault(Width(self.width), []).append(self._step_s)
        self._next_turn()

    @property
    def of_widths(self) -> dict[int, float]:
        """How long a step takes with each width that was tried."""
        return {one.steps: min(its) for one, its in sorted(
            self._times.items(), key=lambda item: item[0].steps
        )}  # fmt: skip

    @property
    def _wanted(self) -> int:
        """Steps of a window: whole rounds."""
        if self._is_first:
            return self._launch * min(self.width // self._launch, WARM)
        enough = math.ceil(self._window_s / max(self._step_s, 1e-7))
        return self.width * math.ceil(max(self._fewest, enough) / self.width)

    def _next_turn(self) -> None:
        """The width that is timed next; where none is left, the best one for good."""
        turn = next(self._turns, None)
        while turn is None:
            self._learn()
            batch, first = self._next_batch(), 0
            if batch is None:
                batch, first = self._around(), 1
            if batch is None:
                self.width, self.over, self._is_first = self._best.steps, True, False
                return
            widths = [self._best, *(one for one in batch if one != self._best)]
            self.n_tried += sum(one not in self._times for one in widths[1:])
            self._turns = self._by_turns(widths, WINDOWS[first:])
            turn = next(self._turns)
        self._is_first = turn.steps != self.width or not self._times
        self.width = turn.steps

    def _by_turns(
        self, widths: list[Width], windows: Sequence[tuple[float, int, float]]
    ) -> Iterator[Width]:
        """The width of each window of a batch: fewer from turn to turn."""
        for self._window_s, self._fewest, limit in windows:
            yield from widths
            best_s = min(min(self._times[one]) for one in widths)
            widths = [one for one in widths if min(self._times[one]) <= limit * best_s]
            if len(widths) == 1:
                return

    def _next_batch(self) -> list[Width] | None:
        """Widths that are not known yet; None where no more need to be."""
        while self._n_stale < STALE and len(self._known) < len(self._space):
            batch = next(self._batches, None)
            if batch is None:
                return None
            new = [one for one in batch if one not in self._known]
            if new:
                return new
            if len(batch) == 0:
                self._n_stale += 1
        return None

    def _around(self) -> list[Width] | None:
        """Those beside the best one that had one window, if any: it may have been disturbed."""
        at = self._widths.index(self._best)
        beside = [*self._widths[max(0, at - 1) : at], *self._widths[at + 1 : at + 2]]
        return [one for one in beside if len(self._times.get(one, ())) < SURE] or None

    def _learn(self) -> None:
        """What the times of a batch say."""
        if not self._times:
            return
        for one, its in self._times.items():
            self._known[one] = min(its)
        best = min(self._known, key=self._known.__getitem__)
        self._n_stale = 0 if best != self._best else self._n_stale + 1
        self._best = best
