# SPDX-License-Identifier: MIT
"""Work that a thread does when what it depends on is done: host tasks, and commands after them.

OpenCL's own means, a user event in front of a queue, stops some drivers inside an enqueue
(docs/decisions/0010-commands-after-host-tasks.md).  So a command that depends on such work is
enqueued by a thread too, and has a `Later` as its event until then.
"""
from __future__ import annotations

import atexit
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures import wait as wait_for_all
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TypeAlias

from controllers.device.event import Event, Profile
from controllers.process.waiter import PATIENCE_S

QUEUED, FAILED = 3, -1  # CL_QUEUED, and any negative number

_Work: TypeAlias = "tuple[Future[Event], Callable[[], Event]]"


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
        if self.pending:
            check_outside("a wait for work that has not been done")
        return self._future.result()

    def wait(self) -> None:
        """Block until all is done; raises what the work raised."""
        self.now().wait()


class Worker:
    """A thread that does its work in the order in which it is submitted.

    What is submitted depends on what was submitted before, here or elsewhere, and on nothing else:
    so there is no order of threads in which they wait for each other for ever.  At its end the
    program waits for the work; after an error not longer than `PATIENCE_S`.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[_Work | None] | None = None
        self._unfinished: list[Future[Event]] = []

    def submit(self, work: Callable[[], Event]) -> Later:
        """`work` returns its event; returns at once."""
        self._unfinished = [f for f in self._unfinished if not f.done() or f.exception()]
        future: Future[Event] = Future()
        if self._work is None:
            self._work = SimpleQueue()
            _Thread(target=_serve, args=(self._work,), name=self._name, daemon=True).start()
            weakref.finalize(self, self._work.put, None).atexit = False
            atexit.register(_finish_at_exit, weakref.ref(self))
        self._unfinished.append(future)
        self._work.put((future, work))
        return Later(future)

    def finish(self) -> BaseException | None:
        """Block until all work is done; the first error since the last call."""
        wait_for_all(self._unfinished)
        errors = [error for future in self._unfinished if (error := future.exception())]
        self._unfinished = []
        return errors[0] if errors else None

    def close(self, patience_s: float | None = None) -> bool:
        """Block until all work is done, and end the thread; False if it takes longer.

        What has not begun by then is never done.
        """
        _, late = wait_for_all(self._unfinished, patience_s)
        for future in late:
            future.cancel()
        if self._work is not None:
            self._work.put(None)
            self._work = None
        return not late


class _Thread(threading.Thread):
    """A worker's; `inside` while it calls a function of the user."""

    inside = False


@contextmanager
def inside_task() -> Iterator[None]:
    """This thread, a worker's, calls a function of the user in here."""
    thread = threading.current_thread()
    assert isinstance(thread, _Thread), "tasks are called by workers"
    thread.inside = True
    try:
        yield
    finally:
        thread.inside = False


def check_outside(what: str) -> None:
    """RuntimeError if a host task calls this: `what` may wait for the task itself, for ever."""
    thread = threading.current_thread()
    if isinstance(thread, _Thread) and thread.inside:
        raise RuntimeError(
            f"{what} is not possible within a host task, which it may have to wait for; give the "
            f"tile to host_task as reading(tile), writing(tile) or updating(tile), and use the "
            f"array that the function gets"
        )


def enqueued(events: Sequence[Event]) -> list[Event]:
    """The same events, those of enqueued commands in place of `Later`s; waits for these."""
    return [event.now() if isinstance(event, Later) else event for event in events]


def _serve(work: SimpleQueue[_Work | None]) -> None:
    while True:
        item = work.get()
        if item is None:
            return
        future, function = item
        if future.set_running_or_notify_cancel():
            try:
                future.set_result(function())
            except BaseException as error:
                future.set_exception(error)
        del item, future, function  # or they keep tiles until the next one comes


def _finish_at_exit(reference: weakref.ref[Worker]) -> None:
    worker = reference()
    if worker is not None:
        failed = getattr(sys, "last_value", None) is not None
        worker.close(PATIENCE_S if failed else None)
