# SPDX-License-Identifier: MIT
"""Looks: what somebody sees while the steps of a run go on, and whether the run ends there.

A look at results needs what the step has folded, and nothing else: while that is on its way the
step after it is computed already, if it leaves alone what the fields are before it.  Where the run
ends at the look, that step is dropped: nobody has seen it.
"""
# docs/decisions/0047-looks-are-gates-of-a-run.md
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from controllers.engine.course import Course
from controllers.engine.place import PlaceRun
from controllers.engine.samples import RunLog, Samples
from controllers.engine.task import Task
from controllers.plan import Plan
from controllers.plan.folding import needed


class Looks(Protocol):
    """All who look in a run.

    pauses: whether the run stands still where somebody has looked just now.
    """

    @property
    def pauses(self) -> bool: ...

    def left(self, n_steps: int) -> int:
        """How many time steps there are from `n_steps` to the next look, 1 or more."""

    def of_fields(self, n_steps: int) -> bool:
        """Whether fields are looked at then, and not results alone."""

    def look(self) -> bool:
        """Look at the engine as it is, and say whether the run ends, on all ranks alike.

        Collective.
        """


class Lookout:
    """Who looks next in a run, and whether all is there that this takes."""

    def __init__(
        self,
        looks: Looks,
        plan: Plan,
        course: Course,
        runs: Sequence[PlaceRun],
        tasks: Sequence[Task],
        reach: Callable[[int, int, bool], None],
    ) -> None:
        """`reach` makes the engine be after a step, and so many time steps; with whole fields."""
        self.error: Exception | None = None     # of somebody who has looked
        self._stopped: int | None = None        # the step at whose look the run ends
        self._looks, self._course, self._runs = looks, course, runs
        self._reach = reach
        combining = [task for task in tasks if task.operation.verb == "combine"]
        self._combining = [
            [task for task in combining if task.operation.phase == phase]
            for phase in range(plan.n_phases)
        ]
        # unless steps wait for folds themselves, or write over what they begin with
        self._goes_on = bool(combining) and not needed(plan.program) and plan.keeps_fields
        self._n_steps = self._end = 0
        self.is_open = self.is_paused = False
        self._rest: tuple[int, int] | None = None   # look and hold, when a first step has begun

    def begin(self, n_steps: int, last: int) -> None:
        """A run begins after so many time steps, whose last step is `last`."""
        self._end = last
        self._next(self._course.first - 1, n_steps)

    def advance(self) -> bool:
        """Look, if all is there that this takes; whether somebody has looked."""
        if not self.is_open:
            return False
        if self._rest is not None:      # what comes first is on its way to the device
            self._course.look_at(*self._rest)
            self._rest = None
            return True
        if not self._is_ready():
            return False
        step = self._course.look
        self._reach(step, self._n_steps, self._looks.of_fields(self._n_steps))
        stops = True
        try:
            stops = self._looks.look()
        except Exception as error:      # the run ends as others do, and then with this
            self.error = error
        self.is_paused = not stops and self._looks.pauses
        if not self.is_paused:
            self.go_on(stops)
        return True

    def go_on(self, ends: bool) -> None:
        """After a look, or end there."""
        self.is_paused, step = False, self._course.look
        if ends:
            self._course.end_at_look()
            self.is_open, self._stopped = False, step
        else:
            self._next(step, self._n_steps)

    def end(self) -> None:
        """The run has ended: with the step at which somebody has stopped it, if somebody has."""
        if self._stopped is not None:
            self._course.hold(self._stopped)

    @property
    def blockers(self) -> list[Task]:
        """Messages under way that a look waits for."""
        if not self.is_open:
            return []
        return [
            t for t in self._folded if t.step == self._course.look and t.event is not None
        ]

    @property
    def _folded(self) -> Sequence[Task]:
        return self._combining[self._course.look % len(self._combining)]

    def _is_ready(self) -> bool:
        step = self._course.look
        if step > self._course.last:    # the run ends before
            self.is_open = False
            return False
        if not all(task.step == step and task.complete() for task in self._folded):
            return False
        if self._folded and not self._looks.of_fields(self._n_steps):
            return True
        return all(run.is_through(step) for run in self._runs)

    def _next(self, step: int, n_steps: int) -> None:
        """Whoever looks next after `step`, if anybody does in this run."""
        left = self._looks.left(n_steps)
        look, self._n_steps = step + left, n_steps + left
        self.is_open = look <= self._end
        if not self.is_open:
            self._course.look_at(self._end, self._end)
            return
        goes_on = (
            self._goes_on and look + 1 < self._end
            and not self._looks.of_fields(self._n_steps)
            and self._looks.left(self._n_steps) > 1
        )  # fmt: skip
        hold = look + goes_on
        first = min(hold, self._course.until + 1)
        self._course.look_at(look, first)
        self._rest = (look, hold) if first < hold else None


class _Runs(Protocol):
    """What runs steps: an engine."""

    n_steps: int

    @property
    def samples(self) -> Samples: ...
    def run(
        self, n_steps: int, progress: Callable[[int, int], None] | None, log: RunLog | None,
        until: float,
    ) -> None: ...  # fmt: skip


def run_in_pieces(
    engine: _Runs, n_steps: int, progress: Callable[[int, int], None] | None, log: RunLog | None,
    until: float, looks: Looks,
) -> None:  # fmt: skip
    """Run steps to each look, and look in between: where looks do not fit into one run."""
    done, first, wanted = 0, engine.n_steps, engine.samples.wanted
    while done < n_steps:
        left = looks.left(engine.n_steps)
        count = min(left, n_steps - done)

        def tell(so_far: int, _: int, before: int = done) -> None:
            if progress is not None:
                progress(before + so_far, n_steps)

        engine.samples.wanted = wanted and done == 0
        engine.run(count, tell, log, until)
        done += count
        if engine.n_steps - first < done or (count == left and looks.look()):
            break
    engine.samples.wanted = wanted
