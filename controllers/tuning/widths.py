# SPDX-License-Identifier: MIT
"""Halo widths found while steps run: each step is a valid one, whatever the width is.

Some steps are run with one width, some with another; how long a step takes with each decides.  The
ranks agree on the slowest of them, so that all go the same way.  Which widths are tried next, a
search says, by default the one that halves (tuning/search.py).
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from controllers.tuning.search import Search, search_named
from controllers.tuning.space import Space
from hitmap.comm import Communicator

WINDOW_S = 0.05     # of steps that are timed at a time, at least
FEWEST = 20         # ... and so many steps
ROUNDS = 3          # times that each width of a batch is timed
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
        self._step_s = WINDOW_S     # of the width in use, about
        self._n_done, self._seconds = 0, 0.0    # of the window
        self._n_stale, self._best = 0, Width(first)
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
        if self._is_first:
            self._is_first = False
            return
        self._times.setdefault(Width(self.width), []).append(self._step_s)
        self._next_turn()

    @property
    def seconds(self) -> dict[int, float]:
        """How long a step takes with each width that was tried."""
        return {one.steps: min(its) for one, its in sorted(
            self._times.items(), key=lambda item: item[0].steps
        )}  # fmt: skip

    @property
    def _wanted(self) -> int:
        """Steps of a window: whole rounds."""
        enough = math.ceil(WINDOW_S / max(self._step_s, 1e-7))
        steps = self.width if self._is_first else max(FEWEST, enough)
        return self.width * math.ceil(steps / self.width)

    def _next_turn(self) -> None:
        """The width that is timed next; where none is left, the best one for good."""
        turn = next(self._turns, None)
        while turn is None:
            self._learn()
            batch = self._next_batch()
            if batch is None:
                self.width, self.over, self._is_first = self._best.steps, True, False
                return
            widths = [self._best, *(one for one in batch if one != self._best)]
            self.n_tried += len(widths) - 1
            self._turns = iter(widths * ROUNDS)
            turn = next(self._turns)
        self._is_first = turn.steps != self.width or not self._times
        self.width = turn.steps

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

    def _learn(self) -> None:
        """What the times of a batch say."""
        if not self._times:
            return
        for one, its in self._times.items():
            self._known[one] = min(its)
        best = min(self._known, key=self._known.__getitem__)
        self._n_stale = 0 if best != self._best else self._n_stale + 1
        self._best = best
