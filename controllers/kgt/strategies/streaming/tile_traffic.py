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

    def load(self, target: str, away: str, limited: bool, field: str = "") -> list[str]:
        """C lines: load the item's cells of a plane; `limited`: only those that lie in memory.

        field: by default the one that each step computes.
        """
        field = field or self.own
        near, ends = ("_near", f", least_{field}, most_{field}") if limited else ("", "")
        return self._vectors(block(
            "kgt_load$near($target$rows + i, $u, $at + i$ends);", near=near, target=target,
            rows=self.rows, u=field, at=self._row(field, away), ends=ends,
        ))  # fmt: skip

    def prefetch(self) -> list[str]:
        """C lines: have a plane brought to the second-level cache."""
        distance = self.design.parameters.prefetch
        if not distance:
            return []
        rows = [(name, count, 1) for name, count in zip(self.tile.loops[:-1], self.tile.block)]
        fetches = [
            f"kgt_prefetch({field} + {self._row(field, plus(distance - lag))});"
            for field, lag in self.lags.items()
        ]
        return block("""
            if (plane$away < hard) {
                $fetch
            }
        """, away=plus(distance), fetch=unrolled(rows, fetches))

    @property
    def lags(self) -> dict[str, int]:
        """The fields of which planes are loaded, and how far behind the one that arrives."""
        return {field: self.design.lag * (field != self.own) for field in self.design.stored}

    def store(self, at_end: bool = False) -> list[str]:
        """C lines: write the plane that is complete; `at_end`: planes may be held back."""
        behind = plus(-self.design.steps * self.design.lag)
        if at_end and self.design.most_delay:
            behind += f" - {self.design.steps - 1} * delay"
        store = [
            f"kgt_store({field}_new + {self._row(field, behind)} + i, {array}{self.rows} + i, "
            f"first_{self.tile.axes[-1]} - i, last_{self.tile.axes[-1]} - i);"
            for field, array in self.design.stored.items()
        ]
        if self.rows:
            store = block("""
                if ($written) {
                    $store
                }
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

    def _row(self, field: str, away: str) -> str:
        """C text of the element of the item's first cell in the row of the loops."""
        text = f"at_{field}{self.plane(field, away)}"
        for name, axis in zip(self.tile.loops[:-1], self.tile.axes):
            text += f" + {self.design.along(field, axis, name)}"
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
