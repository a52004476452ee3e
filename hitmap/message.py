# SPDX-License-Identifier: MIT
"""Messages of halo patterns: which cells go from one place to another."""
from __future__ import annotations

from dataclasses import dataclass

from hitmap.shape import Shape


@dataclass(frozen=True, slots=True)
class Message:
    """Cells that one place sends to another, or to itself across a periodic end.

    `halo` holds the boxes as the target numbers them, outside its owned box, disjoint, packed
    one after another, each in C order.  Target coordinates are source coordinates plus `shift`:
    multiples of the domain's extent, 0 on fixed axes.
    """

    source: int
    target: int
    shift: tuple[int, ...]
    halo: tuple[Shape, ...]

    @property
    def border(self) -> tuple[Shape, ...]:
        """The same cells as the source numbers them, inside its owned box."""
        back = tuple(-step for step in self.shift)
        return tuple(box.shift(back) for box in self.halo)

    @property
    def n_cells(self) -> int:
        """Cells in the message."""
        return sum(box.n_cells for box in self.halo)

    def __str__(self) -> str:
        text = f"place {self.source} -> {self.target}: {' + '.join(map(str, self.border))}"
        if any(self.shift):
            text += f" as {' + '.join(map(str, self.halo))}"
        return f"{text}, {counted(self.n_cells, 'cell')}"


def counted(count: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
