# SPDX-License-Identifier: MIT
"""Recording: operations are added in order, their dependencies follow from the cells."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeAlias

from controllers.memory.history import History
from controllers.plan.operation import (
    Edge,
    FoldKey,
    HostTask,
    Lane,
    Memory,
    MemoryCells,
    Operation,
    SlotKey,
    Transfer,
    Verb,
)
from controllers.program.sweep import Version
from hitmap.shape import Shape

_MOST = 1 << 62     # launches of a sweep at a place
_WHOLE = Shape((0,), (_MOST,))
_Access: TypeAlias = "tuple[Memory | FoldKey, tuple[Shape, ...]]"


class Recorder:
    """Adds operations against one `History` per memory, with their numbers as events.

    A plan repeats with a period.  To learn what an operation waits for from one period to
    the next, the period is recorded twice; `second_half` is the plan.
    """

    def __init__(self) -> None:
        self.step = self.turn = self.launch = 0
        self._operations: list[Operation] = []
        self._earlier: list[int] = []      # per operation, as bits: all that it follows
        self._histories: dict[Memory | FoldKey, History[int]] = {}

    def add(
        self,
        place: int,
        verb: Verb,
        lane: Lane,
        reads: Iterable[MemoryCells],
        writes: Iterable[MemoryCells],
        *,
        sweep: int | None = None,
        bundle: int | None = None,
        transfers: tuple[Transfer, ...] = (),
        task: HostTask | None = None,
        versions: Iterable[Version] = (),
        over: Shape | None = None,
        takes: Iterable[FoldKey] = (),
        gives: Iterable[FoldKey] = (),
        part: int = 0,
        occasional: bool = False,
    ) -> None:
        """Add one operation of the current step; it waits for what its cells and folds need."""
        number, reads, writes = len(self._operations), tuple(reads), tuple(writes)
        versions = tuple(versions)
        takes, gives = tuple(takes), tuple(gives)
        taken = [*map(_cells, reads), *((key, (_WHOLE,)) for key in takes)]
        given = [*map(_cells, writes), *((key, (_part(key, part),)) for key in gives)]
        edges = self._edges(taken, given, occasional)
        self._operations.append(
            Operation(
                number, self.step, place, verb, lane, reads, writes, edges,
                sweep, bundle, transfers, task, versions, over, takes, gives, part, occasional,
                self.turn, self.launch,
            )
        )
        self._earlier.append(0)
        for edge in edges:
            self._earlier[number] |= self._earlier[edge.number] | 1 << edge.number
        for key, cells in taken:
            self._history(key).read(cells, number)
        for key, cells in given:
            self._history(key).wrote(cells, number)

    def second_half(self) -> tuple[Operation, ...]:
        """The second recording of the period; its numbers and steps start from 0."""
        half, odd = divmod(len(self._operations), 2)
        period = self.step // 2
        assert not odd, "both recordings of a period hold the same operations"
        return tuple(
            replace(
                operation,
                number=operation.number - half,
                phase=operation.phase - period,
                after=tuple(Edge(edge.number % half, edge.steps_back) for edge in operation.after),
            )
            for operation in self._operations[half:]
        )

    def numbered_from(self, first: int, phase: int) -> tuple[Operation, ...]:
        """All that was recorded, once: numbers start from `first`, all belongs to `phase`."""
        return tuple(
            replace(
                operation,
                number=operation.number + first,
                phase=phase,
                after=tuple(Edge(edge.number + first) for edge in operation.after),
            )
            for operation in self._operations
        )

    def _edges(
        self,
        taken: Iterable[_Access],
        given: Iterable[_Access],
        occasional: bool,
    ) -> tuple[Edge, ...]:
        """What an operation waits for, without what follows from the rest of it.

        What is occasional is waited for by its like in the same step alone: nobody else uses what
        it makes, and it is done in the last step of a run.
        """
        found: set[int] = set()
        for key, cells in taken:
            found.update(self._history(key).before_read(cells))
        for key, cells in given:
            found.update(self._history(key).before_write(cells))
        found = {number for number in found if self._counts(number, occasional)}
        needed = [
            number
            for number in sorted(found)
            if not any(self._earlier[other] >> number & 1 for other in found)
        ]
        return tuple(
            Edge(number, self.step - self._operations[number].phase) for number in needed
        )

    def _counts(self, number: int, occasional: bool) -> bool:
        before = self._operations[number]
        return not before.occasional or (occasional and before.phase == self.step)

    def _history(self, key: Memory | FoldKey) -> History[int]:
        return self._histories.setdefault(key, History())


def _cells(access: MemoryCells) -> _Access:
    """What is accessed; of a room all, as it holds cells of several places in turn."""
    key = access.memory
    return (key.room, (_WHOLE,)) if isinstance(key, SlotKey) else (key, access.cells)


def _part(key: FoldKey, number: int) -> Shape:
    """What one launch gives, or whoever gives it whole."""
    return Shape((number,), (number + 1,)) if key.of == "launches" else _WHOLE
