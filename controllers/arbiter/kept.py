# SPDX-License-Identifier: MIT
"""Leases that are kept from one task to the next: asking takes longer than many tasks do."""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from controllers.arbiter.arbiter import Arbiter
from controllers.arbiter.lease import Lease
from controllers.arbiter.want import Way

SLICE_S = 0.05  # that a process has units for, if it has tasks for them, though others wait
LOOK_S = 1e-3   # from one look at whether others wait to the next one


class Kept:
    """Leases of an arbiter for the tasks of one process; any thread may use it.

    What a task has released lies idle for the next one that wants the same, unless others wait and
    it was held for a while, or it is less than the most.  Nothing lies idle while this process
    waits itself, so that there is no deadlock; who has no tasks for now calls `rest`.
    """

    def __init__(self, arbiter: Arbiter) -> None:
        self.arbiter = arbiter
        self._idle: dict[tuple[Way, ...], list[Lease]] = {}
        self._n_asking = 0      # threads that are about to wait
        self._waited, self._look_s = False, 0.0     # whether others wait, and when to look again
        self._lock = threading.Lock()

    @contextmanager
    def held(self, ways: tuple[Way, ...], what: str = "") -> Iterator[Lease]:
        """A lease for the block, as `take` gives it."""
        lease = self.take(ways, what)
        try:
            yield lease
        finally:
            self.put(ways, lease)

    def take(
        self, ways: tuple[Way, ...], what: str = "", timeout_s: float | None = None
    ) -> Lease:
        """A lease as `Arbiter.acquire` gives it: new, or one that lies idle."""
        return self.take_idle(ways) or self._asked(ways, what, timeout_s)

    def take_idle(self, ways: tuple[Way, ...]) -> Lease | None:
        """One that lies idle; None where there is none, or others have to have their turn."""
        with self._lock:
            idle = self._idle.get(ways)
            return idle.pop() if idle and self._may_stay(idle[-1]) else None

    def put(self, ways: tuple[Way, ...], lease: Lease) -> None:
        """Release what `take` gave for these ways, or keep it for the next task."""
        if not self._put(ways, lease):
            lease.release()
            self.rest()

    def rest(self) -> None:
        """Give back what lies idle."""
        with self._lock:
            idle = [lease for leases in self._idle.values() for lease in leases]
            self._idle.clear()
        for lease in idle:
            lease.release()

    def _asked(self, ways: tuple[Way, ...], what: str, timeout_s: float | None) -> Lease:
        with self._lock:
            self._n_asking += 1
        try:
            self.rest()
            return self.arbiter.acquire(ways, timeout_s, what)
        finally:
            with self._lock:
                self._n_asking -= 1

    def _may_stay(self, lease: Lease) -> bool:
        now_s = time.monotonic()
        if now_s - lease.since < SLICE_S:
            return True
        if now_s >= self._look_s:   # it takes longer than all else here
            self._waited, self._look_s = self.arbiter.is_waited(), now_s + LOOK_S
        return not self._waited

    def _put(self, ways: tuple[Way, ...], lease: Lease) -> bool:
        """Keep a lease for the next task; False where others want it, or there may be a better."""
        is_most = lease.way == 0 and all(
            len(units) == min(want.most, len(want.among))
            for want, units in zip(ways[0], lease.units)
        )
        with self._lock:
            if not is_most or self._n_asking or not self._may_stay(lease):
                return False
            self._idle.setdefault(ways, []).append(lease)
            return True
