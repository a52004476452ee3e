# SPDX-License-Identifier: MIT
"""What a kernel of the strategy "streaming" begins with: where its tile lies, and which planes."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.kgt.strategies.streaming.pipeline import Pipeline
from controllers.kgt.strategies.streaming.tile import Tile
from controllers.kgt.strategies.streaming.tile_text import along, plus
from controllers.kgt.text.c_lines import block, indented
from controllers.kgt.text.emitter import INDENT, used_fields
from controllers.program.expression import reads
from controllers.program.program import Stage

FAR = 2**30     # planes


class TileStart:
    """Writes the lines.  `config`: as in StreamingConfig."""

    def __init__(
        self, stage: Stage, tile: Tile, pipeline: Pipeline,
        *, steps: int, vector: int, ahead: int, unroll: int,
    ) -> None:  # fmt: skip
        self.stage, self.tile, self.own = stage, tile, stage.writes
        self.fields = used_fields(stage)
        self.n_axes, self.last = len(stage.offsets), len(stage.offsets) - 1
        self.steps, self.vector = steps, vector
        self.ahead, self.unroll = ahead, unroll
        # how far the planes that are computed lie behind the one that arrives
        self.least_lag, self.most_lag = pipeline.lag, steps * pipeline.lag

    def lines(self) -> list[str]:
        """All of them."""
        return [
            *self._items(),
            *self._cells(),
            "// Of each field: the elements that may be read, and the item's first cell.",
            *(line for field in self.fields for line in self._memory(field)),
            *self._planes(),
        ]

    def _items(self) -> list[str]:
        rest = "(int)get_local_id(0)"
        lines = [f"const int item = {rest};"]
        rest = "item"
        for axis in reversed(self.tile.axes):
            count = self.tile.items[axis]
            outer = axis == self.tile.axes[0]
            lines.append(f"const int item_{axis} = {rest if outer else f'{rest} % {count}'};")
            rest = f"{rest} / {count}"
        return lines

    def _cells(self) -> list[str]:
        """C lines: the first cells of tile and item; which of the item's are written, computed."""
        lines = ["// The first cell of the tile, and of the item; which of its cells are written."]
        for axis in self.tile.axes:
            tile = self.tile
            margin, cells = tile.margin[axis], tile.cells[axis]
            start = f"{self._group(axis)} * {tile.useful[axis]}L{plus(-margin)}"
            if axis == self.last and self.vector > 1:
                start += f" - ({self.own}_first & {self.vector - 1})"
            first = f"max(tile_{axis}{plus(margin)}, 0L)"
            last = f"min(tile_{axis}{plus(margin + tile.useful[axis])}, extent_{axis})"
            lines += [
                f"const long tile_{axis} = {start};",
                f"const long start_{axis} = tile_{axis} + item_{axis} * {cells};",
                self._side(f"first_{axis}", first, axis),
                self._side(f"last_{axis}", last, axis),
            ]
        return lines

    def _side(self, name: str, cell: str, axis: int) -> str:
        """A C line: a cell of the box as one of the item's, or at an end of them."""
        limit = f"kgt_limit({cell} - start_{axis}, 0, {self.tile.cells[axis]})"
        return f"const int {name} = (int){limit};"

    def edge(self) -> list[str]:
        """C lines: which of the item's cells are computed; for tiles where not all are."""
        lines = [
            line
            for axis in self.tile.axes
            for line in (
                self._side(f"lowest_{axis}", f"computed_first_{axis}", axis),
                self._side(f"highest_{axis}", f"computed_last_{axis}", axis),
            )
        ]
        whole = " && ".join(
            f"lowest_{axis} == 0 && highest_{axis} == {self.tile.cells[axis]}"
            for axis in self.tile.axes
        )
        return [*lines, f"const bool whole = {whole};"]

    def _group(self, axis: int) -> str:
        """C text of the number of the tile along an axis."""
        if self.n_axes == 4 and axis == 1:
            return f"((long)get_group_id(2) / {self._chunks()})"
        return f"(long)get_group_id({self.last - axis})"

    def _chunks(self) -> str:
        return "((extent_0 + kgt_length - 1) / kgt_length)"

    def _memory(self, field: str) -> list[str]:
        """C lines: the elements between which the cells that are needed lie."""
        low, high = self._offsets(field)
        lines = []
        for name, terms in (
            ("least", [self._edge(axis, low[axis], "max") for axis in range(self.n_axes)]),
            ("most", [self._edge(axis, high[axis], "min") for axis in range(self.n_axes)]),
        ):
            elements = [along(field, axis, self.n_axes, term) for axis, term in enumerate(terms)]
            lines += [
                f"const long {name}_{field} = {field}_first",
                *indented([f"+ {element}" for element in elements[:-1]]),
                f"{INDENT}+ {elements[-1]};",
            ]
        starts = [along(field, axis, self.n_axes, f"start_{axis}") for axis in self.tile.axes]
        return [*lines, f"const long at_{field} = {' + '.join([f'{field}_first', *starts])};"]

    def _edge(self, axis: int, offset: int, nearest: str) -> str:
        """C text of the first or last cell that the first step reads at an offset."""
        times = self.steps - 1
        if nearest == "max":
            grown = f"{-times * self.tile.low[axis]}L"
            return f"(max({grown}, computed_first_{axis}){plus(offset)})"
        grown = f"extent_{axis}{plus(times * self.tile.high[axis])}"
        return f"(min({grown}, computed_last_{axis}){plus(offset - 1)})"

    def _offsets(self, field: str) -> tuple[list[int], list[int]]:
        offsets = [read.offset for read in reads(self.stage.expression) if read.field == field]
        if field == self.own:
            offsets.append((0,) * self.n_axes)
        return [min(each) for each in zip(*offsets)], [max(each) for each in zip(*offsets)]

    def _planes(self) -> list[str]:
        """C lines: the planes that are loaded; those of them that need no tests."""
        inside = [
            f"tile_{axis} >= computed_first_{axis} && "
            f"tile_{axis}{plus(self.tile.items[axis] * self.tile.cells[axis])} "
            f"<= computed_last_{axis}"
            for axis in self.tile.axes
        ]
        lines = [
            f"bool inside = {inside[0]}",
            *indented([f"&& {test}" for test in inside[1:]]),
        ]
        lines[-1] += ";"
        if not self.tile.streams:
            return [
                *lines,
                *(line for field in self.fields for line in self._narrow(field)),
            ]
        low = self.tile.low[0]
        last_group = f"get_group_id({self.last})"
        chunk = last_group if self.n_axes < 4 else f"get_group_id(2) % {self._chunks()}"
        return block("""
            // The planes that are written, and those that are loaded for them.
            const long from = (long)$chunk * kgt_length;
            const long to = min(from + kgt_length, extent_0);
            long plane = max(from$before, computed_first_0$below);
            const long end = to$behind;
            // Those that are computed; no int is too small for the distance to them.
            const long lowest_0 = max(computed_first_0, plane - $far);
            const long highest_0 = min(computed_last_0, end + $far);
            // Without tests: planes where all of the tile is computed, and lies in memory.
            $inside
            long easy = max(plane, computed_first_0$behind);
            long hard = min(end, computed_last_0$least);
            $narrowed
            if (!inside || hard - easy < $unroll)
                easy = hard = end;
        """,
            chunk=chunk, before=plus(-self.steps * low), below=plus(-low),
            behind=plus(self.most_lag), least=plus(self.least_lag), far=FAR, inside=lines,
            narrowed=[line for field in self.fields for line in self._narrow(field)],
            unroll=self.unroll,
        )  # fmt: skip

    def _narrow(self, field: str) -> list[str]:
        """C lines: leave out planes at which the tile does not lie in memory."""
        low, high = self._offsets(field)
        if field == self.own:       # it is loaded as it arrives, and a few planes ahead
            low, high, first, last = [0] * self.n_axes, [0] * self.n_axes, 0, self.ahead
        else:
            first, last = low[0] - self.most_lag, high[0] - self.least_lag
        ends = [self._corner(field, low, False), self._corner(field, high, True)]
        if not self.tile.streams:
            return block("""
                if ($first < least_$u || $last > most_$u)
                    inside = false;
            """, u=field, first=ends[0], last=ends[1])
        planes = [f"(easy{plus(first)})", f"(hard{plus(last - 1)})"]
        elements = [along(field, 0, self.n_axes, plane) for plane in planes]
        return block("""
            while (easy < hard && $first + $easy < least_$u)
                ++easy;
            while (easy < hard && $last + $hard > most_$u)
                --hard;
        """, u=field, first=ends[0], last=ends[1], easy=elements[0], hard=elements[1])

    def _corner(self, field: str, offsets: Sequence[int], far: bool) -> str:
        """C text of the element of the tile's first or last cell, moved by offsets."""
        text = f"{field}_first"
        for axis in self.tile.axes:
            width = self.tile.items[axis] * self.tile.cells[axis] - 1 if far else 0
            text += f" + {along(field, axis, self.n_axes, self._cell(axis, offsets, width))}"
        return text

    def _cell(self, axis: int, offsets: Sequence[int], width: int) -> str:
        moved = plus(width + offsets[axis])
        return f"(tile_{axis}{moved})" if moved else f"tile_{axis}"
