# SPDX-License-Identifier: MIT
"""A run that stands still after every so many steps, while its user looks.

What the next steps need of the host waits; all that was begun goes on.  Who reads cells of fields
waits for the devices first; whoever changes anything ends the run there, and the steps after it
are another one.
"""
# docs/decisions/0047-looks-are-gates-of-a-run.md
from __future__ import annotations

import time

from controllers.engine import Engine, Progress
from controllers.report.timings import Timings
from controllers.run.looks import AllLooks, Pause
from hitmap.comm import Communicator


class Walk:
    """One such run, from the step `first` on.  `looks` are those of `pause` and all others."""

    def __init__(
        self, engine: Engine, n_steps: int, looks: AllLooks, pause: Pause, timings: Timings
    ) -> None:
        self._engine, self._pause, self._timings = engine, pause, timings
        self.first, self._seconds = engine.n_steps, 0.0
        self._told: Progress | None = None
        self._looked = True     # somebody looks at fields, not at results alone
        self._run = engine.pausing(n_steps, self._tell, looks)

    @property
    def is_over(self) -> bool:
        """Whether its last step is done."""
        return self._run.is_over

    def go_on(self, told: Progress | None, comm: Communicator) -> None:
        """To where it stands still next; `told` is told of the steps since its beginning."""
        self._told = told
        # other ranks may send what belongs to steps beyond where this one looks
        self._pause.of_fields = self._looked or comm.size > 1
        self._looked = False
        begin = time.perf_counter()
        self._run.go_on()
        self._count(begin)

    def stand(self) -> None:
        """The cells of fields are about to be read."""
        if not self._looked and not self._pause.of_fields:
            self._run.stand()
        self._looked = True

    def end(self) -> None:
        """End where it stands."""
        begin = time.perf_counter()
        self._run.end()
        self._count(begin)

    def _count(self, begin: float) -> None:
        self._seconds += time.perf_counter() - begin
        if self.is_over:
            self._timings.count(self._engine, self._engine.n_steps - self.first, self._seconds)

    def _tell(self, done: int, total: int) -> None:
        if self._told is not None:
            self._told(done, total)
