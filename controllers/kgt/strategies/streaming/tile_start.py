# SPDX-License-Identifier: MIT
"""What a kernel of the strategy "streaming" begins with: where its tile lies, and which planes."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.kgt.strategies.streaming.design import Design
from controllers.kgt.strategies.streaming.tile_mirrors import TileMirrors
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.c_text import plus
from controllers.kgt.text.emitter import used_fields
from controllers.program.expression import reads

FAR = 2**30     # planes


class TileStart:
    """Writes the lines."""

    def __init__(self, design: Design) -> None:
        self.design, self.tile, self.own = design, design.tile, design.own
        self.parameters, self.steps = design.parameters, design.steps
        self.fields = used_fields(design.stage)
        self.n_axes, self.last = design.n_axes, design.n_axes - 1
        # how far the planes that are computed lie behind the one that arrives
        self.least_lag, self.most_lag = design.lag, design.steps * design.lag
        self.mirrors = TileMirrors(design)

    def lines(self) -> list[str]:
        """All of them."""
        return block("""
            const int item = (int)get_local_id(0);
            $items
            // The first cell of the tile, and of the item; which of its cells are written.
            $cells
            // Of each field: the elements that may be read, and the item's first cell.
            $memory
            $planes
        """,
            items=self._items(),
            cells=[line for axis in self.tile.axes for line in self._cells(axis)],
            memory=[line for field in self.fields for line in self._memory(field)],
            planes=self._planes() if self.tile.streams else [*self._inside(), *self._narrowed()],
        )  # fmt: skip

    def edge(self) -> list[str]:
        """C lines: which of the item's cells are computed; for tiles where not all are."""
        axes, cells = self.tile.axes, self.tile.cells
        tests = [f"lowest_{axis} == 0 && highest_{axis} == {cells[axis]}" for axis in axes]
        return [
            *(line for axis in axes for line in self._computed(axis)),
            f"const bool whole = {' && '.join(tests)};",
            *self.mirrors.ends(),
        ]

    def _computed(self, axis: int) -> list[str]:
        """C lines: which of the item's cells are computed along an axis."""
        return block("""
            const int lowest_$x = (int)kgt_limit(computed_first_$x - start_$x, 0, $cells);
            const int highest_$x = (int)kgt_limit(computed_last_$x - start_$x, 0, $cells);
        """, x=axis, cells=self.tile.cells[axis])

    def _items(self) -> list[str]:
        """C lines: the item's place in the group."""
        lines, rest = [], "item"
        for axis in reversed(self.tile.axes):
            count = self.tile.items[axis]
            outer = axis == self.tile.axes[0]
            lines.append(f"const int item_{axis} = {rest if outer else f'{rest} % {count}'};")
            rest = f"{rest} / {count}"
        return lines

    def _cells(self, axis: int) -> list[str]:
        """C lines: the first cells of tile and item; which of the item's are written."""
        margin, useful = self.tile.margin[axis], self.tile.useful[axis]
        start = f"{self._group(axis)} * {useful}L{plus(-margin)}"
        if axis == self.last and self.parameters.vector > 1:
            start += f" - ({self.own}_first & {self.parameters.vector - 1})"
        first, last = f"max(tile_{axis}{plus(margin)}, 0L)", f"tile_{axis}{plus(margin + useful)}"
        return block("""
            const long tile_$x = $start;
            const long start_$x = tile_$x + item_$x * $cells;
            const int first_$x = (int)kgt_limit($first - start_$x, 0, $cells);
            const int last_$x = (int)kgt_limit(min($last, extent_$x) - start_$x, 0, $cells);
        """, x=axis, start=start, first=first, last=last, cells=self.tile.cells[axis])

    def _group(self, axis: int) -> str:
        """C text of the number of the tile along an axis."""
        if self.n_axes == 4 and axis == 1:
            return f"((long)get_group_id(2) / {self._chunks()})"
        return f"(long)get_group_id({self.last - axis})"

    def _chunk(self) -> str:
        """C text of the number of the group among those that share the planes."""
        last = min(self.last, 2)
        return f"get_group_id({last})" + (f" % {self._chunks()}" if self.n_axes == 4 else "")

    def _chunks(self) -> str:
        return "((extent_0 + kgt_length - 1) / kgt_length)"

    def _memory(self, field: str) -> list[str]:
        """C lines: the elements between which the cells that are needed lie."""
        low, high = self._offsets(field)
        return block("""
            const long least_$u = ${u}_first
                $least
            const long most_$u = ${u}_first
                $most
            const long at_$u = ${u}_first + $start;
        """,
            u=field,
            least=self._added(field, [self._lowest(*each) for each in enumerate(low)]),
            most=self._added(field, [self._highest(*each) for each in enumerate(high)]),
            start=" + ".join(
                self.design.along(field, axis, f"start_{axis}") for axis in self.tile.axes
            ),
        )  # fmt: skip

    def _added(self, field: str, cells: Sequence[str]) -> list[str]:
        """C lines that end a sum: of so many cells along each axis."""
        terms = [f"+ {self.design.along(field, axis, each)}" for axis, each in enumerate(cells)]
        return [*terms[:-1], f"{terms[-1]};"]

    def _lowest(self, axis: int, offset: int) -> str:
        """C text of the first cell that the first step reads at an offset."""
        grown = f"{-(self.steps - 1) * self.tile.low[axis]}L"
        return f"(max({grown}, computed_first_{axis}){plus(offset)})"

    def _highest(self, axis: int, offset: int) -> str:
        """C text of the last cell that the first step reads at an offset."""
        grown = f"extent_{axis}{plus((self.steps - 1) * self.tile.high[axis])}"
        return f"(min({grown}, computed_last_{axis}){plus(offset - 1)})"

    def _offsets(self, field: str) -> tuple[list[int], list[int]]:
        """The least and the most offset per axis at which a field is read."""
        offsets = [read.offset for read in reads(self.design.lead.expression)
                   if read.field == field]  # fmt: skip
        if field == self.own:
            offsets.append((0,) * self.n_axes)
        return [min(each) for each in zip(*offsets)], [max(each) for each in zip(*offsets)]

    def _planes(self) -> list[str]:
        """C lines: the planes that are loaded; those of them that need no tests."""
        low = self.tile.low[0]
        return block("""
            // The planes that are written, and those that are loaded for them.
            const long from = (long)$chunk * kgt_length;
            const long to = min(from + kgt_length, extent_0);
            long plane = max(from$before, computed_first_0$below);
            $mirrored
            const long end = to$behind$held;
            // Those that are computed; no int is too small for the distance to them.
            const long lowest_0 = max(computed_first_0, plane - $far);
            const long highest_0 = min(computed_last_0, end + $far);
            // Without tests: planes where all of the tile is computed, and lies in memory.
            $inside
            $shown
            long easy = max(plane, computed_first_0$behind);
            long hard = min(end, computed_last_0$least);
            $narrowed
            if (!inside || hard - easy < $unroll)
                easy = hard = end;
        """,
            chunk=self._chunk(), before=plus(-self.steps * low),
            below=plus(-low), behind=plus(self.most_lag), least=plus(self.least_lag), far=FAR,
            inside=self._inside(), narrowed=self._narrowed(), unroll=self.parameters.unroll,
            mirrored=self._mirrored(),
            held=f" + {self.steps - 1} * delay" if self.design.most_delay else "",
            shown=["inside = inside && !mirrored;"] if self.design.mirrors_planes else [],
        )  # fmt: skip

    def _mirrored(self) -> list[str]:
        """C lines: whether a group needs planes behind a mirror, and holds planes back for them."""
        if not self.design.mirrors_planes:
            return []
        low, high = self.design.mirrors.signs[0]
        reach = self.steps * self.tile.low[0], self.steps * self.tile.high[0]
        first, last = f"from - {reach[0]} < computed_first_0", f"to + {reach[1]} > computed_last_0"
        ends = [text for text, sign in ((first, low), (last, high)) if sign]
        lines = [f"const bool mirrored = {' || '.join(ends)};"]
        if low:
            lines.append(f"const int delay = {first} ? {self.design.most_delay} : 0;")
        return lines

    def _inside(self) -> list[str]:
        """C lines: whether all of the tile is computed, in each of the planes that are."""
        tests = [
            f"tile_{axis} >= computed_first_{axis} && "
            f"tile_{axis}{plus(self.tile.items[axis] * self.tile.cells[axis])} "
            f"<= computed_last_{axis}"
            for axis in self.tile.axes
        ]
        lines = [f"bool inside = {tests[0]}", *(f"    && {test}" for test in tests[1:])]
        return [*lines[:-1], f"{lines[-1]};"]

    def _narrowed(self) -> list[str]:
        """C lines: leave out planes at which the tile does not lie in memory."""
        narrow = self._narrow if self.tile.streams else self._tested
        return [line for field in self.fields for line in narrow(field)]

    def _tested(self, field: str) -> list[str]:
        """C lines: the same of a field where nothing streams."""
        first, last = self._corners(field)
        return block("""
            if ($first < least_$u || $last > most_$u)
                inside = false;
        """, u=field, first=first, last=last)

    def _narrow(self, field: str) -> list[str]:
        """C lines: the same of a field whose planes arrive."""
        if field in self.design.stored:     # it is loaded as it arrives, and a few planes ahead
            lag = 0 if field == self.own else self.least_lag
            lowest, highest = -lag, self.parameters.ahead - lag
        else:
            low, high = self._offsets(field)
            lowest, highest = low[0] - self.most_lag, high[0] - self.least_lag
        first, last = self._corners(field)
        return block("""
            while (easy < hard && $first + $easy < least_$u)
                ++easy;
            while (easy < hard && $last + $hard > most_$u)
                --hard;
        """,
            u=field, first=first, last=last,
            easy=self.design.along(field, 0, f"(easy{plus(lowest)})"),
            hard=self.design.along(field, 0, f"(hard{plus(highest - 1)})"),
        )  # fmt: skip

    def _corners(self, field: str) -> tuple[str, str]:
        """C text of the first and the last element in a plane that the tile reads of a field."""
        low, high = self._offsets(field)
        if field == self.own:
            low = high = [0] * self.n_axes
        first = last = f"{field}_first"
        for axis in self.tile.axes:
            width = self.tile.items[axis] * self.tile.cells[axis]
            first += f" + {self.design.along(field, axis, _cell(axis, low[axis]))}"
            last += f" + {self.design.along(field, axis, _cell(axis, width - 1 + high[axis]))}"
        return first, last


def _cell(axis: int, number: int) -> str:
    """C text of a cell that counts from the tile's first one."""
    return f"(tile_{axis}{plus(number)})" if number else f"tile_{axis}"
