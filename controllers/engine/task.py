# SPDX-License-Identifier: MIT
"""Tasks: the operations of a plan with their commands bound, and how far each has come."""
from __future__ import annotations

from collections.abc import Mapping

from controllers.device.event import Command, CommandFailed, Event, is_complete
from controllers.plan import Location, Operation


class Awaited:
    """Something that is complete when its event is; `event` is None once that is known."""

    __slots__ = ("event", "blocks")

    def __init__(self, event: Event | None = None, *, blocks: bool = True) -> None:
        self.event = event
        self.blocks = blocks    # whether waiting for the event sleeps instead of polling

    def complete(self) -> bool:
        """Whether the event is."""
        if self.event is not None and is_complete(self.event):
            self.event = None
        return self.event is None


class Task(Awaited):
    """One operation, repeated every period; `step` is the step in which it was started last.

    What it waits for is kept in three lists, with the number of steps back: tasks that must
    have been *started* (an in-order queue does the rest), tasks whose *events* are handed to
    the device, and tasks that must be *complete*, because the device cannot wait for them or
    because this one is the host's own work.
    """

    __slots__ = ("operation", "launches", "step", "folding", "_is_message", "_command", "_instead",
                 "_started", "_events", "_completed")  # fmt: skip

    def __init__(
        self, operation: Operation, command: Command, folding: Command | None = None
    ) -> None:
        """`folding`: of a launch whose folds are occasional, the command that makes them, too."""
        super().__init__(blocks=operation.on_device)
        self.operation = operation
        self.launches = operation.verb == "launch"
        self._is_message = operation.lane == "network"      # one request serves every period
        self.step = -1
        self.folding = folding
        self._command = command
        self._instead: dict[int, Command] = {}
        self._started: list[tuple[Task, int]] = []
        self._events: list[Task] = []
        self._completed: list[tuple[Task, int]] = []

    def connect(self, tasks: Mapping[int, Task], locations: tuple[Location, ...]) -> None:
        """Resolve the edges of the operation to the tasks it waits for."""
        mine = self.operation
        for edge in mine.after:
            task = tasks[edge.number]
            theirs = task.operation
            here, there = locations[mine.place], locations[theirs.place]
            together = here.same_context(there)
            if not (together and mine.on_device and theirs.on_device):
                self._completed.append((task, edge.steps_back))
            else:
                self._started.append((task, edge.steps_back))
                if theirs.lane != mine.lane or not here.same_controller(there):
                    self._events.append(task)

    def replace(self, commands: Mapping[int, Command]) -> None:
        """In some steps of the next run do these commands instead."""
        self._instead = {**commands}

    def fold(self, step: int) -> None:
        """In `step` do the command that folds, too, if there is another one."""
        if self.folding is not None:
            self._instead[step] = self.folding

    def rebind(self, command: Command, folding: Command | None = None) -> None:
        """From now on do the same work by another command."""
        self._command, self.folding = command, folding

    def complete(self) -> bool:
        """Whether the work it started last is done; `CommandFailed` says whose failed."""
        try:
            return super().complete()
        except CommandFailed as error:
            return self._failed(error)

    def _failed(self, error: CommandFailed) -> bool:
        """Say whose work has failed; or whether it is done all the same."""
        what = f"{self.operation.verb} of place {self.operation.place} in step {self.step}"
        raise type(error)(f"{what}: {error}") from error.__cause__

    def disconnect(self) -> None:
        """Let go of the other tasks: what none of them needs any more can then be freed."""
        self._started.clear()
        self._events.clear()
        self._completed.clear()

    @property
    def is_free(self) -> bool:
        """Whether it can start in any step as soon as those before it in its place's list have."""
        place = self.operation.place
        mine = all(task.operation.place == place for task, _ in self._started)
        return mine and not self._completed and not self._is_message

    def blocker(self, step: int) -> Awaited | None:
        """A task that this one still has to wait for before it starts in `step`."""
        for task, back in self._started:
            if task.step < step - back:
                return task
        for task, back in self._completed:
            if task.step < step - back or not task.complete():
                return task
        return self if self._is_message and not self.complete() else None

    def start(self, step: int) -> Event:
        """Enqueue or do the work of `step`; nothing blocks it."""
        command, wait_for = self._command, None
        if self._instead:
            command = self._instead.pop(step, command)
        if self._events:
            wait_for = [task.event for task in self._events if task.event is not None] or None
        self.event = event = command(wait_for)
        self.step = step
        return event
