# SPDX-License-Identifier: MIT
"""The engine of rounds that places divide by themselves: whole ones, and a shorter one at the end.

A run that ends amid a round ends with a step of fewer, shorter launches, after which halos are
exchanged anew.  Folds are those of a step of its own.
"""
# docs/decisions/0059-places-divide-rounds-by-themselves.md
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from controllers.device.event import Command
from controllers.engine.driver import Engine, Progress
from controllers.engine.looks import Looks, run_in_pieces
from controllers.engine.samples import RunLog
from controllers.plan import Operation
from controllers.plan.course import RunLaunches
from controllers.plan.rounds.paces import Pace, PacedOutline, shortened_pace


class PacedEngine(Engine):
    """Runs a `PacedPlan`."""

    def run(
        self,
        n_steps: int,
        progress: Progress | None = None,
        log: RunLog | None = None,
        until: float = math.inf,
        looks: Looks | None = None,
    ) -> None:
        """Run so many time steps in whole rounds, then what is left over.  Collective.

        Looks end rounds: where they come after fewer steps than a round has, rounds are shorter.
        """
        if looks is not None:
            run_in_pieces(self, n_steps, progress, log, until, looks)
            return
        before, folding = self.n_steps, int(self.plan.folds_apart and n_steps > 0)
        wanted, plain = self.course.looks, n_steps - folding
        if plain:
            self.course.looks = wanted and not folding
            try:
                self._piece(plain, progress, log, until)
            finally:
                self.course.looks = wanted
        if folding and self.n_steps == before + plain:
            self._piece(1, None, log, until)

    def prepare(self, n_steps: int) -> Mapping[int, Command]:
        """Bind the launches that end a run of so many time steps."""
        rest = RunLaunches.of(self.plan, n_steps).rest
        if rest and rest not in self._short:
            self._short[rest] = {}
            for task in self._tasks:
                pace = self._pace(task.operation, rest)
                if task.launches and task.operation.launch < len(pace):
                    command = self._shorter(task.operation, pace)
                    self._short[rest][task.operation.number] = command
            self._try(self._short[rest])
        return self._short.get(rest, {})

    def _piece(
        self, n_steps: int, progress: Progress | None, log: RunLog | None, until: float
    ) -> None:
        """Whole rounds, and a shorter one."""
        launches = RunLaunches.of(self.plan, n_steps)
        last = self._n_done + launches.count - 1
        if launches.rest:
            done = frozenset(self._done(last % self.plan.n_phases, launches.rest))
            for run in self._runs:
                run.end_with(last, done)
        try:
            super().run(n_steps, progress, log, until)
        finally:
            for run in self._runs:
                run.end_with(-1, ())
        if launches.rest and self._n_done == last + 1:
            self._is_open = False   # nothing was handed over

    def _done(self, phase: int, rest: int) -> list[int]:
        """The operations of a step of the period that end a run with so many time steps."""
        of_phase = [task.operation for task in self._tasks if task.operation.phase == phase]
        return [
            o.number for o in of_phase if o.occasional or o.launch < len(self._pace(o, rest))
        ]

    def _pace(self, operation: Operation, rest: int) -> Pace:
        """The launches at the place of an operation that end a run with so many time steps."""
        plan = self.plan
        assert isinstance(plan, PacedOutline), "rounds that places divide"
        if operation.place not in plan.places:
            return ()
        return shortened_pace(plan.paces[operation.place], rest, plan.liveness.period)

    def _shorter(self, operation: Operation, pace: Sequence[int]) -> Command:
        count = pace[operation.launch]
        if not count:
            return self._binder.turned(operation)
        return self._binder.launch(operation, count, folds=False)

    def _try(self, commands: Mapping[int, Command]) -> None:
        """Launch those that write over nothing that is needed: drivers may build them only then."""
        phase = self._n_done % self.plan.n_phases
        fields = [field.name for field in self.plan.program.fields]
        newest = {self.plan.newest(f, phase, p) for f in fields for p in self.plan.places}
        for task in self._tasks:
            operation = task.operation
            if operation.number in commands and operation.phase == phase:
                if newest.isdisjoint(access.memory for access in operation.writes):
                    commands[operation.number](None)
        for executor in self._executors:
            executor.wait()
