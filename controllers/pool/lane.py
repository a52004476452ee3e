# SPDX-License-Identifier: MIT
"""A lane: the jobs that are ready for one device, or for the cores of the host."""
from __future__ import annotations

import heapq
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from queue import SimpleQueue
from statistics import median
from typing import Any, Protocol, TypeAlias

from controllers.device.device import Device
from controllers.device.naming import selector_of
from controllers.pool.newest import HOST_MEMORY

Job: TypeAlias = Any    # of controllers.pool.job, which knows of lanes
Bell: TypeAlias = "SimpleQueue[bool]"   # True: there may be something to do; False: it is over

MOST_TURNS = 64     # of jobs, by which the next ones are foreseen


class Side(Protocol):
    """What does the jobs of a lane."""

    def begin(self, job: Job) -> bool:
        """Start it, if nothing has to be waited for; whether it was."""
        ...

    def run(self, job: Job, soon: Callable[[], None] | None) -> tuple[Any, float]:
        """Do it: what it returns, and how many seconds it took without transfers.

        soon: called shortly before it ends, where that is foreseen.
        """
        ...

    def begin_beside(self, job: Job, *, in_turn: bool) -> bool:
        """Start it while another one is done, after that if `in_turn`, if it can; whether it was.
        """
        ...

    def close(self) -> None:
        """Nothing is done there any more."""
        ...


@dataclass(eq=False)
class Lane:
    """Ready jobs, the most urgent one first; for who holds the pool's lock.

    device: None of the host.  cores: of the host that each of its kernels takes.  n_threads: jobs
    that are done at once; n_started: threads that there are for them.  memory: where its jobs
    compute.  unit: what the arbiter calls its device; "" where that is made of cores.  begun: what
    was started by who submitted it, for a thread to end, or who waits for it, or by that thread
    while it waits.  ended: when its last job did, in ns.  bells: of threads with nothing to do.
    overheads: of the newest jobs, in s.
    """

    number: int
    name: str
    device: Device | None
    side: Side
    n_threads: int = 1
    n_started: int = 0
    cores: int = 0
    memory: int = HOST_MEMORY
    unit: str = ""
    ready: list[tuple[float, int, Job]] = field(default_factory=list)
    begun: Job | None = None
    ended: int = 0
    running: dict[Job, float] = field(default_factory=dict)     # since when, in seconds
    overheads: deque[float] = field(default_factory=lambda: deque(maxlen=MOST_TURNS))
    bells: list[Bell] = field(default_factory=list)

    @cached_property
    def selector(self) -> str:
        """What names its device, and no other one."""
        assert self.device is not None, "the lane of a device"
        return selector_of(self.device)

    @property
    def overhead_s(self) -> float:
        """What a job takes a thread of it beside what it does and moves, lately."""
        return median(self.overheads) if self.overheads else 0.0

    def push(self, job: Job) -> None:
        """`job` is ready."""
        heapq.heappush(self.ready, (-job.rank_s, job.number, job))

    def first(self) -> Job | None:
        """The most urgent one, or its next piece."""
        if not self.ready:
            return None
        job = self.ready[0][2]
        return job if job.pieces is None else job.pieces.first()

    @property
    def last(self) -> Job:
        """The least urgent one of those that there are."""
        return max(self.ready)[2]

    def take(self, job: Job) -> None:
        """Somebody does it, which is `first`, `last` or a piece of that."""
        if job.whole is not None:
            job.whole.pieces.take(job)
            if job.whole.n_left:
                return
        self.remove(job.whole or job)

    def remove(self, job: Job) -> None:
        """Nobody begins it, or a piece of it, any more."""
        if self.ready and self.ready[0][2] is job:
            heapq.heappop(self.ready)
            return
        self.ready = [one for one in self.ready if one[2] is not job]
        heapq.heapify(self.ready)

    def ring(self) -> bool:
        """Wake one thread that has nothing to do; False where there is none."""
        if self.bells:
            self.bells.pop().put(True)
            return True
        return False

    def wait_s(self) -> float:
        """Until it is done; what takes longer than foreseen takes twice that."""
        now_s = time.perf_counter()
        waits_s: float = sum(one[2].left_s for one in self.ready)
        for one, since_s in self.running.items():
            gone_s = now_s - since_s
            waits_s += one.seconds - gone_s if gone_s < one.seconds else gone_s
        return waits_s / self.n_threads

    def left_s(self) -> float:
        """Until it is done, as fast as it is with what it does now, which is about to end."""
        now_s, left_s, slower = time.perf_counter(), 0.0, 1.0
        for one, since_s in self.running.items():
            gone_s = now_s - since_s
            left_s += max(0.0, one.seconds - gone_s)
            slower = max(slower, gone_s / one.seconds if one.seconds else 1.0)
        ready_s: float = sum(one[2].left_s for one in self.ready)
        return (left_s + slower * ready_s) / self.n_threads
