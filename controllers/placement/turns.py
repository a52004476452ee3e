# SPDX-License-Identifier: MIT
"""Fields that change their tiles one after another, where old and new do not fit in memory at once.

Of each field one buffer holds the cells: the others are given back first, so that a field of two
buffers fits into the memory of its old tiles.  In its *turn* a field gets its new tile, is copied,
and gives back the old one.  Where that is still too much for a device with memory of its own,
fields wait for their turn on the host.
"""
from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.memory.tile import SLACK, Tile
from controllers.plan import Plan


def waiting(room: int, before: Sequence[int], after: Sequence[int]) -> list[list[int]]:
    """By turn, the fields that go to the host before it, so that `room` bytes are enough.

    before, after: bytes of the old and of the new tiles of each field.  As few fields as possible,
    those first whose turn comes first; `room` for all new tiles is taken for granted.

    >>> waiting(9, [4, 2], [3, 2])
    [[], []]
    >>> waiting(8, [4, 2], [3, 2])
    [[0], []]
    >>> waiting(8, [2, 5], [6, 2])
    [[0, 1], []]
    """
    in_use, on_host = sum(before), set[int]()
    found: list[list[int]] = []
    for turn, nbytes in enumerate(after):
        going = []
        for field in range(turn, len(before)):
            if in_use + nbytes > room and field not in on_host:
                on_host.add(field)
                going.append(field)
                in_use -= before[field]
        found.append(going)
        in_use += nbytes - before[turn] * (turn not in on_host)
    return found


def newest_tiles(old: Engine) -> dict[str, dict[int, Tile]]:
    """The tiles that hold the fields now, by field and place of this rank."""
    return {
        field.name: {place: old.newest(field.name, place) for place in old.plan.places}
        for field in old.plan.program.fields
    }


def nbytes_of(tiles: Mapping[str, Mapping[int, Tile]], places: Collection[int]) -> list[int]:
    """Bytes of the tiles of each field at some places."""
    return [
        sum(
            tile.nbytes + (0 if tile.host is None else SLACK)
            for place, tile in of_field.items()
            if place in places
        )
        for of_field in tiles.values()
    ]


def nbytes_to_be(plan: Plan, places: Collection[int]) -> list[int]:
    """Bytes of the tile of each field that is set first, at some places of a plan."""
    nbytes = {memory.key: memory.nbytes + memory.slack for memory in plan.memories}
    return [
        sum(nbytes[plan.newest(field.name, 0, place)] for place in places)
        for field in plan.program.fields
    ]


def fit_in_turns(
    plan: Plan, places: Collection[int], needed: int, old: Engine, executor: Executor
) -> bool:
    """Whether fields of `old` get into the memory of a device at their turn, within its cap.

    places: those of `plan` on the device, which need so many bytes for all that they have there.
    """
    before = [place for place in old.plan.places if old.executors[place] is executor]
    given_back = sum(
        memory.nbytes + memory.slack
        for memory in old.plan.memories
        if memory.on_device and memory.home in before
    )
    room = executor.ledger.cap_bytes - executor.ledger.on_device + given_back
    if needed > room:
        return False
    sizes = nbytes_of(newest_tiles(old), before), nbytes_to_be(plan, places)
    return not executor.shares_host or not any(waiting(room, *sizes))
