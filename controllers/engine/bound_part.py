# SPDX-License-Identifier: MIT
"""A part of a step bound to the tiles in which it finds its fields."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from controllers.device.event import Command
from controllers.engine.driver import Engine
from controllers.memory.tile import Tile
from controllers.plan import Plan, RoomKey, TileKey
from controllers.plan.plan import Part
from hitmap.region import Region


class BoundPart:
    """A part bound to the buffers in which it finds its fields.

    whole: the engine of the step.  orders: of each field its buffers, in the part's order.
    make: the engine of a part on some tiles.
    """

    def __init__(
        self, whole: Engine, part: Part, orders: Mapping[str, Sequence[int]],
        make: Callable[[Part, Mapping[TileKey, Tile]], Engine],
    ) -> None:  # fmt: skip
        tiles = {
            TileKey(field, n, place): whole.tiles[TileKey(field, buffer, place)]
            for field, order in orders.items()
            for n, buffer in enumerate(order)
            for place in whole.plan.places
        }
        tiles |= {key: one for key, one in whole.tiles.items() if isinstance(key, RoomKey)}
        self.engine = make(part, tiles)
        self.engine.samples.wanted = False
        if any(place.recent.maxlen for place in whole.places.values()):
            self.engine.watch()
        self._copies = [*_kept(whole.plan, part, self.engine)]

    def refresh(self) -> None:
        """Cells that the part does not compute, but others do, become the same in all buffers."""
        for copy in self._copies:
            copy(None)
        if self._copies and self.engine.drains:
            for executor in dict.fromkeys(self.engine.executors.values()):
                executor.wait()


def _kept(whole: Plan, part: Part, engine: Engine) -> list[Command]:
    """Copies of the cells that a part does not compute in fields that other parts write, too."""
    found: list[Command] = []
    others = {
        name for other in whole.parts if other is not part for name in other.plan.program.written
    }
    for field in part.plan.n_tiles:
        if field not in others:
            continue
        itemsize = whole.program.itemsize(field)
        for place in whole.places:
            own = Region.of([whole.owned(field, place)])
            writings = part.plan.liveness.writings(field)
            kept = Region.of(box for computed in writings for box in (own - computed).boxes)
            newest = engine.newest(field, place)
            for tile in engine.to_set(field, place)[1:]:
                runs = [(newest.strided(box), tile.strided(box)) for box in kept.boxes]
                if runs:
                    copy = engine.executors[place].copy_command
                    found.append(copy(newest.linear, tile.linear, itemsize, *runs))
    return found
