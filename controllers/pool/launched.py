# SPDX-License-Identifier: MIT
"""Launches of kernels, and one that is under way, whoever waits for its end."""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from controllers.controller.commands import Commands
from controllers.device.event import COMPLETE, Command, Event

# A driver that polls keeps a core of the host busy, of which kernels there compute the slower: so
# most of the time that is foreseen is slept, the rest and what is beyond in naps of such parts.
SLEPT = 0.95
NAP = 1 / 400           # of the time that it has taken
SOON, SOON_S = 0.1, 1e-3    # of what is foreseen, and at least, is left when the end comes soon
SHORTEST_NAP_S = 2e-4   # else the driver waits


class Launch(Protocol):
    """What is bound to memory, to be launched again and again, one after another."""

    command: Command
    has_rest: bool      # something is left to do when it has ended

    def tell(self, numbers: Mapping[str, Any]) -> None:
        """The other arguments of the next one."""
        ...

    def end(self) -> None:
        """What is left to do when it has ended."""
        ...


class KernelLaunch(Launch):
    """A launch with all its arguments."""

    has_rest = False

    def __init__(self, command: Command) -> None:
        self.command = command

    def tell(self, numbers: Mapping[str, Any]) -> None:
        """It has them."""

    def end(self) -> None:
        """Nothing."""


class Launched:
    """Enqueues a launch at once; an error of that is raised by who waits."""

    def __init__(self, commands: Commands, launch: Launch) -> None:
        self.start = time.perf_counter_ns()
        self._launch = launch
        self._event: Event | None = None
        self._error: Exception | None = None
        try:
            self._event = commands.issue(launch.command, ())
        except Exception as error:
            self._error = error

    def ends_within(self, most_s: float) -> bool:
        """Look again and again whether it has ended, or failed, for so many seconds."""
        until_s = time.perf_counter() + most_s
        while self._event is not None and self._event.command_execution_status > COMPLETE:
            if time.perf_counter() >= until_s:
                return False
        return True

    def wait(self, foreseen_s: float, *, naps: bool, soon: Callable[[], None] | None) -> float:
        """Block until it has ended: its seconds.

        foreseen_s: of it, probably.  naps: who waits is to leave the core to others.  soon: called
        shortly before the end, if that is foreseen, to enqueue another one; but not where something
        is left to do at the end, which that one would be before.
        """
        if self._event is None:
            assert self._error is not None, "either an event or an error"
            raise self._error
        if soon is not None and not self._launch.has_rest:
            self._nap(self._event, foreseen_s - max(SOON * foreseen_s, SOON_S))
            soon()
        if naps:
            self._nap(self._event, SLEPT * foreseen_s, NAP)
        self._event.wait()
        self._launch.end()
        return (time.perf_counter_ns() - self.start) / 1e9

    def _nap(self, event: Event, until_s: float, part: float = 0.0) -> None:
        """Sleep until then, as long as it has not ended, as far as that is worth a nap.

        Then naps are such a part of what is gone, if any.  No nap is much longer than what is gone,
        so that an end that comes long before is noticed, too.
        """
        while event.command_execution_status > COMPLETE:
            gone_s = (time.perf_counter_ns() - self.start) / 1e9
            nap_s = min((until_s - gone_s) / 2, gone_s + SHORTEST_NAP_S)
            nap_s = max(nap_s, gone_s * part)
            if nap_s < SHORTEST_NAP_S:
                return
            time.sleep(nap_s)
