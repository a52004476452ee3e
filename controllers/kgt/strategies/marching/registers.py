# SPDX-License-Identifier: MIT
"""What an item of the strategy "marching" keeps in registers: vectors and cells of the fields.

Along the last axis memory is a sequence of aligned vectors: part 0 holds the item's own cells, part
-1 those before them.  A read at offset +1 takes three cells of part 0 and one of part 1.  Of a part
of which one cell is needed, only that is loaded.  Along the marching axis a value is loaded once,
at the highest offset at which it is needed, and then handed down from step to step.  What several
rows of an item read is loaded once: names say where it is from the first one.
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

from controllers.kgt.text.c_lines import block
from controllers.kgt.text.c_text import plus
from controllers.kgt.text.emitter import cell_index, element
from controllers.kgt.text.lanes import Lanes
from controllers.program.expression import Read
from controllers.program.program import Stage


class Column(NamedTuple):
    """A part of a field at offsets that differ only along the marching axis."""

    field: str
    outer: tuple[int, ...]      # on all axes but the last; 0 on the marching axis
    part: int


class Kept(NamedTuple):
    """What is kept of a column: the offsets on the marching axis, and which cells."""

    low: int
    high: int
    lane: int | None            # the one cell that is needed; None: a vector


@dataclass(frozen=True)
class Registers:
    """The registers of one stage; `axis` is the marching axis, `types` those of fields' cells."""

    stage: Stage
    lanes: int
    axis: int
    types: Mapping[str, str]
    columns: dict[Column, Kept]
    across: int = 0     # the axis that rows are along
    row: int = 0        # the one of the item that reads are of

    @classmethod
    def of(
        cls, stage: Stage, lanes: int, axis: int, types: Mapping[str, str], across: int = 0,
        rows: int = 1, reads: Iterable[Read] | None = None,
    ) -> Registers:  # fmt: skip
        """Those for vectors of `lanes` cells, in so many rows along the axis `across`.

        reads: of the stage's, where these are not all.
        """
        cells: defaultdict[Column, set[int]] = defaultdict(set)
        steps: defaultdict[Column, set[int]] = defaultdict(set)
        for read, row in product(stage.reads if reads is None else reads, range(rows)):
            *outer, last = _moved(read.offset, across, row)
            step = outer[axis] if outer else 0
            for at in range(last, last + lanes):
                column = Column(read.field, _without(outer, axis), at // lanes)
                cells[column].add(at % lanes)
                steps[column].add(step)
        columns = {
            column: Kept(min(steps[column]), max(steps[column]), _only(used, lanes))
            for column, used in cells.items()
        }
        return cls(stage, lanes, axis, types, columns, across)

    @property
    def n_words(self) -> int:
        """How many registers of 32 bits that is."""
        return sum(
            (kept.high - kept.low + 1) * (self.lanes if kept.lane is None else 1)
            * (2 if self.types[column.field] in ("double", "long") else 1)
            for column, kept in self.columns.items()
        )  # fmt: skip

    def of_row(self, row: int) -> Registers:
        """The same, with the reads of another row."""
        return replace(self, row=row)

    def read(self, read: Read) -> str:
        """C text of a read: a register, or two of them side by side.

        >>> stage = Stage("s", {"u": Read("u", (-1, 1))}, ((-1, 1), (-1, 1)))
        >>> Registers.of(stage, 4, 0, {"u": "float"}).read(Read("u", (-1, 1)))
        '(float4)(at_u_m1.s123, at_u_m1_r1)'
        """
        column, step, skipped = self._place(read)
        if not skipped:
            return self._name(column, step)
        texts = [
            self._cells(column, step, range(skipped, self.lanes)),
            self._cells(column._replace(part=column.part + 1), step, range(skipped)),
        ]
        return f"({Lanes(self.lanes).type(self.types[read.field])})({', '.join(texts)})"

    def each(self, read: Read) -> list[str]:
        """C text of each cell of a read, for vectors.

        >>> stage = Stage("s", {"u": Read("u", (-1, 1))}, ((-1, 1), (-1, 1)))
        >>> Registers.of(stage, 4, 0, {"u": "float"}).each(Read("u", (-1, 1)))
        ['at_u_m1.s1', 'at_u_m1.s2', 'at_u_m1.s3', 'at_u_m1_r1']
        """
        column, step, skipped = self._place(read)
        following = column._replace(part=column.part + 1)
        return [
            self._cells(column if at < self.lanes else following, step, [at % self.lanes])
            for at in range(skipped, skipped + self.lanes)
        ]

    def _place(self, read: Read) -> tuple[Column, int, int]:
        """The first column of a read, where in it along the axis, and how many cells to skip."""
        *outer, last = _moved(read.offset, self.across, self.row)
        part, skipped = divmod(last, self.lanes)
        step = outer[self.axis] if outer else 0
        return Column(read.field, _without(outer, self.axis), part), step, skipped

    def sides(self, last: int) -> list[str]:
        """C lines: which cells of the item are in the box, and where the other parts are."""
        if self.lanes == 1:
            return []
        parts = sorted({(column.field, column.part) for column in self.columns if column.part})
        return block("""
            const long item_first = start_$x < 0 ? -start_$x : 0;
            const long item_last = extent_$x - start_$x < $full ? extent_$x - start_$x : $full;
            $elsewhere
        """, x=last, full=self.lanes, elsewhere=[self._elsewhere(*part) for part in parts])

    def _elsewhere(self, field: str, part: int) -> str:
        """A C line: where a part is; that of the item's own cells where the box needs no other."""
        offsets = [read.offset[-1] for read in self.stage.reads if read.field == field]
        at = part * self.lanes
        if part < 0:
            needed = f"item_first{plus(min(offsets))} < {at + self.lanes}"
        else:
            needed = f"item_last{plus(max(offsets))} > {at}"
        return f"const long {self._side(field, part)} = {needed} ? {at} : 0;"

    def loads(self) -> tuple[list[str], list[str], list[str]]:
        """C lines: before the march, at the start of a step, and at its end."""
        before, first, after = [], [], []
        for column, kept in self.columns.items():
            cell = self.types[column.field]
            kind = cell if kept.lane is not None else Lanes(self.lanes).type(cell)
            for step in range(kept.low, kept.high):
                before.append(f"{kind} {self._name(column, step)} = {self._load(column, step)};")
                after.append(f"{self._name(column, step)} = {self._name(column, step + 1)};")
            highest = self._name(column, kept.high)
            first.append(f"const {kind} {highest} = {self._load(column, kept.high)};")
        return before, first, after

    def _load(self, column: Column, step: int) -> str:
        outer = list(column.outer)
        if outer:
            outer[self.axis] = step
        alone = self.lanes == 1
        at = element(
            Read(column.field, (*outer, column.part if alone else 0)),
            cell_index(column.field, self.stage),
        )
        if column.part and not alone:
            at += f" + {self._side(column.field, column.part)}"
        lane = self.columns[column].lane
        if alone or lane is not None:
            return f"{column.field}[{at}{plus(lane or 0)}]"
        kind = Lanes(self.lanes).type(self.types[column.field])
        return f"*(__global const {kind} *)({column.field} + {at})"

    def _cells(self, column: Column, step: int, lanes: Iterable[int]) -> str:
        name = self._name(column, step)
        if self.columns[column].lane is not None:
            return name
        return f"{name}.s{''.join(f'{lane:x}' for lane in lanes)}"

    def _name(self, column: Column, step: int) -> str:
        outer = list(column.outer)
        if outer:
            outer[self.axis] = step
        words = ["at", column.field, *(_word(offset, "m0p") for offset in outer)]
        return "_".join([*words, *([_word(column.part, "l0r")] if column.part else [])])

    def _side(self, field: str, part: int) -> str:
        return f"item_{_word(part, 'l0r')}_{field}"


def _moved(offset: tuple[int, ...], axis: int, row: int) -> tuple[int, ...]:
    return tuple(n + row * (at == axis) for at, n in enumerate(offset)) if row else offset


def _without(outer: list[int], axis: int) -> tuple[int, ...]:
    return tuple(0 if at == axis else offset for at, offset in enumerate(outer))


def _only(cells: set[int], lanes: int) -> int | None:
    return next(iter(cells)) if lanes > 1 and len(cells) == 1 else None


def _word(offset: int, signs: str) -> str:
    return "0" if not offset else f"{signs[0] if offset < 0 else signs[2]}{abs(offset)}"
