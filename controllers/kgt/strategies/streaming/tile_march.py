# SPDX-License-Identifier: MIT
"""The loops of a kernel of the strategy "streaming": what happens as a plane arrives.

    inner   the tile is computed as a whole, and lies in memory: no tests
    edge    loads stay in memory, and cells that are not computed keep their value
    ends    the same where only whole planes are not computed: these are loaded
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from controllers.kgt.strategies.streaming.pipeline import KEPT, Pipeline
from controllers.kgt.strategies.streaming.tile import Tile
from controllers.kgt.strategies.streaming.tile_exchange import TileExchange
from controllers.kgt.strategies.streaming.tile_text import (
    along,
    each_cell,
    index,
    moved,
    plus,
    sizes,
    unrolled,
)
from controllers.kgt.text.c_lines import block, indented
from controllers.kgt.text.division import quotient_of
from controllers.kgt.text.emitter import INDENT, OPENCL_TYPES, assignment
from controllers.program.expression import Expression, Read
from controllers.program.program import Stage

ANY_OFFSETS = ((-(2**31) + 1, 2**31 - 1),) * 4
INNER, ENDS, EDGE = "inner", "ends", "edge"


class TileMarch:
    """Writes the lines.  The parameters are those of StreamingConfig."""

    def __init__(
        self, stage: Stage, dtype: str, tile: Tile, pipeline: Pipeline,
        *, steps: int, vector: int, ahead: int, prefetch: int, unroll: int, shuffles: bool,
        reciprocals: bool,
    ) -> None:  # fmt: skip
        self.stage, self.dtype, self.tile, self.pipeline = stage, dtype, tile, pipeline
        self.own, self.cell = stage.writes, OPENCL_TYPES[dtype]
        self.n_axes = len(stage.offsets)
        self.steps, self.vector, self.prefetch = steps, vector, prefetch
        self.ahead, self.unroll = (ahead, unroll) if tile.streams else (0, 1)
        self.exchange = TileExchange(stage, tile, self.cell, shuffles)
        self.quotient = quotient_of(pipeline.result, dtype) if reciprocals else None
        # where tiles at an edge find the cells of `lag` planes ago
        center = pipeline.center
        self.before = "before" if center is None else f"kept_{center}"

    def lines(self, edge: Sequence[str]) -> list[str]:
        """All of them; `edge`: which of the item's cells are computed."""
        if not self.tile.streams:
            return [*self._state(), "", *edge, *self._at_once(), *self._store()]
        if self.before != "before" or not self.pipeline.lag:    # one loop for all that is not inner
            return [*self._state(), "", *edge, *self._planes_in_turn(EDGE)]
        return block("""
            $state

            if (inside) {
                $ends
            } else {
                // an edge of what is computed: here other cells keep their value
                $edge
            }
        """,
            state=self._state(), ends=self._planes_in_turn(ENDS),
            edge=[*edge, *self._array("before", self.pipeline.lag), *self._each_plane("end", EDGE)],
        )  # fmt: skip

    def _at_once(self) -> list[str]:
        """C lines: tiles that are computed as a whole, where nothing streams.

        What is stored is stored at the end of the kernel: PoCL 3.0 ignores the tests of items in
        branches that end with it, after a barrier.
        """
        return [
            f"{self.cell} next{sizes(self.tile.block)};",
            "if (inside) {", *indented(self._plane(INNER)),
            "} else {", *indented(self._plane(EDGE)), "}",
        ]  # fmt: skip

    def _planes_in_turn(self, mode: str) -> list[str]:
        """C lines: the planes that need no tests, and, in a mode, those before and after."""
        inner = [*self._plane(INNER), *self._prefetch()]
        if self.unroll > 1:
            loop = f"for (int turn = 0; turn < {self.unroll}; ++turn, ++plane) {{"
            inner = ["#pragma unroll", loop, *indented(inner), "}"]
        else:
            inner.append("++plane;")
        return block("""
            while (plane < end) {
                while (plane >= easy && plane$turn <= hard) {
                    $inner
                }
                const long until = plane < easy ? easy : end;
                $others
            }
        """, turn=plus(self.unroll), inner=inner, others=self._each_plane("until", mode))

    def _each_plane(self, until: str, mode: str) -> list[str]:
        return [f"for (; plane < {until}; ++plane) {{", *indented(self._plane(mode)), "}"]

    def _state(self) -> list[str]:
        lines = ["// What is kept from plane to plane, for each step."]
        for number, value in enumerate(self.pipeline.values):
            lines += self._array(f"kept_{number}", value.depth)
        if self.ahead:
            lines.append(f"{self.cell} ahead{sizes((self.ahead, *self.tile.block))};")
        lines += self.exchange.memory()
        for age in range(self.ahead):
            lines += self._load(f"ahead[{age}]", age, limited=True)
        return lines

    def _array(self, name: str, depth: int) -> list[str]:
        """C lines: the array of a value that is kept."""
        loops = [("step", self.steps, 1), ("age", depth, 1)]
        loops += [(each, count, 1) for each, count in zip(self.tile.loops, self.tile.block)]
        block = sizes((self.steps, depth, *self.tile.block))
        zero = unrolled(loops, [f"{name}[step][age]{index(self.tile)} = 0;"])
        return [f"{self.cell} {name}{block};", *zero]

    def _plane(self, mode: str) -> list[str]:
        """C lines: what is done when the plane `plane` arrives."""
        tile, here = self.tile, index(self.tile)
        lines = [f"{self.cell} next{sizes(tile.block)};"] if tile.streams else []
        if self.ahead:
            lines += each_cell(tile, [f"next{here} = ahead[0]{here};"])
            for age in range(1, self.ahead):
                lines += each_cell(tile, [f"ahead[{age - 1}]{here} = ahead[{age}]{here};"])
            lines += self._load(f"ahead[{self.ahead - 1}]", self.ahead, mode != INNER)
        else:
            lines += self._load("next", 0, mode != INNER)
        if mode != INNER and tile.streams:
            lines += [
                "// how far this plane is from the first and the last one that is computed",
                "const int since = (int)(plane - lowest_0), past = (int)(plane - highest_0);",
            ]
        step = [
            f"{self.cell} cells{sizes(tile.extended)};",
            *each_cell(tile, [f"cells{index(tile, tile.before)} = next{here};"]),
            *self.exchange.lines(),
            *self._result(mode),
            *self._keep(mode),
        ]
        lines += unrolled([("step", self.steps, 1)], step)
        return lines + self._store() if tile.streams else lines

    def _load(self, target: str, away: int, limited: bool) -> list[str]:
        """C lines: load the item's cells of the plane `away` from the one that arrives."""
        u = self.own
        element = f"at_{u}{self._planes(u, plus(away))}{self._rows(u)} + i"
        to = f"{target}{''.join(f'[{name}]' for name in self.tile.loops[:-1])} + i"
        if limited:
            return self._vectors([f"kgt_load_near({to}, {u}, {element}, least_{u}, most_{u});"])
        return self._vectors([f"kgt_load({to}, {u}, {element});"])

    def _prefetch(self) -> list[str]:
        """C lines: have a plane brought to the second-level cache."""
        if not self.prefetch:
            return []
        u, away = self.own, plus(self.prefetch)
        element = f"at_{u}{self._planes(u, away)}{self._rows(u)}"
        rows = [(name, count, 1) for name, count in zip(self.tile.loops[:-1], self.tile.block)]
        fetch = unrolled(rows, [f"kgt_prefetch({u} + {element});"])
        return [f"if (plane{away} < hard) {{", *indented(fetch), "}"]

    def _vectors(self, lines: Sequence[str]) -> list[str]:
        counts = [*zip(self.tile.loops, self.tile.block)]
        loops = [(name, count, 1) for name, count in counts[:-1]]
        return unrolled([*loops, (*counts[-1], self.vector)], lines)

    def _planes(self, field: str, away: str) -> str:
        """C text that adds the elements up to the plane that arrives, or one away from it."""
        if not self.tile.streams:
            return ""
        plane = f"(plane{away})" if away else "plane"
        return f" + {along(field, 0, self.n_axes, plane)}"

    def _rows(self, field: str) -> str:
        pairs = zip(self.tile.loops[:-1], self.tile.axes[:-1])
        return "".join(f" + {along(field, axis, self.n_axes, name)}" for name, axis in pairs)

    def _result(self, mode: str) -> list[str]:
        """C lines: the cells of the next step."""
        tree = self.quotient[0] if self.quotient else self.pipeline.result
        target = f"next{index(self.tile)}"
        lines = each_cell(self.tile, self._value(target, tree, self.pipeline.lag, mode))
        if self.quotient:
            lines.append(f"kgt_divide(({self.cell} *)next);")
        if mode == INNER:
            return lines
        if self.tile.streams:
            lag = f"(step + 1) * {self.pipeline.lag}"
            lines.append(f"const bool computed = {lag} <= since && {lag} > past;")
        return lines + (self._reload() if mode == ENDS else self._restore())

    def _reload(self) -> list[str]:
        """C lines: a plane that is not computed is that of the field."""
        u, lag = self.own, self.pipeline.lag
        element = f"at_{u}{self._planes(u, f' - (step + 1) * {lag}')}{self._rows(u)} + i"
        to = f"next{''.join(f'[{name}]' for name in self.tile.loops[:-1])} + i"
        near = self._vectors([f"kgt_load_near({to}, {u}, {element}, least_{u}, most_{u});"])
        return ["if (!computed) {", *indented(near), "}"]

    def _restore(self) -> list[str]:
        """C lines: a cell that is not computed has the value it had before the step."""
        tile, lag, here = self.tile, self.pipeline.lag, index(self.tile)
        tests = ["computed"] if tile.streams else []
        for name, axis in zip(tile.loops, tile.axes):
            tests.append(f"{name} >= lowest_{axis} && {name} < highest_{axis}")
        before = f"{self.before}[step][{lag - 1}]{here}"
        if not lag:
            before = f"cells{index(tile, tile.before)}"
        restored = [f"if (!({' && '.join(tests)}))", f"{INDENT}next{here} = {before};"]
        some = "!computed || !whole" if tile.streams else "!whole"
        return [f"if ({some}) {{", *indented(each_cell(tile, restored)), "}"]

    def _keep(self, mode: str) -> list[str]:
        """C lines: the values that the plane that arrives gives to later results."""
        here, lines = index(self.tile), []
        for number, value in self.pipeline.order():
            name = f"kept_{number}[step]"
            lines += self._aged(name, value.depth)
            target = f"{name}[0]{here}"
            lines += each_cell(self.tile, self._value(target, value.tree, value.arrival, mode))
        if mode == EDGE and self.before == "before" and self.pipeline.lag:
            lines += self._aged("before[step]", self.pipeline.lag)
            cell = f"cells{index(self.tile, self.tile.before)}"
            lines += each_cell(self.tile, [f"before[step][0]{here} = {cell};"])
        return lines

    def _aged(self, name: str, depth: int) -> list[str]:
        here = index(self.tile)
        return [
            line
            for age in range(depth - 1, 0, -1)
            for line in each_cell(self.tile, [f"{name}[{age}]{here} = {name}[{age - 1}]{here};"])
        ]

    def _value(self, target: str, tree: Expression, arrival: int, mode: str) -> list[str]:
        """C lines: assign a part of the expression that is complete at `arrival`."""
        everywhere = ANY_OFFSETS[: self.n_axes]
        part = replace(self.stage, updates={self.own: tree}, offsets=everywhere)
        return assignment(target, part, self.dtype, lambda at: self._read(at, arrival, mode))

    def _read(self, read: Read, arrival: int, mode: str) -> str:
        tile, field = self.tile, read.field
        if field == KEPT:
            number, delay = read.offset[:2]
            return f"kept_{number}[step][{delay - 1}]{index(tile)}"
        inner = tile.inner(read.offset)
        if field == self.own:
            return f"cells{index(tile, moved(inner, tile.before))}"
        lag = self.pipeline.lag
        away = (f" - step * {lag}" if lag else "") + plus(read.offset[0] - arrival)
        element = f"at_{field}{self._planes(field, away)}"
        for name, axis, step in zip(tile.loops, tile.axes, inner):
            cells = f"({name}{plus(step)})" if step else name
            element += f" + {along(field, axis, self.n_axes, cells)}"
        if mode != INNER:
            element = f"kgt_limit({element}, least_{field}, most_{field})"
        return f"{field}[{element}]"

    def _store(self) -> list[str]:
        """C lines: write the plane that is complete."""
        tile, u = self.tile, self.own
        behind = plus(-self.steps * self.pipeline.lag)
        element = f"at_{u}{self._planes(u, behind)}{self._rows(u)} + i"
        inner, last = "".join(f"[{name}]" for name in tile.loops[:-1]), tile.axes[-1]
        sides = f"first_{last} - i, last_{last} - i"
        lines = [f"kgt_store({u}_new + {element}, next{inner} + i, {sides});"]
        rows = [
            f"{name} >= first_{axis} && {name} < last_{axis}"
            for name, axis in zip(tile.loops[:-1], tile.axes[:-1])
        ]
        if rows:
            lines = [f"if ({' && '.join(rows)})", INDENT + lines[0]]
        lines = self._vectors(lines)
        if not tile.streams:
            return lines
        return [
            f"if (plane{behind} >= from) {{", *indented(lines), "}"
        ]

