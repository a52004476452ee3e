# SPDX-License-Identifier: MIT
"""How an item of a "streaming" kernel loads its cells of a plane, and stores them."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.kgt.strategies.streaming.design import Design
from controllers.kgt.strategies.streaming.tile_text import unrolled
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.c_text import plus


class TileTraffic:
    """Writes the lines.  `away`: C text that adds to the number of the plane that arrives."""

    def __init__(self, design: Design) -> None:
        self.design, self.tile, self.own = design, design.tile, design.own
        self.rows = "".join(f"[{name}]" for name in design.tile.loops[:-1])

    def load(self, target: str, away: str, limited: bool) -> list[str]:
        """C lines: load the item's cells of a plane; `limited`: only those that lie in memory."""
        near, ends = ("_near", f", least_{self.own}, most_{self.own}") if limited else ("", "")
        return self._vectors(block(
            "kgt_load$near($target$rows + i, $u, $at + i$ends);",
            near=near, target=target, rows=self.rows, u=self.own, at=self._row(away), ends=ends,
        ))  # fmt: skip

    def prefetch(self) -> list[str]:
        """C lines: have a plane brought to the second-level cache."""
        distance = self.design.parameters.prefetch
        if not distance:
            return []
        rows = [(name, count, 1) for name, count in zip(self.tile.loops[:-1], self.tile.block)]
        at = self._row(plus(distance))
        return block("""
            if (plane$away < hard) {
                $fetch
            }
        """, away=plus(distance), fetch=unrolled(rows, [f"kgt_prefetch({self.own} + {at});"]))

    def store(self, at_end: bool = False) -> list[str]:
        """C lines: write the plane that is complete; `at_end`: planes may be held back."""
        behind = plus(-self.design.steps * self.design.lag)
        if at_end and self.design.most_delay:
            behind += f" - {self.design.steps - 1} * delay"
        store = block(
            "kgt_store(${u}_new + $at + i, next$rows + i, first_$x - i, last_$x - i);",
            u=self.own, at=self._row(behind), rows=self.rows, x=self.tile.axes[-1],
        )  # fmt: skip
        if self.rows:
            store = block("""
                if ($written)
                    $store
            """, store=store, written=" && ".join(
                f"{name} >= first_{axis} && {name} < last_{axis}"
                for name, axis in zip(self.tile.loops[:-1], self.tile.axes)
            ))
        stored = self._vectors(store)
        if not self.tile.streams:
            return stored
        return block("""
            if (plane$behind >= from) {
                $stored
            }
        """, behind=behind, stored=stored)

    def _row(self, away: str) -> str:
        """C text of the element of the item's first cell in the row of the loops."""
        text = f"at_{self.own}{self.plane(self.own, away)}"
        for name, axis in zip(self.tile.loops[:-1], self.tile.axes):
            text += f" + {self.design.along(self.own, axis, name)}"
        return text

    def plane(self, field: str, away: str) -> str:
        """C text that adds the elements of a field up to a plane; none where nothing streams."""
        if not self.tile.streams:
            return ""
        return f" + {self.design.along(field, 0, f'(plane{away})' if away else 'plane')}"

    def _vectors(self, lines: Sequence[str]) -> list[str]:
        """C lines: `lines` for each vector of an item's cells."""
        *rows, (name, count) = zip(self.tile.loops, self.tile.block)
        loops = [*((*row, 1) for row in rows), (name, count, self.design.parameters.vector)]
        return unrolled(loops, lines)
