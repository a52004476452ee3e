# SPDX-License-Identifier: MIT
"""What is submitted: a task, or a function as it is, with arguments, as a job with its ways."""
from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from controllers.controller.access import ArrayAccess
from controllers.pool.calls import Call, Calls, looked_at, nbytes_of
from controllers.pool.cut import PartAccess
from controllers.pool.data import Data, Touch
from controllers.pool.job import Job, Owner, TaskFuture
from controllers.pool.lane import Lane
from controllers.pool.task import Task
from controllers.pool.task import task as task_of
from controllers.pool.variant import Body
from controllers.pool.way import Way
from controllers.pool.ways import Ways

MOST_FUNCTIONS = 256    # that were given as they are


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
        task = self._task(given)
        key, arrays = looked_at(task, args, kwargs)
        call = self._calls.get(key, arrays)
        if call is not None:
            touches, may_run, nbytes = call.touches(arrays), call.may_run, call.nbytes
        else:
            touches, may_run = self._looked(task, args, kwargs, owner)
            nbytes = nbytes_of(touches)
            if key is not None:
                self._calls.add(key, Call.of(touches, may_run), task, arrays)
        if size is None:
            size = nbytes if task.size is None else float(task.size(*args, **kwargs))
        self._n_made += 1
        return Job(self._n_made - 1, task, args, kwargs, touches, owner, may_run, size)

    def _looked(
        self, task: Task, args: Sequence[Any], kwargs: Mapping[str, Any], owner: Owner
    ) -> tuple[list[Touch], list[Way]]:
        """What a task touches, and in which ways it can be done."""
        touches, has_futures = list[Touch](), False
        for name, value in task.named(args, kwargs):
            if isinstance(value, np.ndarray):
                value = ArrayAccess(value, task.roles.get(name, "in"))
            if isinstance(value, ArrayAccess):
                origin = value.whole if isinstance(value, PartAccess) else None
                touches.append(self.data.touch(name, value.array, value.role, origin))
            elif isinstance(value, TaskFuture):
                has_futures = True
                if value.owner is not owner:
                    raise ValueError(f"{value!r} is of another pool; give its result()")
        return touches, self._ways.of(task, touches, has_futures=has_futures)

    def _task(self, given: Task | Body) -> Task:
        if isinstance(given, Task):
            return given
        known = self._functions.get(given)
        if known is None:
            known = self._functions[given] = task_of(given)
            if len(self._functions) > MOST_FUNCTIONS:
                self._functions.popitem(last=False)
        return known
