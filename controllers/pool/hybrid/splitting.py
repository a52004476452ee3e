# SPDX-License-Identifier: MIT
"""A hybrid task that functions of the user split and merge, while it is done."""
from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from controllers.pool.data import Touch
from controllers.pool.hybrid.hybrid import Hybrid, Part
from controllers.pool.hybrid.part_jobs import check_apart
from controllers.pool.job import Job, Owner, future_of
from controllers.pool.memories import Memories
from controllers.pool.newest import HOST_MEMORY
from controllers.pool.side.given import argument
from controllers.pool.submissions import Submissions
from controllers.pool.task import Task
from hitmap.argument import sequence

# Shares of a task by what is known by now; None where that is too little.
FindShares: TypeAlias = "Callable[[], Sequence[float] | None]"


class Splitting:
    """One submission, whose shares are found again when it is split, if `find` is given.

    begin: the task that splits, and gives the jobs of parts, which wait for it, what they are for.
    end: the task that merges, given what `begin` and the parts have returned.
    """

    def __init__(
        self, hybrid: Hybrid, whole: Job, parts: Sequence[Job], shares: Sequence[float],
        find: FindShares | None, memories: Memories, submissions: Submissions,
        lock: threading.RLock,
    ) -> None:  # fmt: skip
        self._hybrid, self._parts, self._shares = hybrid, list(parts), tuple(shares)
        self._find, self._size = find, whole.size
        self._memories, self._submissions, self._lock = memories, submissions, lock
        self._owner: Owner = future_of(whole).owner
        self._args, self._touches = whole.args, whole.touches
        self._given: list[tuple[Any, ...]] = []
        self._touched: list[Touch] = []     # by parts
        name = hybrid.task.name
        self.begin, self.end = Task(f"{name}, split"), Task(f"{name}, merged")
        self.begin.variant(self._begin)
        self.end.variant(self._end)

    def let_go(self, future: object) -> None:
        """Of what it was given, as it is over."""
        self._args, self._touches, self._given, self._touched = [], [], [], []
        self._parts = []

    def _begin(self, *waited: Any) -> None:
        self._memories.before(self._touches, HOST_MEMORY)
        split = self._hybrid.split
        assert split is not None, "a function that splits"
        if self._find is not None:
            with self._lock:
                self._shares = tuple(self._find() or self._shares)
                for part, share in zip(self._parts, self._shares):
                    part.size = share * self._size
        found = split(self._shares, *self._views())
        name, n = self._hybrid.task.name, len(self._shares)
        given = [tuple(sequence(one, f"task {name!r}: a part", "arguments"))
                 for one in sequence(found, f"task {name!r}: what split returns", "parts")]
        if len(given) != n:
            raise ValueError(
                f"task {name!r}: split has returned {len(given)} parts for {n} shares; return the "
                f"arguments of one for each"
            )
        self._given = given
        with self._lock:
            for part, args in zip(self._parts, given):
                self._fill(part, args)
            check_apart(name, [part.touches for part in self._parts])
            self._touched = [touch for part in self._parts for touch in part.touches]

    def _fill(self, part: Job, args: tuple[Any, ...]) -> None:
        """Tell a job that waits what it is for."""
        made = self._submissions.job(part.task, args, {}, self._owner, part.size)
        if made.waits_for_values:
            raise ValueError(
                f"task {part.task.name!r}: split has returned a future, for which nobody waits; "
                f"give it to submit"
            )
        if part.placed not in made.may_run:
            raise ValueError(
                f"task {part.task.name!r}: split has returned arrays that {part.placed} does not "
                f"take; give slices whose last axis has the step 1"
            )
        part.give(made.args, made.touches)

    def _end(self, begun: None, *results: Any) -> Any:
        merge = self._hybrid.merge
        if merge is None:
            return None
        for touch in (*self._touches, *self._touched):
            self._memories.bring(touch.datum, HOST_MEMORY, touch.box)
        parts = [Part(*one) for one in zip(self._shares, self._given, results)]
        try:
            return merge(parts, *self._views())
        finally:
            self._memories.after(self._touches, HOST_MEMORY)

    def _views(self) -> list[Any]:
        touches = iter(self._touches)
        return [argument(given, touches) for given in self._args]
