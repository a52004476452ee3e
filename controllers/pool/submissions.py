# SPDX-License-Identifier: MIT
"""What is submitted: a task, or a function as it is, with arguments, as a job with its ways."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from controllers.controller.access import ArrayAccess
from controllers.pool.cut import PartAccess
from controllers.pool.data import Data, Touch
from controllers.pool.job import Job, Owner, TaskFuture
from controllers.pool.lane import Lane
from controllers.pool.task import Task
from controllers.pool.task import task as task_of
from controllers.pool.variant import Body
from controllers.pool.ways import Ways

MOST_FUNCTIONS = 256    # that were given as they are


class Submissions:
    """Makes jobs; for who holds the pool's lock."""

    def __init__(self, lanes: Sequence[Lane]) -> None:
        self.data = Data()
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
        task = self._task(given)
        named = task.named(args, kwargs)
        touches: list[Touch] = []
        values: list[Any] = []
        for name, value in named:
            if isinstance(value, np.ndarray):
                value = ArrayAccess(value, task.roles.get(name, "in"))
            if isinstance(value, ArrayAccess):
                origin = value.whole if isinstance(value, PartAccess) else None
                touches.append(self.data.touch(name, value.array, value.role, origin))
            elif isinstance(value, TaskFuture) and value.owner is not owner:
                raise ValueError(f"{value!r} is of another pool; give its result()")
            values.append(value)
        n = len(args)
        by_name = dict(zip((name for name, _ in named[n:]), values[n:]))
        job = Job(self._n_made, task, values[:n], by_name, touches, owner)
        self._n_made += 1
        futures = any(isinstance(value, TaskFuture) for value in values)
        job.may_run = self._ways.of(task, touches, has_futures=futures)
        if size is not None:
            job.size = size
        elif task.size is not None:
            job.size = float(task.size(*args, **kwargs))
        else:
            job.size = float(sum(touch.view.nbytes for touch in touches))
        return job

    def _task(self, given: Task | Body) -> Task:
        if isinstance(given, Task):
            return given
        known = self._functions.get(given)
        if known is None:
            known = self._functions[given] = task_of(given)
            if len(self._functions) > MOST_FUNCTIONS:
                self._functions.popitem(last=False)
        return known
