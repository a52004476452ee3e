# SPDX-License-Identifier: MIT
"""What one controller has been told to do: commands of its device, and host tasks beside them."""
from __future__ import annotations

from collections.abc import Callable, Sequence

from controllers.controller.later import Later, Worker, check_outside, enqueued
from controllers.device.event import Command, Enqueued, Event
from controllers.executor.opencl import OpenCLExecutor


class Commands:
    """Issues the commands and host tasks of one device, and waits for them.

    A command that depends on a host task is enqueued by a thread, when the task is done.
    """

    def __init__(self, executor: OpenCLExecutor) -> None:
        self.executor = executor
        self.closed = False
        self._tasks = Worker("host tasks")
        self._late = Worker("commands after host tasks")

    def check(self, what: str = "a verb of a controller") -> None:
        """RuntimeError where `what` is asked for within a host task, or at the end."""
        check_outside(what)
        if self.closed:
            name = self.executor.device.name
            raise RuntimeError(f"the controller of {name!r} is closed; make a new one")

    def issue(self, command: Command, after: Sequence[Event]) -> Event:
        """Enqueue `command`, at once or when the host tasks that it depends on are done."""
        if after and any(isinstance(event, Later) and event.pending for event in after):
            return self._late.submit(lambda: self._enqueue(command, after))
        return self._enqueue(command, after)

    def task(self, work: Callable[[], Event]) -> Event:
        """Let the thread of host tasks do `work`, after all that it has been given before."""
        return self._tasks.submit(work)

    def finish(self) -> BaseException | None:
        """Block until everything so far is done; the first error of host tasks and after them."""
        errors = [self._tasks.finish(), self._late.finish()]
        self.executor.wait()
        return next((error for error in errors if error is not None), None)

    def close(self, patience_s: float | None, keep: object) -> bool:
        """End the threads; False where something is not over after `patience_s`.

        `keep` is what that may still use.
        """
        done = self._tasks.close(patience_s) and self._late.close(patience_s)
        return done and self.executor.wait(patience_s, keep=keep)

    def _enqueue(self, command: Command, after: Sequence[Event]) -> Event:
        wait_for: list[Event] = []
        if after:
            wait_for = [one.event for one in enqueued(after) if isinstance(one, Enqueued)]
        event = Enqueued(command(wait_for or None), self.executor.waiter)
        self.executor.flush()   # the other queue, or a host task, may wait for it
        return event
