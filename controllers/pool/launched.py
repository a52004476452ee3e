# SPDX-License-Identifier: MIT
"""A kernel that was enqueued, until somebody waits for its end."""
from __future__ import annotations

import time

from controllers.controller.commands import Commands
from controllers.device.event import Command, Event


class Launched:
    """Enqueues a command at once; an error of that is raised by who waits."""

    def __init__(self, commands: Commands, command: Command) -> None:
        self.start = time.perf_counter_ns()
        self._event: Event | None = None
        self._error: Exception | None = None
        try:
            self._event = commands.issue(command, ())
        except Exception as error:
            self._error = error

    def wait(self) -> float:
        """Block until it has ended: its seconds."""
        if self._event is None:
            assert self._error is not None, "either an event or an error"
            raise self._error
        self._event.wait()
        return (time.perf_counter_ns() - self.start) / 1e9
