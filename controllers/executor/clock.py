# SPDX-License-Identifier: MIT
"""Clocks: moments of a device's or of another rank's clock on one time axis.

A `Reading` is one moment on two clocks, bracketed by what must lie before and after it.  A
`Clock` is a line through two readings, so that a drift between them is allowed for.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hitmap.comm import Communicator, receive, send

ROUND_TRIPS = 16


@dataclass(frozen=True)
class Reading:
    """The same moment there and here, in nanoseconds; wrong by at most `error_ns`."""

    there: int
    here: int
    error_ns: int = 0

    @classmethod
    def between(cls, there: int, earliest: int, latest: int) -> Reading:
        """A moment `there` that lies between two moments here.

        >>> Reading.between(50, 1000, 1010)
        Reading(there=50, here=1005, error_ns=5)
        """
        return cls(there, (earliest + latest) // 2, (latest - earliest + 1) // 2)

    @classmethod
    def of_command(
        cls, queued: int, start: int, end: int, called: int, returned: int, done: int
    ) -> Reading:
        """From the profile of a command there and the times of its enqueuing and waiting here.

        Certain is that it ran between the call and the end of the wait.  That it was queued while
        the call lasted says more, where it does not contradict that.

        >>> Reading.of_command(100, 130, 140, 5100, 5110, 5190)
        Reading(there=140, here=5145, error_ns=5)
        >>> Reading.of_command(0, 130, 140, 5100, 5110, 5190)
        Reading(there=140, here=5150, error_ns=40)
        """
        lowest, highest = called - start, done - end
        closer = max(lowest, called - queued), min(highest, returned - queued)
        if closer[0] <= closer[1]:
            lowest, highest = closer
        return cls.between(end, end + lowest, end + highest)


class Clock:
    """Moments of another clock on ours, through its last two readings; without any, the same.

    >>> clock = Clock(Reading(0, 1000))
    >>> clock.add(Reading(100, 1200))
    >>> clock.here(50), clock.there(1100)
    (1100, 50)
    """

    def __init__(self, reading: Reading | None = None) -> None:
        self._first = self._last = reading or Reading(0, 0)

    def add(self, reading: Reading) -> None:
        """Go on with a later reading."""
        self._first, self._last = self._last, reading

    @property
    def error_ns(self) -> int:
        """How far off a moment between the readings may be."""
        return max(self._first.error_ns, self._last.error_ns)

    @property
    def age_ns(self) -> int:
        """How long ago the last reading was taken, if ours is this process's clock."""
        return time.perf_counter_ns() - self._last.here

    def here(self, there: int) -> int:
        """A moment of the other clock on ours."""
        return self._first.here + _along(there - self._first.there, *self._spans())

    def there(self, here: int) -> int:
        """A moment of our clock on the other one."""
        return self._first.there + _along(here - self._first.here, *reversed(self._spans()))

    def _spans(self) -> tuple[int, int]:
        """How far apart the two readings are, there and here."""
        first, last = self._first, self._last
        return last.there - first.there, last.here - first.here


def _along(elapsed: int, one: int, other: int) -> int:
    """`elapsed` of one clock in ticks of the other, of which `one` and `other` are as long."""
    return elapsed * other // one if one > 0 and other > 0 else elapsed


def root_reading(
    comm: Communicator, now: Callable[[], int] = time.perf_counter_ns
) -> Reading:
    """This moment on my clock (there) and on rank 0's (here), by round trips.  Collective.

    Each answer of rank 0 was given between the question and its arrival; the brackets of all
    round trips hold at once.  Where they allow for it the clocks are taken to be the same one,
    as they are on one host.
    """
    if comm.rank == 0:
        for rank in range(1, comm.size):
            _answer(comm, rank, now)
        moment = now()
        return Reading(moment, moment)
    answer = np.zeros(1, np.int64)
    lowest, highest = -(2**63), 2**63
    for _ in range(ROUND_TRIPS):
        asked = now()
        send(comm, answer, 0)
        receive(comm, answer, 0)
        moment, root = now(), int(answer[0])
        lowest, highest = max(lowest, root - moment), min(highest, root - asked)
    if lowest <= 0 <= highest:
        return Reading(moment, moment, max(-lowest, highest))
    return Reading.between(moment, moment + lowest, moment + highest)


def _answer(comm: Communicator, rank: int, now: Callable[[], int]) -> None:
    """Tell `rank` what time it is, as often as it asks."""
    question = np.zeros(1, np.int64)
    for _ in range(ROUND_TRIPS):
        receive(comm, question, rank)
        send(comm, np.array([now()], np.int64), rank)
