# SPDX-License-Identifier: MIT
"""Launches of kernels, and one that is under way, whoever waits for its end."""
from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from controllers.controller.commands import Commands
from controllers.device.event import Command, Event


class Launch(Protocol):
    """What is bound to memory, to be launched again and again, one after another."""

    command: Command

    def tell(self, numbers: Mapping[str, Any]) -> None:
        """The other arguments of the next one."""
        ...

    def end(self) -> None:
        """What is left to do when it has ended."""
        ...


class KernelLaunch(Launch):
    """A launch with all its arguments."""

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

    def wait(self) -> float:
        """Block until it has ended: its seconds."""
        if self._event is None:
            assert self._error is not None, "either an event or an error"
            raise self._error
        self._event.wait()
        self._launch.end()
        return (time.perf_counter_ns() - self.start) / 1e9
