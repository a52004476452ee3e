# SPDX-License-Identifier: MIT
"""What folds come to: of the places of a rank, then of all ranks, by one message of each.

Partial results are vectors of integers that can be merged in any order, so each rank sends its own
to all, and all of them know the same.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import accumulate
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from controllers.device.event import COMPLETE, UNDER_WAY, Command, Event, Noticed
from controllers.engine.task import Task
from controllers.executor.executor import Folding
from controllers.plan import Operation
from controllers.program.accumulator import Accumulator
from hitmap.comm import Communicator

Found: TypeAlias = Mapping[str, Accumulator]
Vector: TypeAlias = "npt.NDArray[np.float64]"

# Is told a step and what its folds came to; gives numbers that are rank 0's on all ranks, and who
# takes them then; or None.
Told: TypeAlias = Callable[[int, Found], "tuple[Vector, Callable[[Vector], None]] | None"]


class Combination(Noticed):
    """The command that makes some folds known to all ranks, and the event of it.

    foldings: those of this rank's places.  empties: each fold of no cells.
    """

    def __init__(
        self, comm: Communicator, foldings: Sequence[Folding], empties: Found, told: Told
    ) -> None:
        self.step = -1      # in which it is started
        self._comm, self._foldings, self._empties, self._told = comm, foldings, empties, told
        lengths = [len(one.words) for one in empties.values()]
        self._ends = [*accumulate(lengths)]
        self._all = np.zeros((comm.size, sum(lengths)), np.int64)
        self._mine = np.zeros(sum(lengths), np.int64)
        self._request: _Request | None = None
        self._arrived: Callable[[], None] | None = None

    def __call__(self, wait_for: Sequence[Event] | None = None) -> Event:
        assert self._request is None, "one step after the other"
        self._begin = time.perf_counter_ns()
        parts = [*self._foldings]
        found = [folding.accumulators for folding in parts]
        self._mine[...] = np.concatenate([
            reduce(Accumulator.merged, (one[name] for one in found if name in one), empty).words
            for name, empty in self._empties.items()
        ])  # fmt: skip
        self._request = _gathered(self._comm, self._mine, self._all)
        self._arrived = self._merge
        return self

    @property
    def command_execution_status(self) -> int:
        while self._request is not None:
            if not self._request.Test():
                return UNDER_WAY
            arrived, self._request, self._arrived = self._arrived, None, None
            assert arrived is not None
            arrived()
            if self._request is None:
                self._note_end()
        return COMPLETE

    def _merge(self) -> None:
        """All ranks' partial results are here."""
        firsts = [0, *self._ends]
        found = {
            name: reduce(
                Accumulator.merged,
                (Accumulator(one.kind, one.dtype, rank[first:end]) for rank in self._all),
            )
            for (name, one), first, end in zip(self._empties.items(), firsts, self._ends)
        }
        more = self._told(self.step, found)
        if more is not None:
            vector, take = more
            self._request = _of_rank_0(self._comm, vector)
            self._arrived = lambda: take(vector)


class Combining(Task):
    """Tells its command in which step it is started."""

    __slots__ = ("_combination",)

    def __init__(self, operation: Operation, command: Command, combination: Combination) -> None:
        super().__init__(operation, command)
        self._combination = combination

    def start(self, step: int) -> Event:
        self._combination.step = step
        return super().start(step)


class _Request:
    """The request of a message that has arrived already."""

    def Test(self) -> bool:
        return True


def _gathered(comm: Communicator, mine: npt.NDArray[np.int64], every: object) -> _Request:
    if comm.size == 1:
        assert isinstance(every, np.ndarray)
        every[0] = mine
        return _Request()
    return cast("_Request", comm.Iallgather(mine, every))  # type: ignore[attr-defined]


def _of_rank_0(comm: Communicator, vector: Vector) -> _Request:
    if comm.size == 1:
        return _Request()
    return cast("_Request", comm.Ibcast(vector))  # type: ignore[attr-defined]
