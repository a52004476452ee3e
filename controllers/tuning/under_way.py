# SPDX-License-Identifier: MIT
"""Tuning while a run is under way: its first steps try configurations, and count like all others.

Every configuration gives the same bits, so no step is lost.  Steps are run a few at a time, each
time with another candidate; the ranks, whose devices and candidates may differ, agree on how many
such turns there are and how many steps each takes.
"""
from __future__ import annotations

import math
import time
from collections import deque

from controllers.check import Setting
from controllers.engine import Engine, Progress
from controllers.event import Profile
from controllers.plan import Operation
from controllers.registry import SPECIALISED, KernelChoice
from controllers.timings import Timings
from controllers.trace import Trace
from controllers.tuning.hill_climb import hill_climb
from controllers.tuning.site import sites
from controllers.tuning.timing import turns
from hitmap.comm import Communicator


def check_tuning(seconds: float, kernel: KernelChoice, check: Setting) -> None:
    """ValueError where a run cannot be tuned for so many seconds."""
    if not 0 <= seconds < math.inf:
        raise ValueError(f"tune is a number of seconds, at least 0, got {seconds}")
    if seconds and (kernel != SPECIALISED or check != "off"):
        why = "a run under check has" if check != "off" else "kernels that are not generated have"
        raise ValueError(f"tune searches among configurations, of which {why} none; leave it out")


class Tuner:
    """Searches for the configurations of the places of this rank, for some seconds.

    All methods are collective.
    """

    def __init__(self, engine: Engine, comm: Communicator, seconds: float) -> None:
        self.seconds_left = seconds
        self._engine, self._comm = engine, comm
        self._sites = [*sites(engine, hill_climb)]
        self._watched = frozenset().union(*(site.launches.largest for site in self._sites))
        self._turns: deque[int] = deque()
        self._n_steps = 0       # of each of these turns
        self._profiles: list[tuple[int, Profile]] = []
        self._over = False

    def run(
        self,
        n_steps: int,
        timings: Timings,
        progress: Progress | None = None,
        trace: Trace | None = None,
    ) -> None:
        """Run `n_steps` steps, which `timings` counts; those that try something are not traced."""
        done = 0
        while self._turns or self._next_turns():
            if done + self._n_steps > n_steps:
                break
            self._turn(self._turns.popleft(), timings)
            done += self._n_steps
            if progress is not None:
                progress(done, n_steps)
            if self._engine.course.ended:
                break
        for site in self._sites:
            site.settle()
        if self._engine.course.ended:
            return
        rest = None if progress is None else lambda so_far, _: progress(done + so_far, n_steps)
        timings.run(self._engine, n_steps - done, self._comm, rest, trace)

    def steps(self, first: int, last: int) -> range:
        """All but the first: it finds in the caches what another configuration has left there."""
        return range(first + 1, last + 1)

    def add(self, step: int, operation: Operation, profile: Profile) -> None:
        if operation.number in self._watched:
            self._profiles.append((operation.number, profile))

    def _turn(self, number: int, timings: Timings) -> None:
        """Some steps with one candidate at each site."""
        start, self._profiles = time.monotonic(), []
        for site in self._sites:
            site.turn(number)
        timings.run(self._engine, self._n_steps, self._comm, log=self)
        for site in self._sites:
            site.note([profile for n, profile in self._profiles if n in site.launches.largest])
            if not self._turns:
                site.tell()
        self.seconds_left -= time.monotonic() - start

    def _next_turns(self) -> bool:
        """Prepare the next candidates; whether there are any, and time left for them."""
        if self._over:
            return False
        start = time.monotonic()
        n_turns = max([site.prepare() for site in self._sites], default=0)
        n_steps = max([site.n_steps for site in self._sites], default=0)
        self.seconds_left -= time.monotonic() - start
        everyone = self._comm.allgather((n_turns, n_steps, self.seconds_left))
        n_turns, self._n_steps = max(n for n, _, _ in everyone), max(n for _, n, _ in everyone)
        self._over = n_turns == 0 or min(seconds for _, _, seconds in everyone) <= 0
        if not self._over:
            self._turns.extend(turns(range(n_turns)))
        return not self._over
