# SPDX-License-Identifier: MIT
"""What is certain to have happened before what: clocks of the queues, messages and the host.

A clock counts, per thread of execution, the commands that are certain to be complete.  A command
knows what was complete when it was enqueued, what its queue has done and what the events that it
waits for knew; the host learns when it sees that an event is complete, and in no other way.  So an
order that nobody enforces is found even where the commands happened to run in it.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.device.event import COMPLETE, Command, Event, Profile

VectorClock = npt.NDArray[np.int64]
HOST = "the host"


class Clocks:
    """The clocks of some threads: the host, queues, and messages between ranks.

    >>> clocks = Clocks([HOST, "queue"])
    >>> first = clocks.tick("queue")
    >>> clocks.tick(HOST).tolist()      # its first command, which knows of none of the queue
    [1, 0]
    >>> clocks.saw(first)
    >>> clocks.tick(HOST).tolist()
    [2, 1]
    """

    def __init__(self, threads: Sequence[Hashable]) -> None:
        self._numbers = {thread: number for number, thread in enumerate(threads)}
        self.latest: VectorClock = np.zeros(len(threads), np.int64)  # started so far, per thread
        self._last = [np.zeros(len(threads), np.int64) for _ in threads]

    def number(self, thread: Hashable) -> int:
        """The position of a thread in a clock."""
        return self._numbers[thread]

    @property
    def host(self) -> VectorClock:
        """What the host knows to be complete."""
        return self._last[self._numbers[HOST]]

    def tick(self, thread: Hashable, after: Iterable[VectorClock] = ()) -> VectorClock:
        """The clock of the next command of `thread`, which waits for the commands of `after`."""
        number = self._numbers[thread]
        clock: VectorClock = np.maximum.reduce([self._last[number], self.host, *after])
        self.latest[number] += 1
        clock[number] = self.latest[number]
        self._last[number] = clock
        return clock

    def saw(self, clock: VectorClock) -> None:
        """The host has seen that the command of `clock` is complete."""
        self._last[self._numbers[HOST]] = np.maximum(self.host, clock)

    def saw_all(self) -> None:
        """... that everything is."""
        self.saw(self.latest)


class Traced:
    """An event that tells the clocks when the host sees that it is complete."""

    def __init__(
        self,
        event: Event,
        clock: VectorClock,
        clocks: Clocks,
        then: Callable[[], None] | None = None,
    ) -> None:
        self.event, self.clock = event, clock
        self._clocks, self._then = clocks, then

    @property
    def command_execution_status(self) -> int:
        status = self.event.command_execution_status
        if status == COMPLETE:
            self._seen()
        return status

    @property
    def profile(self) -> Profile:
        return self.event.profile

    def wait(self) -> None:
        """Block until the command is complete."""
        self.event.wait()
        self._seen()

    def _seen(self) -> None:
        self._clocks.saw(self.clock)
        then, self._then = self._then, None
        if then is not None:
            then()


def untraced(events: Sequence[Event] | None) -> tuple[list[Any] | None, list[VectorClock]]:
    """The events themselves, for the device, and their clocks."""
    traced = [event for event in events or () if isinstance(event, Traced)]
    assert len(traced) == len(events or ()), "a checked engine has traced events only"
    return [one.event for one in traced] or None, [one.clock for one in traced]


def traced(
    clocks: Clocks, thread: Hashable, real: Command, wait_for: Sequence[Event] | None = None
) -> Traced:
    """The event of a command of `thread`, which waits for these events."""
    events, after = untraced(wait_for)
    clock = clocks.tick(thread, after)
    return Traced(real(events), clock, clocks)
