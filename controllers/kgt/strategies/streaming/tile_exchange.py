# SPDX-License-Identifier: MIT
"""How the items of a group hand cells to each other: through local memory, or by shuffles.

    edges, of one step           slot 0 of all items | slot 1 of all items | ...
                                 an item reads the slot of a cell, so many items further

A slot is a cell of the block that some other item needs.  All items of a warp access neighbouring
elements.  What an item at the edge of the tile reads is junk, from another slot or from the `pad`.
There are two sides, in turn, so that one barrier per step is enough.
"""
from __future__ import annotations

from controllers.kgt.strategies.streaming.tile import Tile
from controllers.kgt.strategies.streaming.tile_text import moved, plus, sizes
from controllers.program.program import Stage


class TileExchange:
    """Writes the lines."""

    def __init__(self, stage: Stage, tile: Tile, cell: str, shuffles: bool) -> None:
        self.tile, self.cell = tile, cell
        self.hand_overs = tile.hand_overs(stage, shuffles)
        local = [each for each in self.hand_overs if not each.shuffled]
        self.slots = sorted({each.cell for each in local})
        self.pad = max([0, *(abs(each.away) for each in local)])

    @property
    def shuffles(self) -> bool:
        """Whether cells are handed over by shuffles."""
        return any(each.shuffled for each in self.hand_overs)

    def memory(self) -> list[str]:
        """C lines: the local memory."""
        if not self.slots:
            return []
        return [
            f"__local {self.cell} edges[{2 * self._side()}];",
            f"int side = {self.pad};",
        ]

    def lines(self) -> list[str]:
        """C lines: fill the part of the array `cells` that other items have."""
        tile, lines = self.tile, []
        for number, slot in enumerate(self.slots):
            at = f"edges[side + item{plus(number * tile.n_items)}]"
            lines.append(f"{at} = cells{sizes(moved(slot, tile.before))};")
        if self.slots:
            lines.append("barrier(CLK_LOCAL_MEM_FENCE);")
        for each in self.hand_overs:
            if each.shuffled:
                word = "before" if each.away < 0 else "after"
                cell = f"cells{sizes(moved(each.cell, tile.before))}"
                value = f"kgt_{word}({cell}, {abs(each.away)})"
            else:
                away = self.slots.index(each.cell) * tile.n_items + each.away
                value = f"edges[side + item{plus(away)}]"
            lines.append(f"cells{sizes(moved(each.to, tile.before))} = {value};")
        if self.slots:
            lines.append(f"side = {self._side() + 2 * self.pad} - side;")
        return lines

    def _side(self) -> int:
        return len(self.slots) * self.tile.n_items + 2 * self.pad
