# SPDX-License-Identifier: MIT
"""What is submitted: a task, or a function as it is, with arguments, as a job with its ways."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from controllers.controller.access import ArrayAccess
from controllers.pool.calls import Call, Calls, looked_at
from controllers.pool.cut import PartAccess
from controllers.pool.data import Data, Touch
from controllers.pool.job import Job, Owner, TaskFuture
from controllers.pool.lane import Lane
from controllers.pool.task import Task
from controllers.pool.task import task as task_of
from controllers.pool.variant import Body
from controllers.pool.ways import Ways

MOST_FUNCTIONS = 256    # that were given as they are
_NOBODY: Sequence[Job] = ()


class Submissions:
    """Makes jobs; for who holds the pool's lock."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.data = Data()
        self._calls = Calls()
        self._ways = Ways(lanes)
        self._functions: OrderedDict[Any, Task] = OrderedDict()
        self._n_made = 0

    def job(
        self, given: Task | Body, args: Sequence[Any], kwargs: Mapping[str, Any], owner: Owner,
        size: float | None = None,
    ) -> Job:  # fmt: skip
        """A job that nobody waits for yet; ValueError or TypeError where there can be none.

        size: how much it has to do, where that is known.
        """
        task = given if isinstance(given, Task) else self._task(given)
        key, arrays = looked_at(task, args, kwargs)
        call, touches, waits = self._calls.get(key), None, _NOBODY
        if call is not None:
            touches = call.touches(arrays)
        if call is None or touches is None:
            touches, waits = self._looked(task, args, kwargs, owner)
            call = Call(touches, self._ways.of(task, touches, has_futures=bool(waits)))
            if key is not None:
                self._calls.add(key, call, task, arrays)
        if size is None:
            size = call.nbytes if task.size is None else float(task.size(*args, **kwargs))
        number, may_run = self._n_made, call.may_run
        self._n_made = number + 1
        return Job(number, task, args, kwargs, touches, owner, may_run, size, waits, call)

    def _looked(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any], owner: Owner
    ) -> tuple[list[Touch], list[Job]]:
        """What a task touches, and whose results it is given."""
        named = task.named(args, kwargs)
        waits: list[Job] = []
        for _, value in named:
            if isinstance(value, TaskFuture):
                waits.append(value.job)
                if value.owner is not owner:
                    raise ValueError(f"{value!r} is of another pool; give its result()")
        return self.touches(task, named), waits

    def touches(self, task: Task, named: Iterable[tuple[str, Any]]) -> list[Touch]:
        """Those of the arrays among arguments with the names of their parameters."""
        touches: list[Touch] = []
        for name, value in named:
            if isinstance(value, np.ndarray):
                value = ArrayAccess(value, task.roles.get(name, "in"))
            if isinstance(value, ArrayAccess):
                origin = value.whole if isinstance(value, PartAccess) else None
                touches.append(self.data.touch(name, value.array, value.role, origin))
        return touches

    def _task(self, given: Body) -> Task:
        known = self._functions.get(given)
        if known is None:
            known = self._functions[given] = task_of(given)
            if len(self._functions) > MOST_FUNCTIONS:
                self._functions.popitem(last=False)
        return known
