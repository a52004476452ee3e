# SPDX-License-Identifier: MIT
"""When moments of a run are due: the same steps on all ranks, and after a restart.

What is said in steps or in time depends on neither where a run begins nor who looks beside.
"""
from __future__ import annotations

import math
import time as clock
from collections.abc import Callable

from controllers.engine import Engine
from controllers.program.scalars import TIME_STEP
from controllers.settings.every import Every
from hitmap.comm import Communicator

NEVER = 1 << 62
GROWTH = 4          # by how many times more steps than before the clock is looked at
BETWEEN = 8         # how often it is looked at between two moments, about
_EARLY = 1e-6       # steps that a moment may be early, which is what rounding makes of times


class Timing:
    """When moments are due, of an engine that `engine` gives; see `Look`."""

    def __init__(self, every: Every | None, engine: Callable[[], Engine], comm: Communicator):
        self._every = every or Every(steps=NEVER)
        self._engine, self._comm = engine, comm
        self._next = 0              # the step after which rank 0 looks at its clock
        self._window = 1
        self._since = self._looked = 0.0

    def begin(self, step: int) -> None:
        """A run begins after this step.  ValueError where there is no time to go by."""
        numbers = self._engine().numbers
        dt = numbers.parameters.get(TIME_STEP, 0.0)
        if self._every.time is not None and not numbers.by_steps and not dt > 0:
            raise ValueError(
                f"output every {self._every.time} of time, but steps take none (dt is {dt}); give "
                f"dt= to the computation, or ct.every(steps=...)"
            )
        self._next, self._window = step + 1, 1
        self._since = self._looked = clock.monotonic()
        self._index = self._count(numbers.time(step))

    def left(self, step: int) -> int:
        """Steps from `step` to the next look."""
        every = self._every
        if every.steps is not None:
            return every.steps - step % every.steps
        if every.seconds is not None:
            return max(1, self._next - step)
        numbers = self._engine().numbers
        if numbers.by_steps:
            return 1
        assert every.time is not None, "one of the three"
        now, dt = numbers.time(step), numbers.parameters[TIME_STEP]
        target = (self._count(now) + 1) * every.time
        return max(1, math.ceil((target - now) / dt - _EARLY))

    def is_due(self, step: int, time: float) -> bool:
        """Whether a moment is written at this look.  Collective where a clock says it."""
        if self._every.seconds is not None:
            return self._is_due_by_clock(step)
        if self._every.time is None:
            return True
        before, self._index = self._index, self._count(time)
        return self._index > before

    def _count(self, time: float) -> int:
        """How many multiples of the wanted time there are up to this one."""
        if self._every.time is None:
            return 0
        numbers = self._engine().numbers
        dt = 0.0 if numbers.by_steps else numbers.parameters[TIME_STEP]
        return math.floor((time + 2 * _EARLY * dt) / self._every.time + 1e-12)

    def _is_due_by_clock(self, step: int) -> bool:
        seconds = self._every.seconds
        assert seconds is not None, "a clock"
        now = clock.monotonic()
        elapsed, self._looked = now - self._looked, now
        wanted = int(self._window * seconds / BETWEEN / max(elapsed, 1e-9))
        window = max(1, min(GROWTH * self._window, wanted))
        self._window, is_due = self._comm.bcast((window, now - self._since >= seconds))
        self._since = now if is_due else self._since
        self._next = step + self._window
        return is_due
