# SPDX-License-Identifier: MIT
"""Messages that were altered on their way: noted while others go on, and told to all ranks later.

Whoever runs an engine says by `hearing` who is told; the steps go on to one that all ranks share,
since ranks that break off leave others waiting.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from weakref import WeakMethod

from controllers.device.event import Command, CommandFailed
from controllers.engine.network import AlteredMessage
from controllers.engine.task import Task
from controllers.plan import Operation

Told = Callable[[str], None]
_told: ContextVar[Told | None] = ContextVar("controllers.altered", default=None)


@contextmanager
def hearing(told: Told) -> Iterator[None]:
    """In here `told` is told of messages that were altered; else they are errors at once."""
    token = _told.set(told)
    try:
        yield
    finally:
        _told.reset(token)


class Receiving(Task):
    """Of a message; step_of: the time step of a step of the plan, as the engine says."""

    __slots__ = ("_step_of",)

    def __init__(
        self, operation: Operation, command: Command, step_of: WeakMethod[Callable[[int], int]]
    ) -> None:
        super().__init__(operation, command)
        self._step_of = step_of

    def _failed(self, error: CommandFailed) -> bool:
        """It is here all the same, if it was altered and somebody is told."""
        told = _told.get()
        if told is None or not isinstance(error, AlteredMessage):
            return super()._failed(error)
        step_of = self._step_of()
        assert step_of is not None, "who completes a task has its engine"
        told(f"in step {step_of(self.step)} {error}")
        return self.complete()
