# SPDX-License-Identifier: MIT
"""Who looks while steps run: those that record, and the condition that may end the run."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from controllers.engine.decision import decided
from controllers.run.results import Results
from hitmap.comm import Communicator


class Look(Protocol):
    """Somebody who looks after every so many steps."""

    @property
    def of_fields(self) -> bool:
        """Whether at fields, and not at results alone."""

    def left(self, step: int) -> int:
        """How many steps there are from `step` to the next look, 1 or more."""

    def look(self, now: Results) -> bool:
        """Look, and say whether the run is to end here, on all ranks alike.  Collective."""


class Check:
    """Asks rank 0 whether a run is to end, every so many steps from `first` on, and at `last`."""

    of_fields = False

    def __init__(
        self, holds: Callable[[Results], Any], comm: Communicator, every: int, first: int, last: int
    ) -> None:
        self._holds, self._comm, self._every = holds, comm, every
        self._first, self._last = first, last

    def left(self, step: int) -> int:
        left = self._every - (step - self._first) % self._every
        return min(left, self._last - step) if step < self._last else left

    def look(self, now: Results) -> bool:
        return decided(self._comm, lambda: self._holds(now), "until=")


class AllLooks:
    """All who look in a run; `found` says what the newest step has found."""

    def __init__(self, looks: Sequence[Look], found: Callable[[], Results]) -> None:
        self.stopped = False    # one of them has ended the run
        self._looks, self._found = looks, found

    def left(self, n_steps: int) -> int:
        """How many steps there are from `n_steps` to the next look, 1 or more."""
        return min(one.left(n_steps) for one in self._looks)

    def of_fields(self, n_steps: int) -> bool:
        """Whether any of those who look then looks at fields."""
        return any(one.of_fields for one in self._due(n_steps))

    def look(self) -> bool:
        """All whose turn it is look; whether the run ends, on all ranks alike.  Collective."""
        now = self._found()
        stops = [one.look(now) for one in self._due(now.step)]
        self.stopped = any(stops)
        return self.stopped

    def _due(self, n_steps: int) -> list[Look]:
        return [one for one in self._looks if one.left(n_steps - 1) == 1]
