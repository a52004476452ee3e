# SPDX-License-Identifier: MIT
"""What a command returns: an event, in OpenCL's terms, also where no OpenCL is."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeAlias

from controllers.process.waiter import Waiter

COMPLETE = 0    # CL_COMPLETE; what is larger is under way, what is negative has failed
UNDER_WAY = 1


class Profile(Protocol):
    """When a command ran, in nanoseconds of its device's clock."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


class Event(Protocol):
    """The part of `pyopencl.Event` that is used."""

    @property
    def command_execution_status(self) -> int: ...
    @property
    def profile(self) -> Profile: ...
    def wait(self) -> object: ...


# Enqueues one command with all its arguments bound; it starts after the events it is given.
Command: TypeAlias = Callable[[Sequence[Event] | None], Event]


class HostEvent:
    """The event of work that the host has done already."""

    command_execution_status = COMPLETE

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end

    @property
    def profile(self) -> Profile:
        return self

    def wait(self) -> None:
        """Return at once."""


class Noticed:
    """The event of what the host has to ask about, and that ends when this is noticed.

    A subclass says so by `command_execution_status`, and calls `_note_end` there; `_begin` is when
    it was started last.
    """

    _begin = 0
    _noted: HostEvent | None = None

    @property
    def command_execution_status(self) -> int:
        raise NotImplementedError

    @property
    def profile(self) -> Profile:
        """From its start to when the end is noticed; each start has its own."""
        self._noted = HostEvent(self._begin, 0)
        return self._noted

    def wait(self) -> None:
        """Block until it is complete."""
        while self.command_execution_status > COMPLETE:
            pass

    def _note_end(self) -> None:
        if self._noted is not None:
            self._noted.end = time.perf_counter_ns()
            self._noted = None


class Enqueued:
    """The event of a command of a device, with a `wait` that Ctrl-C ends."""

    def __init__(self, event: Event, waiter: Waiter) -> None:
        self.event = event
        self._waiter = waiter

    @property
    def command_execution_status(self) -> int:
        return self.event.command_execution_status

    @property
    def profile(self) -> Profile:
        return self.event.profile

    def wait(self) -> None:
        """Block until it is complete."""
        if self.event.command_execution_status > COMPLETE:
            self._waiter.wait(self.event.wait)
        else:
            self.event.wait()


class AllOf:
    """Several events as one; complete at once where there is none."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = tuple(events)

    @property
    def command_execution_status(self) -> int:
        states = [COMPLETE, *(event.command_execution_status for event in self._events)]
        return min(states) if min(states) < COMPLETE else max(states)

    @property
    def start(self) -> int:
        return min((event.profile.start for event in self._events), default=0)

    @property
    def end(self) -> int:
        return max((event.profile.end for event in self._events), default=0)

    @property
    def profile(self) -> Profile:
        return self

    def wait(self) -> None:
        """Block until all are complete."""
        wait_for_all(self._events)


def in_order(commands: Sequence[Command]) -> Command:
    """Several commands of one in-order queue as one: the last one's event is that of all.

    Those of the others are kept until it is given anew: PyOpenCL's events of copies with host
    memory wait as they are dropped, and whoever enqueues would wait with them.
    """
    if len(commands) == 1:
        return commands[0]
    first, others, kept = commands[0], commands[1:], list[Event]()

    def command(wait_for: Sequence[Event] | None = None) -> Event:
        kept.clear()
        event = first(wait_for)
        for following in others:
            kept.append(event)
            event = following(None)
        return event

    return command


class CommandFailed(RuntimeError):
    """A device reports that a command did not complete."""


def is_complete(event: Event) -> bool:
    """Whether the command has run; raises `CommandFailed` where it never will."""
    status = event.command_execution_status
    if status < 0:
        raise CommandFailed(f"a device command ended with OpenCL error {status}")
    return status == COMPLETE


def wait_for_all(events: Iterable[Event]) -> None:
    """Block until all are complete."""
    for event in events:
        event.wait()


def settle_event(event: Event) -> None:
    """Block until `event` is over, whether it failed or not."""
    try:
        event.wait()
    except Exception:  # reported by whoever made it
        pass
