# SPDX-License-Identifier: MIT
"""How fast kernels are just now: cores that others use, too, are 10 to 40 % slower for a while.

Of many executions an estimate is a median, which such a while hardly changes.  Functions are left
as they are: of many workers the newest pieces are the short last ones of a task, which wait for the
interpreter's lock more than others do.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Callable
from statistics import median_low
from typing import Any, TypeAlias

from controllers.estimates.estimate import Estimate

Timed: TypeAlias = "tuple[float, int, float] | tuple[float, int, float, Any]"   # size, units, s

NEWEST = 8      # executions that tell, of hybrid tasks the last ones
FEWEST = 4      # of these
CHANGED = 0.08  # by so much another factor has to differ: else shares would never stay


class Lately:
    """By which factor the newest executions of one kind differ from what is foreseen of them.

    factor: the median; 1 until enough of them are known.  fresh: those that were not compared yet,
    in order.

    >>> lately = Lately()
    >>> lately.fresh += [(8.0, 1, seconds) for seconds in (1.2, 1.3, 30.0, 1.3)]
    >>> lately.compare(lambda size, units: Estimate.about(1.0, 0.1, "history"))
    >>> lately.factor
    1.3
    """

    def __init__(self) -> None:
        self.factor = 1.0
        self.fresh: deque[Timed] = deque(maxlen=NEWEST)
        self._newest: deque[Timed] = deque(maxlen=NEWEST)
        self._compared: deque[float] = deque(maxlen=NEWEST)

    def begin_anew(self) -> None:
        """What is foreseen is another thing now: all are fresh again, and the factor is 1."""
        self.factor = 1.0
        self.fresh = deque([*self._newest, *self.fresh], NEWEST)
        self._newest.clear()
        self._compared.clear()

    def compare(self, foreseen: Callable[[float, int], Estimate | None]) -> None:
        """Find the factor again, with those that were added since."""
        while self.fresh:
            size, units, seconds, *_ = one = self.fresh.popleft()
            self._newest.append(one)
            usual = foreseen(size, units)
            if usual is not None:
                self._compared.append(seconds / usual.seconds)
        if len(self._compared) >= FEWEST:
            found = median_low(self._compared)
            if abs(found / self.factor - 1) >= CHANGED:
                self.factor = found
