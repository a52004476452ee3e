# SPDX-License-Identifier: MIT
"""Calls of tasks, looked at once for the same arrays: programs submit the same ones many times.

They keep no array and no task: a call is forgotten with the first of those that it was made of.
"""
from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.controller.access import ArrayAccess, TileRole
from controllers.estimates.task_key import Work
from controllers.pool.cut import PartAccess
from controllers.pool.data import Datum, Seen, Touch
from controllers.pool.job import TaskFuture
from controllers.pool.task import Task
from controllers.pool.way import Way
from hitmap.shape import Shape

MOST_KNOWN = 256
Key: TypeAlias = "tuple[object, ...]"
Array: TypeAlias = "npt.NDArray[Any]"


class Shown(NamedTuple):
    """A touch without the array itself."""

    name: str
    role: TileRole
    datum: Datum
    box: Shape
    is_box: bool
    at: Seen
    reads: bool
    writes: bool


class Call:
    """What follows from the arrays that a task is given, and from what it does to them.

    may_run: in which ways it can be done.  nbytes: of the arrays.  works: what it does in a way.
    bound: to which tiles launches in a way are bound (`KnownLaunches`).  plan: who does how much of
    it (`Planning`).
    """

    __slots__ = ("shown", "may_run", "nbytes", "works", "bound", "plan")

    def __init__(self, touches: Sequence[Touch], may_run: list[Way]) -> None:
        self.shown = [Shown(*one[2:]) for one in touches]
        self.may_run = may_run
        self.nbytes = float(sum(touch.view.nbytes for touch in touches))
        self.works: dict[Way, Work | None] = {}
        self.bound: dict[Way, Any] = {}     # of `KnownLaunches`, which knows of jobs
        self.plan: Any = None       # of `Planning`, which does, too

    def touches(self, arrays: Sequence[Array]) -> list[Touch] | None:
        """The touches of arrays, in their order; None if one cannot be written any more."""
        touches = []
        for view, shown in zip(arrays, self.shown):
            if shown.writes and not view.flags.writeable:
                return None
            touches.append(tuple.__new__(Touch, (view, view, *shown)))
        return touches


class Calls:
    """Those that were submitted lately; arrays may go in any thread."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Call, list[weakref.ref[Any]]]] = {}

    def get(self, key: Key | None) -> Call | None:
        """That of the same arrays."""
        found = None if key is None else self._known.get(key)
        return None if found is None else found[0]

    def add(self, key: Key, call: Call, task: Task, arrays: Sequence[Array]) -> None:
        """Remember a call until its task or one of its arrays goes, or there are too many."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        known = self._known

        def forget(one: weakref.ref[Any], key: Key = key) -> None:
            known.pop(key, None)

        known[key] = call, [weakref.ref(one, forget) for one in (task, *arrays)]


def looked_at(
    task: Task, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[Key | None, list[Array]]:
    """What a call depends on, and the arrays; None where it is another one each time."""
    key: list[object] = [id(task), len(task.variants), len(args), *kwargs]
    arrays: list[Array] = []
    is_known = True
    for given in (*args, *kwargs.values()) if kwargs else args:
        role, array = "", given
        if isinstance(given, ArrayAccess):
            role, array = given.role, given.array
        if isinstance(array, np.ndarray):
            arrays.append(array)
            key.append((id(array), array.shape, array.strides, array.dtype, role))
            is_known = is_known and not isinstance(given, PartAccess)
        else:
            key.append(None)
            is_known = is_known and not isinstance(given, TaskFuture)
    return tuple(key) if is_known else None, arrays
