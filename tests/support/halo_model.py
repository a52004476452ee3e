# SPDX-License-Identifier: MIT
"""What a halo pattern must do, cell by cell: slow, and simple enough to be believed."""
from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence

from hitmap import HaloPattern, Layout, Message, Shape

Cell = tuple[int, ...]


def cells(box: Shape) -> list[Cell]:
    return list(itertools.product(*map(range, box.lower, box.upper)))


def consecutive(some: list[Cell], tile: Shape) -> bool:
    """Whether `some` cells lie one after another in an array over `tile`."""
    position = {cell: number for number, cell in enumerate(cells(tile))}
    at = [position[cell] for cell in some if cell in position]
    return at == list(range(at[0], at[0] + len(some))) if at else False


class Model:
    """What each place must receive, found cell by cell."""

    def __init__(
        self,
        layout: Layout,
        offsets: Sequence[Cell],
        periodic: tuple[bool, ...],
        updated: Shape,
        source: Callable[[Cell], Cell | None] = lambda cell: None,
    ) -> None:
        """`source` says of which cell one outside is made, if of any."""
        self.domain = layout.domain
        self.periodic = periodic
        self.owner = {c: place for place, box in enumerate(layout.owned) for c in cells(box)}
        self.needed: list[set[Cell]] = []
        self.outside: list[set[Cell]] = []
        for place, box in enumerate(layout.owned):
            read = {
                tuple(i + step for i, step in zip(cell, offset, strict=True))
                for cell in cells(box & updated)
                for offset in offsets
            }
            mine = set(cells(box))
            outside = {c for c in read if self.wrapped(c) not in self.owner and source(c)}
            self.outside.append(outside)
            read |= {made for made in map(source, outside) if made}
            self.needed.append({c for c in read - mine if self.wrapped(c) in self.owner})
            assert all(self.owner[c] == place for c in mine)

    def wrapped(self, cell: Cell) -> Cell:
        axes = zip(cell, self.domain.lower, self.domain.extent, self.periodic, strict=True)
        return tuple((i - lo) % n + lo if wraps else i for i, lo, n, wraps in axes)

    def full(self, layout: Layout, place: int) -> Shape:
        held = [*cells(layout.owned[place]), *self.needed[place], *self.outside[place]]
        if not held:
            return layout.owned[place]
        ends = [(min(along), max(along) + 1) for along in zip(*held, strict=True)]
        return Shape(*map(tuple, zip(*ends, strict=True)))

    def check(self, layout: Layout, messages: tuple[Message, ...]) -> None:
        """Each needed cell comes once, from its owner; nothing else but declared supersets."""
        received: list[Counter[Cell]] = [Counter() for _ in layout.owned]
        for message in messages:
            halo = [cell for box in message.halo for cell in cells(box)]
            border = [cell for box in message.border for cell in cells(box)]
            assert len(halo) == message.n_cells > 0, "a message has cells"
            assert [self.wrapped(cell) for cell in halo] == border, "the shift is the wrap"
            assert {self.owner[cell] for cell in border} == {message.source}, "owned by the source"
            assert all(box in layout.owned[message.source] for box in message.border)
            target = message.target
            received[target].update(halo)
            useful = self.needed[target].intersection(halo)
            if len(useful) < len(halo):
                assert len(message.halo) == 1 and 4 * len(halo) <= 5 * len(useful)
                source = self.full(layout, message.source).shift(message.shift)
                tiles = source, self.full(layout, target)
                assert any(consecutive(halo, tile) for tile in tiles), "a superset is one run"
        for needed, got, owned in zip(self.needed, received, layout.owned, strict=True):
            assert needed <= set(got), "every needed cell is received"
            assert set(got.values()) <= {1}, "nothing twice"
            assert not set(got).intersection(cells(owned)), "owned cells are not received"
        keys = [(message.target, message.source, message.shift) for message in messages]
        assert keys == sorted(set(keys)), "one message per target, source and shift, in order"

    def check_pattern(self, layout: Layout, pattern: HaloPattern) -> None:
        self.check(layout, pattern.messages)
        assert pattern.n_cells_needed == sum(map(len, self.needed))
        assert pattern.n_cells == sum(message.n_cells for message in pattern.messages)
        for place in range(layout.n_places):
            incoming = pattern.incoming(place)
            assert incoming == tuple(m for m in pattern.messages if m.target == place)
            assert pattern.outgoing(place) == tuple(
                m for m in pattern.messages if m.source == place
            )
            assert pattern.full(place) == self.full(layout, place)
            made = [cell for box in pattern.outside(place) for cell in cells(box)]
            assert len(made) == len({*made}) and {*made} == self.outside[place]
