# SPDX-License-Identifier: MIT
"""How far one place has come in its list of tasks."""
from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Mapping, Sequence

from controllers.device.event import Event
from controllers.engine.backlog import Backlog
from controllers.engine.course import Course
from controllers.engine.samples import Log
from controllers.engine.task import Awaited, Task

# Steps between two marks; a place is at most two marks ahead of its device.  To wait for a mark
# takes as long as some small steps, so that it comes after so many cells where steps are small.
LEAD = 16
MOST_LEAD = 256
MARK_CELLS = 1 << 22


class PlaceRun:
    """Starts the tasks of one place as what they wait for allows it.

    Within a step tasks start in any order, so that a late message holds up nobody but its
    own halo; a step opens when all tasks of the one before it have been started.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        opening: Sequence[Sequence[Task]],
        course: Course,
        prepare: Callable[[int], Awaited | None] | None = None,
        time_commands: Callable[[bool], None] = lambda wanted: None,
        backlog: Backlog | None = None,
    ) -> None:
        """`prepare` makes a step ready before it is opened, or says what that has to wait for.

        `time_commands` says whether anybody wants the times of what is started from now on.
        backlog: of the device, where the same thread drives others.
        """
        self.blockers: list[Awaited] = []   # what the tasks of the open step wait for
        self.tasks = tasks
        self.recent: deque[Event] = deque(maxlen=0)     # the newest launches, for a watchdog
        self.opening = opening      # by the phase of the step that follows
        self._phases = [
            [t for t in tasks if t.operation.phase == phase and not t.operation.occasional]
            for phase in range(len(opening))
        ]
        # with what is occasional, by phase; nothing where nothing is
        self._folding = [
            [task for task in tasks if task.operation.phase == phase]
            for phase in range(len(opening))
            if any(task.operation.occasional for task in tasks)
        ]
        # where one in-order device does all of a step, nothing of it is ever waited for
        self._is_free = all(task.is_free for phase in self._phases for task in phase)
        self.lead = self._steps_between_marks()
        self.step = -1
        self._course, self._prepare, self._time_commands = course, prepare, time_commands
        self._backlog = backlog
        self.waiting: list[Task] = []
        self._late: tuple[Task, int] | None = None      # what no step waits for, and its step
        self._end: tuple[int, Container[int]] = (-1, ())    # a step that is less than others
        self._newest: Event | None = None   # of the launch that was started last
        self._mark: Awaited | None = None
        self._logs: Mapping[int, Sequence[Log]] = {}
        self._listening: Sequence[Log] = ()     # the logs that want the open step

    @property
    def finished(self) -> bool:
        """Whether all tasks of the last step have been started."""
        return self.step == self._course.last and self._is_done

    @property
    def _is_done(self) -> bool:
        return not self.waiting and self._late is None

    def is_through(self, step: int) -> bool:
        """Whether all tasks of a step have been started."""
        return self.step > step or (self.step == step and self._is_done)

    @property
    def last(self) -> int:
        """The last step of the run."""
        return self._course.last

    def watch(self) -> None:
        """From now on remember the launches of as many steps as a place may be ahead."""
        per_step = sum(task.launches for task in self.tasks) // len(self._phases)
        self.recent = deque(maxlen=2 * self.lead * max(1, per_step))

    def _steps_between_marks(self) -> int:
        if any(task.operation.lane == "retrieve" for task in self.tasks):
            return 1    # a pass takes all of the field
        launched = (task.operation.launched for task in self.tasks if task.launches)
        n_cells = sum(box.n_cells for box in launched) // len(self._phases)
        return min(max(LEAD, MARK_CELLS // max(1, n_cells)), MOST_LEAD)

    def begin(
        self, first: int, logs: Mapping[int, Sequence[Log]], *, opening: bool = False
    ) -> None:
        """Set out to run the steps from `first` as the course says, or what opens them alone.

        `logs`, by step, are told what is started in it; the opening belongs to the step before the
        first one.
        """
        self.step = first - 1
        self._newest = self._mark = None
        if self._backlog is not None:
            self._backlog.forget()
        for task in self.tasks:
            task.step = self.step
        self.waiting = [*self.opening[first % len(self.opening)]] if opening else []
        for task in self.waiting:
            task.step = self.step - 1
        self._logs = logs
        self._listening = logs.get(self.step, ())

    def end_with(self, step: int, numbers: Container[int]) -> None:
        """In `step`, with which a run ends, do these operations alone."""
        self._end = step, numbers

    def advance(self) -> bool:
        """Start what can be started, to the next gate of the course; whether that was anything."""
        moved = self._start_steps_and_tasks()
        return self._start_late() or moved

    def _start_steps_and_tasks(self) -> bool:
        moved = False
        while True:
            if self.waiting:
                moved = self._start_ready() or moved
            until = self._course.until
            if self.waiting or self._is_held():
                return moved
            if self._is_free and not self._is_special(self.step + 1):
                self._start_steps()
                moved = True
            else:
                self._open_step()
            if self._course.until != until:
                return True

    def _is_special(self, step: int) -> bool:
        """Whether a log wants what is started in it, or it does what only a last step does."""
        folds = bool(self._folding) and self._is_looked_at(step)
        return step in self._logs or step == self._end[0] or folds

    def _is_looked_at(self, step: int) -> bool:
        return step == self._course.look and self._course.looks

    def _start_steps(self) -> None:
        """Start the next step as a whole, and those after it to the next mark, gate or log."""
        step, phases, until = self.step, self._phases, self._course.until
        if self._folding and step < self._course.look:
            until = min(until, self._course.look - 1)
        if step < self._end[0]:
            until = min(until, self._end[0] - 1)
        self._time_commands(False)
        while True:
            self.step = step = step + 1
            for task in phases[step % len(phases)]:
                event = task.start(step)
                if task.launches:
                    self._newest = event
                    self.recent.append(event)
            if not step % self.lead or step >= until or step + 1 in self._logs:
                return
            if self._prepare is not None and self._prepare(step + 1) is not None:
                return
            if step == self._course.last:   # it has just been stopped
                return

    def _start_ready(self) -> bool:
        """Start the tasks of the open step that nothing blocks; whether there were any."""
        waiting: list[Task] = []
        step, backlog, self.blockers = self.step, self._backlog, []
        self._time_commands(bool(self._listening))
        for task in self.waiting:
            blocker = task.blocker(step)
            if blocker is None and task.launches and backlog is not None:
                blocker = backlog.blocker()
            if blocker is not None:
                waiting.append(task)
                self.blockers.append(blocker)
                continue
            event = task.start(step)
            if task.launches:
                self._newest = event
                self.recent.append(event)
                if backlog is not None:
                    backlog.add(event)
            if self._listening:
                profile = event.profile
                for log in self._listening:
                    log.add(step, task.operation, profile)
        moved = len(waiting) < len(self.waiting)
        self.waiting = waiting
        return moved

    def _start_late(self) -> bool:
        """Start what no step waits for, if nothing blocks it; whether it was."""
        if self._late is None:
            return False
        task, step = self._late
        blocker = task.blocker(step)
        if blocker is not None:
            self.blockers = [*self.blockers, blocker]
            return False
        event, self._late = task.start(step), None
        if step in self._logs:
            profile = event.profile
            for log in self._logs[step]:
                log.add(step, task.operation, profile)
        return True

    def _is_held(self) -> bool:
        """Whether something holds up the next step, or there is none.

        That is a gate, what must be known for it, or the device.
        """
        if self.step == self._course.until:
            gate = None if self.step == self._course.last else self._course.pass_gate()
            self.blockers = [] if gate is None else [gate]
            if gate is not None or self.step == self._course.last:
                return True
        if self._prepare is not None:
            missing = self._prepare(self.step + 1)
            if missing is not None:
                self.blockers = [missing]
                return True
            if self.step == self._course.last:      # it has just been stopped
                return True
        if self.step % self.lead == 0 and self._newest is not None:
            if self._mark is not None and not self._mark.complete():
                self.blockers = [self._mark]
                return True
            self._mark = Awaited(self._newest)
        return False

    def _open_step(self) -> None:
        """Begin the next step."""
        self.step += 1
        self.waiting = self._phases[self.step % len(self._phases)]
        if self._folding and self._is_looked_at(self.step):
            self.waiting = []
            for task in self._folding[self.step % len(self._phases)]:
                task.fold(self.step)
                if task.operation.verb == "combine" and task.operation.occasional:
                    self._late = task, self.step
                else:
                    self.waiting.append(task)
        if self.step == self._end[0]:
            self.waiting = [t for t in self.waiting if t.operation.number in self._end[1]]
        self._listening = self._logs.get(self.step, ())
