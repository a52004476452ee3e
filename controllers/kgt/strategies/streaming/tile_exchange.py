# SPDX-License-Identifier: MIT
"""How the items of a group hand cells to each other: through local memory, or by shuffles.

    edges, of one step           slot 0 of all items | slot 1 of all items | ...
                                 an item reads the slot of a cell, so many items further

A slot is a cell of the block that some other item needs.  All items of a warp access neighbouring
elements.  What an item at the edge of the tile reads is junk, from another slot or from the `pad`.
There are two sides, in turn, so that one barrier per step is enough.
"""
from __future__ import annotations

from controllers.kgt.strategies.streaming.design import Design
from controllers.kgt.strategies.streaming.tile import HandOver
from controllers.kgt.strategies.streaming.tile_text import moved, sizes
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.c_text import plus


class TileExchange:
    """Writes the lines."""

    def __init__(self, design: Design) -> None:
        self.tile, self.cell = design.tile, design.cell
        self.hand_overs = design.tile.hand_overs(design.lead, design.parameters.shuffles)
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
        return block("""
            __local $cell edges[$both_sides];
            int side = $pad;
        """, cell=self.cell, both_sides=self.n_cells, pad=self.pad)

    @property
    def n_cells(self) -> int:
        """Cells that there is room for: on both sides."""
        return 2 * self._side()

    def lines(self) -> list[str]:
        """C lines: fill the part of the array `cells` that other items have."""
        taken = [f"{self._cell(each.to)} = {self._value(each)};" for each in self.hand_overs]
        if not self.slots:
            return taken
        return block("""
            $given
            barrier(CLK_LOCAL_MEM_FENCE);
            $taken
            side = $sides - side;
        """,
            given=[f"{self._edge(number)} = {self._cell(slot)};"
                   for number, slot in enumerate(self.slots)],
            taken=taken, sides=self._side() + 2 * self.pad,
        )  # fmt: skip

    def _value(self, each: HandOver) -> str:
        """C text of a cell that another item has."""
        if not each.shuffled:
            return self._edge(self.slots.index(each.cell), each.away)
        word = "before" if each.away < 0 else "after"
        return f"kgt_{word}({self._cell(each.cell)}, {abs(each.away)})"

    def _edge(self, slot: int, away: int = 0) -> str:
        """C text of a slot of the item so many items away."""
        return f"edges[side + item{plus(slot * self.tile.n_items + away)}]"

    def _cell(self, place: tuple[int, ...]) -> str:
        """C text of the cell at a place that counts from the item's first cell."""
        return f"cells{sizes(moved(place, self.tile.before))}"

    def _side(self) -> int:
        return len(self.slots) * self.tile.n_items + 2 * self.pad
