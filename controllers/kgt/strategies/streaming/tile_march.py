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
            $cell next$sizes;
            if (inside) {
                $inner
            } else {
                $tested
            }
            $store
        """,
            edge=edge, cell=self.cell, sizes=sizes(self.tile.block), store=self.traffic.store(),
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
            $cell next$sizes;
            $arrive
            $distances
            $steps
            $store
        """,
            cell=self.cell, sizes=sizes(self.tile.block), arrive=self._arrive(mode),
            distances=distances, steps=self._steps(mode),
            store=self.traffic.store(at_end=mode == EDGE),
        )  # fmt: skip

    def _steps(self, mode: str) -> list[str]:
        return unrolled([("step", self.design.steps, 1)], self.step.lines(mode))

    def _arrive(self, mode: str) -> list[str]:
        """C lines: the plane, which may have been asked for a few planes ago."""
        limited = mode != INNER
        if not self.ahead:
            return self.traffic.load("next", "", limited)
        lines = self.design.copied("next", "ahead[0]")
        for age in range(1, self.ahead):
            lines += self.design.copied(f"ahead[{age - 1}]", f"ahead[{age}]")
        last = f"ahead[{self.ahead - 1}]"
        return lines + self.traffic.load(last, plus(self.ahead), limited)

    def _state(self) -> list[str]:
        """C lines: what is kept from plane to plane."""
        kept = [self._array(f"kept_{number}", value.depth)
                for number, value in enumerate(self.design.pipeline.values)]  # fmt: skip
        loads = [self.traffic.load(f"ahead[{age}]", plus(age), limited=True)
                 for age in range(self.ahead)]  # fmt: skip
        ahead = f"{self.cell} ahead{sizes((self.ahead, *self.tile.block))};"
        return block("""
            // What is kept from plane to plane, for each step.
            $kept
            $ahead
            $edges
            $loads
        """,
            kept=[line for lines in kept for line in lines], ahead=[ahead] if self.ahead else [],
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
