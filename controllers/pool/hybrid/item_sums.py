# SPDX-License-Identifier: MIT
"""What a function of items sums over all items, by parts of a hybrid task.

Each part gives the words of its accumulators, which are added in any order to the same bits; the
host rounds the sum once, when all are there.
"""
# docs/decisions/0099-items-are-launched-over-rows-of-the-whole.md
from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.controller.access import ArrayAccess
from controllers.language.each import Each
from controllers.pool.hybrid.hybrid import Hybrid
from controllers.pool.hybrid.own_arrays import OwnArrays
from controllers.pool.hybrid.part_jobs import PartJobs
from controllers.pool.job import Job
from controllers.pool.side.items import summed_dtype, words_shape
from controllers.pool.task import Task
from controllers.pool.way import Way
from controllers.program.accumulator import Accumulator
from controllers.program.items import ItemProgram

Array = npt.NDArray[Any]


class ItemSums:
    """Those of one submission, by name; none where the task sums nothing.

    ways: in which parts can give them.
    """

    def __init__(self, hybrid: Hybrid, whole: Job, own: OwnArrays) -> None:
        self._hybrid, self._own = hybrid, own
        self._made = _lowered(whole)
        self._words: dict[str, list[Array]] = {name: [] for name in self.names}
        self.ways: Sequence[Way] = whole.may_run
        if self.names:
            self.ways = [way for way in whole.may_run if isinstance(way.variant.body, Each)]

    @property
    def names(self) -> tuple[str, ...]:
        return () if self._made is None else tuple(self._made.sums)

    def words(self, name: str) -> ArrayAccess:
        """An array for those of one more piece, which writes them."""
        assert self._made is not None, "a function of items"
        known, shape = self._words[name], words_shape(self._made, name)
        known.append(self._own.of(self._hybrid, (name, len(known)), shape, np.dtype(np.int64)))
        return ArrayAccess(known[-1], "out")

    def enter(self, name: str, total: Array, jobs: PartJobs) -> None:
        """Enter the job that adds them, of all parts, and sets the sums."""
        assert self._made is not None, "a function of items"
        dtype = summed_dtype(self._made, name)
        jobs.enter(jobs.made(_MERGED, [total, dtype, *self._words[name]]))


def _lowered(whole: Job) -> ItemProgram | None:
    """The function of items of a task for its arrays, if there is one."""
    bodies = [one.body for one in whole.task.variants if isinstance(one.body, Each)]
    kinds = {one.name: one.kind for one in whole.touches if one.view.size} if bodies else {}
    for body in bodies:
        if {*body.parameters.uses} <= {*kinds}:
            return body.lowered({name: kinds[name] for name in body.parameters.uses})
    return None


def _merge(total: Array, dtype: str, *words: Array) -> None:
    for element, value in enumerate(zip(*words)):
        parts = [Accumulator("sum", dtype, one) for one in value]
        total.flat[element] = reduce(Accumulator.merged, parts).value


_MERGED = Task("merge sums", ("total", "dtype"), roles={"total": "writing"})
_MERGED.variant(_merge)
