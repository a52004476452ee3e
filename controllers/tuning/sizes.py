# SPDX-License-Identifier: MIT
"""Sizes of what passes through in chunks, found while it does: each pass or call is a valid one.

Of each size one gets it going and some are timed; what that may take longer than the best known one
is a small share of the run, as COSP asks (Sabne, Sakdhnagool, Eigenmann 2013).
"""
# docs/decisions/0070-chunks-are-tuned-while-they-run.md
# docs/decisions/0079-chunks-and-slots-are-tuned-too.md
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from controllers.plan.chunks.pipeline import Kind
from controllers.tuning.size_search import Point, SizeSearch
from hitmap.comm import Communicator

TIMED = 2           # passes of a trial, after one that is not timed
SHARE, SHARE_OF_LONG, LONG_S = 0.03, 0.01, 60.0     # of a run, or of one over a minute


@dataclass(frozen=True)
class Size:
    """How something passes through: time steps of a pass, chunks of each place, slots."""

    span: int
    chunks: int
    slots: int


class Seen(NamedTuple):
    """Seconds of a step, or of a call, of the slowest device, and what bounds it."""

    seconds: float
    kind: Kind


class Sizes(Protocol):
    """The sizes to choose among, at points of a grid; all ranks have the same."""

    ends: Point
    first: Point

    def at(self, point: Point) -> Size | None:
        """That of a point; None where it does not fit.  Collective."""


class Keeper(Protocol):
    """Keeps what was found."""

    def store(self, size: Size) -> None: ...


class Spans:
    """Numbers of steps of a pass alone: chunks and slots are given."""

    def __init__(self, spans: tuple[int, ...], first: Size) -> None:
        self._spans, self._first = spans, first
        self.ends, self.first = Point(len(spans), 1, 1), Point(spans.index(first.span), 0, 0)

    def at(self, point: Point) -> Size:
        return Size(self._spans[point.span], self._first.chunks, self._first.slots)


class Allowance:
    """How long trials may take in a run that is told how long its parts take."""

    def __init__(self) -> None:
        self.run_s = self._lost_s = 0.0

    def ran(self, seconds: float, at_best_s: float) -> None:
        """A part of the run, in that of `at_best_s` with the best size known before."""
        self.run_s += seconds
        self._lost_s += max(0.0, seconds - at_best_s)

    def allows(self, cost_s: float, left_s: float) -> bool:
        """Whether that may be lost, in a run that goes on for so long."""
        run_s = self.run_s + left_s
        share = SHARE if run_s < LONG_S else SHARE_OF_LONG
        return self._lost_s + cost_s <= share * run_s


class SizeChooser:
    """Says of what size the next passes are, and learns how long they take.

    size: that of the next ones.  over: nothing more is tried.
    """

    def __init__(
        self, sizes: Sizes, comm: Communicator, look: Callable[[Size], Seen | None],
        kept: Keeper | None = None,
    ) -> None:  # fmt: skip
        """`look`: what was seen of passes of this size, if enough; `kept`: is told the best one."""
        self._sizes, self._comm, self._look, self._kept = sizes, comm, look, kept
        self._search, self._at = SizeSearch(sizes.ends, sizes.first), sizes.first
        first = sizes.at(sizes.first)
        assert first is not None, "what runs fits"
        self.size, self.over = first, sizes.ends == (1, 1, 1)
        self._allowance = Allowance()
        self._seen: dict[Size, Seen] = {}
        self._is_warm, self._rests = False, False
        self._making_s, self._left = 0.0, 0
        self._wanted: tuple[Point, Size] | None = None      # what is tried next, where that pays
        self._choosing_s = 0.0      # on this rank, since the last part of the run

    @property
    def width(self) -> int:
        """The steps of the next passes."""
        return self.size.span

    def until_decision(self, left: int) -> int:
        """How many of the `left` steps are to be run with this size: whole passes."""
        self._left = left
        if self.over or self._rests:
            return left
        return min(left, self.size.span * (TIMED if self._is_warm else 1))

    @property
    def wants_to_look(self) -> bool:
        """Whether what comes next is timed."""
        return not (self.over or self._rests) and self._is_warm

    def took(self, seconds: float) -> None:
        """So long it took on this rank to change to this size."""
        self._making_s = seconds

    def ran(self, n_steps: int, seconds: float) -> None:
        """So many steps were run, in so many seconds on this rank; `size` is that of the next
        ones.  Collective.
        """
        if self.over or not n_steps:
            return
        mine = seconds, self._making_s, self._choosing_s
        here = self._look(self.size) if self.wants_to_look else None
        everyone = self._comm.allgather((mine, here))
        seconds, self._making_s, choosing_s = (max(of) for of in zip(*(one for one, _ in everyone)))
        self._choosing_s = 0.0
        self._left -= n_steps
        is_trial = bool(self._seen) and not self._rests
        at_best_s = n_steps * self._best_s if is_trial else seconds
        begins = not (self._is_warm or self._rests)
        self._allowance.ran(seconds + choosing_s + begins * self._making_s, at_best_s)
        seen = [one for _, one in everyone if one is not None]
        if self._rests:         # more of the run is known
            self._next()
        elif not self._is_warm:
            self._is_warm = n_steps >= self.size.span
        elif seen:
            self._seen[self.size] = found = max(seen)
            self._search.tell(self._at, *found)
            self._next()

    @property
    def seconds(self) -> dict[Size, float]:
        """How long a step takes with each size that was tried."""
        return {size: seen.seconds for size, seen in self._seen.items()}

    @property
    def of_widths(self) -> dict[int, float]:
        """The same by the steps of a pass alone, of the best such size."""
        found: dict[int, float] = {}
        for size, seconds in sorted(self.seconds.items(), key=lambda one: -one[1]):
            found[size.span] = seconds
        return dict(sorted(found.items()))

    @property
    def _best_s(self) -> float:
        return self._seen[self._best].seconds

    def _next(self) -> None:
        """Go on with what is tried next, where that is worth it; else with the best one."""
        start = time.perf_counter()
        found = self._wanted or self._candidate()
        self._choosing_s += time.perf_counter() - start
        self._rests = found is not None and not self._pays(found[1])
        self._wanted = found if self._rests else None
        if found is None:
            self.over = True
            if self._kept is not None and self._comm.rank == 0:
                self._kept.store(self._best)
        if found is None or self._rests:
            self._at, self.size = self._search.best, self._best
        else:
            self._at, self.size = found
        self._is_warm = False

    @property
    def _best(self) -> Size:
        return min(self._seen, key=lambda size: self._seen[size].seconds)

    def _candidate(self) -> tuple[Point, Size] | None:
        """What is to be tried next, if anything is."""
        while (point := self._search.next) is not None:
            size = self._sizes.at(point)
            if size is None:
                self._search.refuse(point)
            elif size in self._seen:        # there are no others between two points
                self._search.tell(point, *self._seen[size])
            else:
                return point, size
        return None

    def _pays(self, size: Size) -> bool:
        """Whether a trial that takes half as long again stays within its share of the run."""
        best_s = self._best_s
        cost_s = (1 + TIMED) * size.span * best_s / 2 + 2 * self._making_s
        return self._allowance.allows(cost_s, max(0, self._left) * best_s)
