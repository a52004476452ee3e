# SPDX-License-Identifier: MIT
"""Work of the host as commands: done by who starts it, or by a thread while that one goes on."""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

from controllers.device.event import COMPLETE, UNDER_WAY, Command, Event, HostEvent, Noticed


def by_host(work: Callable[[], None]) -> Command:
    """The command of work that is done when it returns."""

    def command(wait_for: Sequence[Event] | None = None) -> Event:
        start = time.perf_counter_ns()
        work()
        return HostEvent(start, time.perf_counter_ns())

    return command


class Assistant:
    """A thread that does one thing after the other; it is made when it is first needed."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="assistant")

    def command(self, work: Callable[[], None]) -> Command:
        """The command of `work`, which the thread does."""
        return _Assisted(self._thread, work)


class _Assisted(Noticed):
    """The command, and the event of its end; what `work` raises, who asks after it raises."""

    def __init__(self, thread: ThreadPoolExecutor, work: Callable[[], None]) -> None:
        self._thread, self._work = thread, work
        self._future: Future[None] | None = None

    def __call__(self, wait_for: Sequence[Event] | None = None) -> Event:
        self._begin = time.perf_counter_ns()
        self._future = self._thread.submit(self._work)
        return self

    @property
    def command_execution_status(self) -> int:
        if self._future is None:
            return COMPLETE
        if not self._future.done():
            return UNDER_WAY
        future, self._future = self._future, None
        self._note_end()
        future.result()
        return COMPLETE

