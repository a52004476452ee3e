# SPDX-License-Identifier: MIT
"""Work that a thread does when what it depends on is done: host tasks, and commands after them.

OpenCL's own means, a user event in front of a queue, stops some drivers inside an enqueue
(docs/decisions/0010-commands-after-host-tasks.md).  So a command that depends on such work is
enqueued by a thread too, and has a `Later` as its event until then.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_all

from controllers.event import Event, Profile

QUEUED, FAILED = 3, -1  # CL_QUEUED, and any negative number


class Later:
    """The event of work that a `Worker` will do, and of the command that it enqueues then."""

    def __init__(self, future: Future[Event]) -> None:
        self._future = future

    @property
    def command_execution_status(self) -> int:
        if not self._future.done():
            return QUEUED
        return FAILED if self._future.exception() else self.now().command_execution_status

    @property
    def profile(self) -> Profile:
        return self.now().profile

    @property
    def pending(self) -> bool:
        """Whether the work has still to be done."""
        return not self._future.done()

    def now(self) -> Event:
        """The event of what has been enqueued; waits for that, and raises what the work raised."""
        return self._future.result()

    def wait(self) -> None:
        """Block until all is done; raises what the work raised."""
        self.now().wait()


class Worker:
    """A thread that does its work in the order in which it is submitted.

    What is submitted depends on what was submitted before, here or elsewhere, and on nothing else:
    so there is no order of threads in which they wait for each other for ever.
    """

    def __init__(self, name: str) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._unfinished: list[Future[Event]] = []

    def submit(self, work: Callable[[], Event]) -> Later:
        """`work` returns its event; returns at once."""
        self._unfinished = [f for f in self._unfinished if not f.done() or f.exception()]
        future = self._pool.submit(work)
        self._unfinished.append(future)
        return Later(future)

    def finish(self) -> BaseException | None:
        """Block until all work is done; the first error since the last call."""
        wait_for_all(self._unfinished)
        errors = [error for future in self._unfinished if (error := future.exception())]
        self._unfinished = []
        return errors[0] if errors else None

    def close(self) -> None:
        """Block until all work is done, and end the thread."""
        self._pool.shutdown()


def enqueued(events: Sequence[Event]) -> list[Event]:
    """The same events, those of enqueued commands in place of `Later`s; waits for these."""
    return [event.now() if isinstance(event, Later) else event for event in events]
