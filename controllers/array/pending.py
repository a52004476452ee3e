# SPDX-License-Identifier: MIT
"""Commands of assignments that are under way: whoever looks at tiles waits for them first."""
from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence

from controllers.device.event import Event, is_complete, wait_for_all
from controllers.engine.patience import SPIN_BESIDE_CPU_S
from controllers.executor.executor import Executor

MOST = 128      # commands; devices are far behind then


class Pending:
    """Of some devices, whose queues keep the order of commands."""

    def __init__(self, executors: Iterable[Executor]) -> None:
        self._executors = list(dict.fromkeys(executors))
        self._events: list[Event] = []

    def __del__(self) -> None:      # they use memory that is freed next
        if self._events:    # where Python ends, functions may be gone by then
            wait_for_all(self._events)

    def add(self, events: Sequence[Event]) -> None:
        """These have been started."""
        self._events += events
        if len(self._events) > MOST:
            self.finish()

    def finish(self) -> None:
        """Wait until all are complete, as most are at once; CommandFailed where one has failed."""
        if not self._events:
            return
        events, self._events = self._events, []
        end = time.perf_counter() + SPIN_BESIDE_CPU_S
        while time.perf_counter() < end:
            if all(map(is_complete, events)):
                return
            os.sched_yield()
        for executor in self._executors:
            executor.wait(keep=events)
        all(map(is_complete, events))
