# SPDX-License-Identifier: MIT
"""The loops of a kernel of the strategy "streaming": what happens as a plane arrives.

The modes of the planes, INNER, ENDS and EDGE, are those of `tile_step`.
"""
from __future__ import annotations

from collections.abc import Sequence

from controllers.kgt.strategies.streaming.design import Design
from controllers.kgt.strategies.streaming.tile_step import EDGE, ENDS, INNER, TileStep
from controllers.kgt.strategies.streaming.tile_text import sizes, unrolled
from controllers.kgt.strategies.streaming.tile_traffic import TileTraffic
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.c_text import plus


class TileMarch:
    """Writes the lines."""

    def __init__(self, design: Design) -> None:
        self.design, self.tile, self.cell = design, design.tile, design.cell
        self.traffic, self.step = TileTraffic(design), TileStep(design)
        self.ahead = design.parameters.ahead if design.tile.streams else 0

    def lines(self, edge: Sequence[str]) -> list[str]:
        """All of them; `edge`: which of the item's cells are computed."""
        return block("""
            $state

            $planes
        """, state=self._state(), planes=self._planes(edge))

    def _planes(self, edge: Sequence[str]) -> list[str]:
        if not self.tile.streams:
            return self._at_once(edge)
        if not self.step.keeps_before:      # one loop for all that is not inner
            return [*edge, *self.step.mirrors.state(), *self._in_turn(EDGE)]
        return block("""
            if (inside) {
                $in_turn
            } else {
                // an edge of what is computed: here other cells keep their value
                $edge
                $before
                $each
            }
        """,
            in_turn=self._in_turn(ENDS), edge=edge, before=self._array("before", self.design.lag),
            each=[*self.step.mirrors.state(), *self._each_plane("end", EDGE)],
        )  # fmt: skip

    def _at_once(self, edge: Sequence[str]) -> list[str]:
        """C lines: tiles that are computed as a whole, where nothing streams.

        What is stored is stored at the end of the kernel: PoCL 3.0 ignores the tests of items in
        branches that end with it, after a barrier.
        """
        return block("""
            $edge
            $cell $arrays;
            if (inside) {
                $inner
            } else {
                $tested
            }
            $store
        """,
            edge=edge, cell=self.cell, arrays=self._arrays(), store=self.traffic.store(),
            inner=[*self._arrive(INNER), *self._steps(INNER)],
            tested=[*self._arrive(EDGE), *self._steps(EDGE)],
        )  # fmt: skip

    def _in_turn(self, mode: str) -> list[str]:
        """C lines: the planes that need no tests, and, in a mode, those before and after."""
        unroll = self.design.parameters.unroll
        return block("""
            while (plane < end) {
                while (plane >= easy && plane$turn <= hard) {
                    $inner
                }
                const long until = plane < easy ? easy : end;
                $others
            }
        """, turn=plus(unroll), inner=self._turn(unroll), others=self._each_plane("until", mode))

    def _turn(self, unroll: int) -> list[str]:
        """C lines: so many planes that need no tests."""
        inner = [*self._plane(INNER), *self.traffic.prefetch()]
        if unroll == 1:
            return [*inner, "++plane;"]
        return block("""
            #pragma unroll
            for (int turn = 0; turn < $unroll; ++turn, ++plane) {
                $inner
            }
        """, unroll=unroll, inner=inner)

    def _each_plane(self, until: str, mode: str) -> list[str]:
        """C lines: the planes up to `until`."""
        return block("""
            for (; plane < $until; ++plane) {
                $plane
            }
        """, until=until, plane=self._plane(mode))

    def _plane(self, mode: str) -> list[str]:
        """C lines: what is done when the plane `plane` arrives."""
        distances = [] if mode == INNER else block("""
            // how far this plane is from the first and the last one that is computed
            const int since = (int)(plane - lowest_0), past = (int)(plane - highest_0);
        """)
        return block("""
            $cell $arrays;
            $arrive
            $distances
            $steps
            $store
        """,
            cell=self.cell, arrays=self._arrays(), arrive=self._arrive(mode),
            distances=distances, steps=self._steps(mode),
            store=self.traffic.store(at_end=mode == EDGE),
        )  # fmt: skip

    def _steps(self, mode: str) -> list[str]:
        return unrolled([("step", self.design.steps, 1)], self.step.lines(mode))

    def _arrays(self) -> str:
        """C text that declares what holds cells between steps."""
        return ", ".join(f"{name}{sizes(self.tile.block)}" for name in self.design.stored.values())

    def _arrive(self, mode: str) -> list[str]:
        """C lines: a plane of each field, which may have been asked for a few planes ago."""
        lines, limited = [], mode != INNER
        for field, lag in self.traffic.lags.items():
            target, coming = self.design.stored[field], self._coming(field)
            if self.ahead:
                lines += self.design.copied(target, f"{coming}[0]")
                target = f"{coming}[{self.ahead - 1}]"
            for age in range(1, self.ahead):
                lines += self.design.copied(f"{coming}[{age - 1}]", f"{coming}[{age}]")
            lines += self.traffic.load(target, plus(self.ahead - lag), limited, field)
        return lines

    def _coming(self, field: str) -> str:
        """The array of the planes of a field that have been asked for."""
        return "ahead" if field == self.design.own else "coming"

    def _state(self) -> list[str]:
        """C lines: what is kept from plane to plane."""
        kept = [self._array(f"kept_{number}", value.depth)
                for number, value in enumerate(self.design.pipeline.values)]  # fmt: skip
        lags = self.traffic.lags
        loads = [
            self.traffic.load(f"{self._coming(field)}[{age}]", plus(age - lag), True, field)
            for field, lag in lags.items() for age in range(self.ahead)
        ]  # fmt: skip
        shape = sizes((self.ahead, *self.tile.block))
        ahead = [f"{self.cell} {self._coming(field)}{shape};" for field in lags]
        return block("""
            // What is kept from plane to plane, for each step.
            $kept
            $ahead
            $edges
            $loads
        """,
            kept=[line for lines in kept for line in lines], ahead=ahead if self.ahead else [],
            edges=[*self.step.exchange.memory(), *self.step.mirrors.memory()],
            loads=[line for lines in loads for line in lines],
        )  # fmt: skip

    def _array(self, name: str, depth: int) -> list[str]:
        """C lines: the array of a value that is kept."""
        loops = [("step", self.design.steps, 1), ("age", depth, 1)]
        loops += [(each, count, 1) for each, count in zip(self.tile.loops, self.tile.block)]
        return block("""
            $cell $name$sizes;
            $zero
        """,
            cell=self.cell, name=name,
            sizes=sizes((self.design.steps, depth, *self.tile.block)),
            zero=unrolled(loops, [f"{name}[step][age]{self.design.index()} = 0;"]),
        )  # fmt: skip
