# SPDX-License-Identifier: MIT
"""What lazy devices have queued, and what has happened to it (lazy_executor.py)."""
from __future__ import annotations

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mpi_jobs import HANGS_S

from controllers.device.event import COMPLETE, Event, Profile

if TYPE_CHECKING:
    from lazy_executor import LazyExecutor

UNDER_WAY = 1
PATIENCE = 50   # polls that find nothing to do but what is held


class World:
    """All lazy devices of a process: what they have queued, and what has happened to it.

    With `eagerness` p, asking for the status of any event lets devices run on with probability
    p.  A `held` device does nothing until there is nothing else to do, and no device begins with
    what it was given last until it is flushed.  Threads may ask and wait, one at a time.
    """

    def __init__(self, seed: int = 0, eagerness: float = 0.3) -> None:
        self.queues: list[deque[LazyEvent]] = []
        self.done: list[LazyEvent] = []
        self.polls = self.waits = 0
        self.dropped_early: list[str] = []  # events that nobody held any more while under way
        self.held: LazyExecutor | None = None
        self.on_release: Callable[[], None] = lambda: None
        self._n_idle = 0
        self._rng = random.Random(seed)
        self._eagerness = eagerness
        self._lock = threading.RLock()

    def polled(self) -> None:
        """Somebody asks for the status of an event: time passes."""
        with self._lock:
            self.polls += 1
            if self._rng.random() < self._eagerness:
                self._run_one(patience=PATIENCE)

    def _run_one(self, patience: int = 0) -> bool:
        """Run the next command of one queue; whether there was one that could."""
        ready = [q for q in self.queues if q and q[0].ready and q[0].executor.flushed]
        free = [q for q in ready if q[0].executor is not self.held]
        self._n_idle = 0 if free else self._n_idle + 1
        if ready and self._n_idle > patience:
            self.held = None
            self.on_release()
            free = ready
        if free:
            event = self._rng.choice(free).popleft()
            event.run()
            self.done.append(event)
        return bool(free)

    def finish(self, event: LazyEvent) -> None:
        """Run commands until `event` is complete."""
        in_main = threading.current_thread() is threading.main_thread()
        end = time.monotonic() + (0 if in_main else HANGS_S)    # others may be about to flush
        while not event.complete:
            with self._lock:    # another thread may have run it while this one waited for the lock
                runs = event.complete or self._run_one()
            assert runs or time.monotonic() < end, f"{event.what} waits for what never happens"
            time.sleep(0 if runs else 0.001)


class LazyEvent:
    """A command that is queued; it runs when the world says so."""

    def __init__(
        self, executor: LazyExecutor, what: str, work: Callable[[], None], wait_for: Sequence[Event]
    ) -> None:
        self.executor, self.what, self.complete = executor, what, False
        self._work: Callable[[], None] | None = work
        self._wait_for = wait_for
        self.timed = executor.timed

    @property
    def ready(self) -> bool:
        """Whether all that it waits for, before it in its queue or elsewhere, is complete."""
        return all(isinstance(e, LazyEvent) and e.complete for e in self._wait_for)

    def run(self) -> None:
        assert self._work is not None, "a command runs once"
        self._work()
        self._work, self._wait_for, self.complete = None, (), True

    @property
    def command_execution_status(self) -> int:
        self.executor.world.polled()
        return COMPLETE if self.complete else UNDER_WAY

    def time(self, moment: int) -> int:
        assert self.complete, "only what is complete has been timed"
        return moment

    def wait(self) -> None:
        self.executor.world.waits += 1
        self.executor.world.finish(self)


class Handle:
    """What the runtime gets of an event: tells the world when it is dropped under way.

    PyOpenCL's events of host transfers block there, with the interpreter's lock in hand.
    """

    def __init__(self, event: LazyEvent) -> None:
        self.event = event

    def __del__(self) -> None:
        if not self.event.complete:
            self.event.executor.world.dropped_early.append(self.event.what)

    @property
    def command_execution_status(self) -> int:
        return self.event.command_execution_status

    @property
    def profile(self) -> Profile:
        assert self.event.timed, "only what was enqueued for it is timed"
        return self     # as PyOpenCL's, it can be had at once and holds the event

    @property
    def start(self) -> int:
        return self.event.time(0)

    @property
    def end(self) -> int:
        return self.event.time(1)

    def wait(self) -> None:
        self.event.wait()
