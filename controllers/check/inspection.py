# SPDX-License-Identifier: MIT
"""One launch under inspection: run alone, in prepared memory, more than once.

All that the launch may not read, and all that it is to write, holds junk, of another kind in a
second run; a third run takes the work-items in another order.  What it leaves behind then says
what it wrote, what it left out, and whether it depends on what it should not.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.check.finding import Complaint
from controllers.check.memory import Bits, TileMemory, differ, junk, scattered
from controllers.device.event import Event

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class TileUse:
    """A tile of a launch: which of its elements may be read, and which written.

    name: of the parameter; field: what the user calls the cells.
    """

    name: str
    field: str
    memory: TileMemory
    reads: Bits
    writes: Bits


@dataclass(frozen=True)
class Run:
    """One way to do the launch: which junk surrounds it, and the command.

    junk: 0 and 1 are the same everywhere (`junk`), others another one everywhere (`scattered`).
    """

    junk: int
    launch: Callable[[], Event]
    reversed: bool = False


class Inspection:
    """The uses and runs of one launch; the first run is the one that counts.

    `heard` says what the device itself complains of, after each run.
    """

    def __init__(
        self,
        kernel: str,
        uses: Sequence[TileUse],
        runs: Sequence[Run],
        heard: Callable[[], Complaint | None] = lambda: None,
    ) -> None:
        self._kernel, self._uses, self._runs, self._heard = kernel, uses, runs, heard
        self.before: list[Array] = []
        self.after: list[Array] = []

    def run(self, busy: Sequence[Bits | None]) -> tuple[Event, Complaint | None]:
        """Do the launch, alone on idle devices; its event, and what is wrong with it.

        `busy`: per use, elements that others use meanwhile, which are left as they are.
        """
        uses = self._uses
        self.before = [use.memory.read() for use in uses]
        self._heard()   # of what was before
        starts, ends, events, heard = [], [], [], None
        for run in self._runs:
            start = [prepared(*used, run.junk) for used in zip(uses, self.before, busy)]
            for use, values, keep in zip(uses, start, busy):
                use.memory.write(values, keep)
            event = run.launch()
            event.wait()
            events.append(event)
            starts.append(start)
            ends.append([use.memory.read() for use in uses])
            heard = heard or self._heard()
        self.after = [
            np.where(use.writes, end, values)
            for use, values, end in zip(uses, self.before, ends[0])
        ]
        for use, values, keep in zip(uses, self.after, busy):
            use.memory.write(values, keep)
        found = next(self._misplaced(starts, ends, busy), None) or heard
        return events[0], found or next(self._wrong(starts, ends), None)

    def _misplaced(
        self,
        starts: Sequence[Sequence[Array]],
        ends: Sequence[Sequence[Array]],
        busy: Sequence[Bits | None],
    ) -> Iterator[Complaint]:
        for number, use in enumerate(self._uses):
            for start, end in zip(starts, ends):
                changed = differ(start[number], end[number]) & ~use.writes
                other = busy[number]
                yield from self._written(use, changed if other is None else changed & ~other)

    def _wrong(
        self, starts: Sequence[Sequence[Array]], ends: Sequence[Sequence[Array]]
    ) -> Iterator[Complaint]:
        for number, use in enumerate(self._uses):
            runs = [(start[number], end[number]) for start, end in zip(starts, ends)]
            yield from self._left_out(use, runs)
        for number, use in enumerate(self._uses):
            yield from self._unlike(use, [end[number] for end in ends])

    def _written(self, use: TileUse, changed: Bits) -> Iterator[Complaint]:
        """What was written and should not have been."""
        if not changed.any():
            return
        element = int(np.argmax(changed))
        cell, where = use.memory.cell(element), use.memory.where(element)
        if cell is None:
            what = f"kernel {self._kernel!r} writes {use.name} out of bounds, {where}"
            yield Complaint("bounds", what, use.field)
        elif use.writes.any():
            what = f"kernel {self._kernel!r} writes {where} of {use.name}, which is not its own"
            yield Complaint("foreign", what, use.field, cell)
        else:
            what = f"kernel {self._kernel!r} writes {where} of {use.name}, which it may only read"
            yield Complaint("read-only", what, use.field, cell)

    def _left_out(self, use: TileUse, runs: Sequence[tuple[Array, Array]]) -> Iterator[Complaint]:
        """What should have been written and was not, whatever was there before."""
        kept = use.writes & ~use.reads
        for start, end in runs:
            kept = kept & ~differ(start, end)
        if len({run.junk for run in self._runs}) > 1 and kept.any():
            cell = use.memory.cell(int(np.argmax(kept)))
            what = f"kernel {self._kernel!r} does not set cell {cell} of {use.name}"
            yield Complaint("unset", what, use.field, cell)

    def _unlike(self, use: TileUse, ends: Sequence[Array]) -> Iterator[Complaint]:
        """Whether the runs gave unlike results."""
        in_order = sorted(range(1, len(ends)), key=lambda n: not self._runs[n].reversed)
        for number in in_order:
            unlike = use.writes & differ(ends[0], ends[number])
            if not unlike.any():
                continue
            cell = use.memory.cell(int(np.argmax(unlike)))
            if self._runs[number].reversed:
                what = (
                    f"kernel {self._kernel!r} gives cell {cell} of {use.name} another value when "
                    f"its work-items run in another order: two of them use the same cells"
                )
                yield Complaint("race", what, use.field, cell)
            else:
                what = (
                    f"kernel {self._kernel!r} gives cell {cell} of {use.name} a value that depends "
                    f"on cells that it does not declare to read"
                )
                yield Complaint("undeclared", what, use.field, cell)


def prepared(use: TileUse, values: Array, busy: Bits | None, number: int) -> Array:
    """The elements before a run: junk of a kind where nothing is to be read."""
    free = ~use.reads if busy is None else ~(use.reads | busy)
    dtype = use.memory.tile.dtype
    if number > 1:
        return np.where(free, scattered(dtype, number, values.size), values)
    filled = np.where(free, junk(dtype, number), values)
    return np.where(free & use.writes, junk(dtype, number, written=True), filled)
