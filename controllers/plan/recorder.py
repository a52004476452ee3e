# SPDX-License-Identifier: MIT
"""Recording: operations are added in order, their dependencies follow from the cells."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from controllers.memory.history import History
from controllers.plan.operation import (
    Edge,
    HostTask,
    Lane,
    Memory,
    MemoryCells,
    Operation,
    Transfer,
    Verb,
)
from controllers.program.sweep import Version


class Recorder:
    """Adds operations against one `History` per memory, with their numbers as events.

    A plan repeats with a period.  To learn what an operation waits for from one period to
    the next, the period is recorded twice; `second_half` is the plan.
    """

    def __init__(self) -> None:
        self.step = 0
        self._operations: list[Operation] = []
        self._earlier: list[int] = []      # per operation, as bits: all that it follows
        self._histories: dict[Memory, History[int]] = {}

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
        version: Version | None = None,
    ) -> None:
        """Add one operation of the current step; it waits for what its cells need."""
        number, reads, writes = len(self._operations), tuple(reads), tuple(writes)
        edges = self._edges(reads, writes)
        self._operations.append(
            Operation(
                number, self.step, place, verb, lane, reads, writes, edges,
                sweep, bundle, transfers, task, version,
            )
        )
        self._earlier.append(0)
        for edge in edges:
            self._earlier[number] |= self._earlier[edge.number] | 1 << edge.number
        for access in reads:
            self._history(access).read(access.cells, number)
        for access in writes:
            self._history(access).wrote(access.cells, number)

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
        self, reads: tuple[MemoryCells, ...], writes: tuple[MemoryCells, ...]
    ) -> tuple[Edge, ...]:
        """What an operation waits for, without what follows from the rest of it."""
        found: set[int] = set()
        for access in reads:
            found.update(self._history(access).before_read(access.cells))
        for access in writes:
            found.update(self._history(access).before_write(access.cells))
        needed = [
            number
            for number in sorted(found)
            if not any(self._earlier[other] >> number & 1 for other in found)
        ]
        return tuple(
            Edge(number, self.step - self._operations[number].phase) for number in needed
        )

    def _history(self, access: MemoryCells) -> History[int]:
        return self._histories.setdefault(access.memory, History())
