# SPDX-License-Identifier: MIT
"""A lane: the jobs that are ready for one device, or for the cores of the host."""
from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, Protocol, TypeAlias

from controllers.device.device import Device
from controllers.pool.newest import HOST_MEMORY

Job: TypeAlias = Any    # of controllers.pool.job, which knows of lanes
Bell: TypeAlias = "SimpleQueue[bool]"   # True: there may be something to do; False: it is over


class Side(Protocol):
    """What does the jobs of a lane."""

    def run(self, job: Job) -> tuple[Any, float]:
        """Do it: what it returns, and how many seconds it took without transfers."""
        ...


@dataclass(eq=False)
class Lane:
    """Ready jobs, the most urgent one first; for who holds the pool's lock.

    device: None of the host.  cores: of the host that each of its kernels takes.  n_threads: jobs
    that are done at once.  memory: where its jobs compute.  bells: of threads with nothing to do.
    """

    number: int
    name: str
    device: Device | None
    side: Side
    n_threads: int = 1
    cores: int = 0
    memory: int = HOST_MEMORY
    ready: list[tuple[float, int, Job]] = field(default_factory=list)
    running: dict[Job, float] = field(default_factory=dict)     # since when, in seconds
    bells: list[Bell] = field(default_factory=list)

    def push(self, job: Job) -> None:
        """`job` is ready."""
        heapq.heappush(self.ready, (-job.rank_s, job.number, job))

    def pop(self) -> Job | None:
        """The most urgent one."""
        return heapq.heappop(self.ready)[2] if self.ready else None

    def remove(self, job: Job) -> None:
        """Another lane has it, or nobody."""
        self.ready = [one for one in self.ready if one[2] is not job]
        heapq.heapify(self.ready)

    def ring(self) -> bool:
        """Wake one thread that has nothing to do; False where there is none."""
        if self.bells:
            self.bells.pop().put(True)
            return True
        return False
