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


class Pause:
    """Lets a run stand still after every so many steps from `first` on, but for `last`, its end.

    of_fields: whether all is done then that was begun, as for looks at fields.
    """

    def __init__(self, every: int, first: int, last: int) -> None:
        self.of_fields, self._every, self._first, self._last = True, every, first, last

    def left(self, step: int) -> int:
        return self._every - (step - self._first) % self._every

    def look(self, now: Results) -> bool:
        return False

    def is_due(self, step: int) -> bool:
        """Whether it lets the run stand still after this step."""
        return step < self._last and self.left(step - 1) == 1


class AllLooks:
    """All who look in a run; `found` says what the newest step has found."""

    def __init__(
        self, looks: Sequence[Look], found: Callable[[], Results], pause: Pause | None = None
    ) -> None:
        self.stopped = False    # one of them has ended the run
        self.pauses = False     # the run stands still where they have looked last
        self._looks = looks if pause is None else [*looks, pause]
        self._found, self._pause = found, pause

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
        self.pauses = self._pause is not None and self._pause.is_due(now.step)
        return self.stopped

    def _due(self, n_steps: int) -> list[Look]:
        return [one for one in self._looks if one.left(n_steps - 1) == 1]
