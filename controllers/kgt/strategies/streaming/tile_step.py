# SPDX-License-Identifier: MIT
"""One time step of a plane in a kernel of the strategy "streaming", in one of three modes.

    inner   the tile is computed as a whole, and lies in memory: no tests
    edge    loads stay in memory, and cells that are not computed keep their value, or show others
    ends    the same where only whole planes are not computed, and keep theirs: these are loaded
"""
from __future__ import annotations

from dataclasses import replace

from controllers.kgt.strategies.streaming.design import Design
from controllers.kgt.strategies.streaming.pipeline import KEPT
from controllers.kgt.strategies.streaming.tile_exchange import TileExchange
from controllers.kgt.strategies.streaming.tile_mirrors import TileMirrors
from controllers.kgt.strategies.streaming.tile_text import moved, sizes
from controllers.kgt.strategies.streaming.tile_traffic import TileTraffic
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.c_text import plus
from controllers.kgt.text.division import quotient_of
from controllers.kgt.text.emitter import assignment
from controllers.program.expression import Expression, Read

ANY_OFFSETS = ((-(2**31) + 1, 2**31 - 1),) * 4
INNER, ENDS, EDGE = "inner", "ends", "edge"


class TileStep:
    """Writes the lines."""

    def __init__(self, design: Design) -> None:
        self.design, self.tile, self.pipeline = design, design.tile, design.pipeline
        self.traffic, self.exchange = TileTraffic(design), TileExchange(design)
        self.mirrors = TileMirrors(design)
        divides = design.parameters.reciprocals
        self.quotient = quotient_of(self.pipeline.result, design.dtype) if divides else None
        # where tiles at an edge find the cells of `lag` planes ago
        center = self.pipeline.center
        self.before = "before" if center is None else f"kept_{center}"

    @property
    def keeps_before(self) -> bool:
        """Whether tiles at an edge keep the cells of `lag` planes ago for themselves."""
        return self.before == "before" and self.design.lag > 0

    def lines(self, mode: str) -> list[str]:
        """C lines: from the cells of the step before to those of this one."""
        return block("""
            $type cells$sizes;
            $taken
            $exchanged
            $result
            $behind
            $kept
            $mirrored
        """,
            type=self.design.cell, sizes=sizes(self.tile.extended),
            taken=self._taken(), exchanged=self.exchange.lines(),
            result=self._result(mode), kept=self._kept(mode),
            behind=self._behind(mode) if self.design.follower else [],
            mirrored=self.mirrors.lines() if mode == EDGE else [],
        )  # fmt: skip

    def _taken(self) -> list[str]:
        """C lines: the item's cells of the plane that is handed over."""
        late, here = self.pipeline.handed_late, self.design.index()
        source = f"{self.before}[step][{late - 1}]" if late else "next"
        lines = self.design.each_cell([f"{self.design.arrived} = {source}{here};"])
        if not late:
            return lines
        fresh = f"{self.design.cell} fresh{sizes(self.tile.block)};"
        return [*lines, fresh, *self.design.copied("fresh", "next")]

    def _result(self, mode: str) -> list[str]:
        """C lines: the cells of the next step."""
        tree = self.quotient[0] if self.quotient else self.pipeline.result
        lines = self._values("next", tree, self.design.lag, mode)
        if self.quotient:
            lines.append(f"kgt_divide(({self.design.cell} *)next);")
        if mode == INNER:
            return lines
        others = self._loaded() if mode == ENDS else self._restored()
        return [*lines, *self._computed(mode), *others]

    def _computed(self, mode: str) -> list[str]:
        """C lines: whether the plane is computed at all, where planes arrive."""
        if not self.tile.streams:
            return []
        held = " + step * delay" if self._delay(mode) else ""
        behind = f"(step + 1) * {self.design.lag}{held}"
        return [f"const bool computed = {behind} <= since && {behind} > past;"]

    def _delay(self, mode: str) -> str:
        """C text of the planes that are held back between two steps, if any may be."""
        return "delay" if mode == EDGE and self.design.most_delay else ""

    def _loaded(self) -> list[str]:
        """C lines: a plane that is not computed is that of the field."""
        return block("""
            if (!computed) {
                $load
            }
        """, load=self.traffic.load("next", f" - (step + 1) * {self.design.lag}", limited=True))

    def _restored(self) -> list[str]:
        """C lines: a cell that is not computed has the value it had before the step."""
        tests = [
            f"{name} >= lowest_{axis} && {name} < highest_{axis}"
            for name, axis in zip(self.tile.loops, self.tile.axes)
        ]
        here, lag, streams = self.design.index(), self.design.lag, self.tile.streams
        restored = block("""
            if (!($computed))
                next$here = $before;
        """,
            computed=" && ".join(["computed", *tests] if streams else tests), here=here,
            before=f"{self.before}[step][{lag - 1}]{here}" if lag else self.design.arrived,
        )  # fmt: skip
        return block("""
            if ($some) {
                $restored
            }
        """, some="!computed || !whole" if streams else "!whole",
            restored=self.design.each_cell(restored))

    def _behind(self, mode: str) -> list[str]:
        """C lines: what the next step reads of the field that follows, or what is stored of it."""
        last, earlier = (
            None if tree is None else self._read(tree, 0, mode)
            for tree in (self.pipeline.last, self.pipeline.earlier) if isinstance(tree, Read)
        )
        here, most = f"behind{self.design.index()}", self.design.steps - 1
        lines = self.design.each_cell([f"{here} = step < {most} ? {earlier} : {last};"])
        return [*lines, *(self.mirrors.held_back() if self._delay(mode) else [])]

    def _kept(self, mode: str) -> list[str]:
        """C lines: the values that the plane that arrives gives to later results."""
        lines = []
        for number, value in self.pipeline.order():
            name = f"kept_{number}[step]"
            lines += self._aged(name, value.depth)
            lines += self._values(f"{name}[0]", value.tree, value.arrival, mode)
        if mode == EDGE and self.keeps_before:
            lines += self._aged("before[step]", self.design.lag)
            here = self.design.index()
            lines += self.design.each_cell([f"before[step][0]{here} = {self.design.arrived};"])
        return lines

    def _aged(self, name: str, depth: int) -> list[str]:
        """C lines: what was kept, a plane older."""
        ages = range(depth - 1, 0, -1)
        each = (self.design.copied(f"{name}[{age}]", f"{name}[{age - 1}]") for age in ages)
        return [line for lines in each for line in lines]

    def _values(self, target: str, tree: Expression, arrival: int, mode: str) -> list[str]:
        """C lines: all cells of a part of the expression that is complete at `arrival`."""
        everywhere = ANY_OFFSETS[: self.design.n_axes]
        part = replace(self.design.lead, updates={self.design.own: tree}, offsets=everywhere)
        return self.design.each_cell(assignment(
            f"{target}{self.design.index()}", part, self.design.dtype,
            lambda at: self._read(at, arrival, mode),
        ))  # fmt: skip

    def _read(self, read: Read, arrival: int, mode: str) -> str:
        """C text of a read: a kept value, a cell that arrived, or one in memory."""
        if read.field == KEPT:
            number, delay = read.offset[:2]
            return f"kept_{number}[step][{delay - 1}]{self.design.index()}"
        inner = self.tile.inner(read.offset)
        if read.field == self.design.own and self.pipeline.handed_late and not any(inner):
            return f"fresh{self.design.index()}"
        if read.field == self.design.own:
            return f"cells{self.design.index(moved(inner, self.tile.before))}"
        if read.field == self.design.follower:
            return f"behind{self.design.index()}"
        return self._in_memory(read.field, read.offset[0] - arrival, inner, mode)

    def _in_memory(self, field: str, planes: int, inner: tuple[int, ...], mode: str) -> str:
        """C text of a cell of a field that is only read."""
        apart = self.design.apart(self._delay(mode))
        behind = f" - step * {apart}" if apart != "0" else ""
        element = f"at_{field}{self.traffic.plane(field, behind + plus(planes))}"
        for name, axis, step in zip(self.tile.loops, self.tile.axes, inner):
            cells = f"({name}{plus(step)})" if step else name
            element += f" + {self.design.along(field, axis, cells)}"
        if mode != INNER:
            element = f"kgt_limit({element}, least_{field}, most_{field})"
        return f"{field}[{element}]"
