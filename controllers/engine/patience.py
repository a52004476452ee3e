# SPDX-License-Identifier: MIT
"""How the thread that drives an engine waits: for one of several things, or for all of them."""
from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Sequence

from controllers.device.event import Enqueued
from controllers.engine.task import Awaited
from controllers.process.waiter import FirstOf, Waiter

# How long to poll before giving the core away for longer.  A CPU device needs the cores more than
# we do; beside devices of their own, a late look costs more than a busy core.
SPIN_BESIDE_CPU_S = 200e-6
SPIN_S = 20e-3
SLEEP_S = 50e-6
LOOK_S = 1e-3     # between two looks at messages that nobody waits for yet


class Patience:
    """Of an engine; `beside_cpu`: a device computes on the cores that would poll."""

    def __init__(self, beside_cpu: bool) -> None:
        self._waiter = Waiter()
        self._first_of = FirstOf()
        self._beside_cpu = beside_cpu
        self._spin_s = SPIN_BESIDE_CPU_S if beside_cpu else SPIN_S
        # asleep a thread waits for a device's only command, which is late by as long as a sweep
        self._awake_s = 0.0 if beside_cpu else SPIN_S

    def until_all(self, tasks: Iterable[Awaited]) -> None:
        """Wait for tasks that have been started; devices go on meanwhile."""
        pending: list[Awaited] = [task for task in tasks if not task.complete()]
        while pending:
            self.until_any(pending)
            pending = [task for task in pending if not task.complete()]

    def until_any(self, blockers: Sequence[Awaited], messages: Sequence[Awaited] = ()) -> None:
        """Return when one of `blockers` is complete, at once if there is none.

        Commands of devices are waited for, beside devices of their own after a while; messages can
        only be asked after, for a while without pause.  `messages` are asked after on the way.
        """
        if not blockers:
            return
        start, event = time.perf_counter(), blockers[0].event
        is_one = len(set(map(id, blockers))) == 1 and not messages
        if is_one and blockers[0].blocks and event is not None:
            while time.perf_counter() - start < self._awake_s:
                if blockers[0].complete():
                    return
                os.sched_yield()
            Enqueued(event, self._waiter).wait()
            blockers[0].complete()
            return
        self._look_until_any(blockers, messages, start)
        if self._beside_cpu:    # as long as the last one; a core that polls computes nothing
            short = time.perf_counter() - start < SPIN_BESIDE_CPU_S
            self._spin_s = SPIN_BESIDE_CPU_S if short else 0.0

    def _look_until_any(
        self, blockers: Sequence[Awaited], messages: Sequence[Awaited], start: float
    ) -> None:
        asleep = all(blocker.blocks for blocker in blockers)
        most_s = LOOK_S if messages else math.inf
        while not any(blocker.complete() for blocker in blockers):
            for message in messages:
                message.complete()
            if time.perf_counter() - start < self._spin_s:
                os.sched_yield()
            elif asleep:
                self._first_of.wait([b.event for b in blockers if b.event is not None], most_s)
            else:
                time.sleep(SLEEP_S)
