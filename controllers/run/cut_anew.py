# SPDX-License-Identifier: MIT
"""Chunks cut otherwise while they pass through: the sizes there are, and where images lie.

The images of a place are one memory of the host, of which chunks are views, so that nothing moves
where it is cut otherwise.
"""
# docs/decisions/0079-chunks-and-slots-are-tuned-too.md
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from controllers.executor.executor import DeviceExecutor, Executor
from controllers.memory.tile import Tile
from controllers.placement.capacity import nbytes_beside_tiles, nbytes_needed
from controllers.plan import ChunkPlan, Plan, SkewedPlan, TileKey
from controllers.settings.execution import MOST_CHUNKS, Execution
from controllers.settings.launches import MOST_WIDTH
from controllers.tuning.size_grid import SLOTS, SizeGrid
from controllers.tuning.sizes import Size
from hitmap.comm import Communicator
from hitmap.layout import Layout

HALVED, DOUBLED = 3, 3  # times that passes may be shorter or longer than estimated


class HostImages:
    """The images of the places of this rank, however they are cut into chunks."""

    def __init__(self, whole: Layout) -> None:
        """`whole`: the places, not cut."""
        self._whole = whole
        self._memories: dict[tuple[str, int, int], npt.NDArray[Any]] = {}

    def tiles(self, plan: Plan, executors: Mapping[int, Executor]) -> dict[TileKey, Tile]:
        """The images of all chunks of a plan, those of each place one after another."""
        begins: dict[tuple[str, int, int], int] = {}
        found = {}
        keys = [cast(TileKey, one.key) for one in plan.memories if one.kind == "image"]
        nbytes = {name: np.dtype(dtype) for name, dtype in plan.program.dtypes.items()}
        for key in keys:
            home = key.field, key.buffer, self._home(plan, key.place)
            begins.setdefault(home, 0)
            begins[home] += plan.lies(key).n_elements
        for home, n_elements in begins.items():
            if home not in self._memories:
                place = next(k.place for k in keys if self._home(plan, k.place) == home[2])
                device = cast(DeviceExecutor, executors[place])
                self._memories[home] = device.image_memory(n_elements, nbytes[home[0]])
            begins[home] = 0
        for key in keys:    # in order
            home, lies = (key.field, key.buffer, self._home(plan, key.place)), plan.lies(key)
            begin = begins[home]
            begins[home] = begin + lies.n_elements
            part = self._memories[home][begin : begins[home]]
            found[key] = Tile(lies, nbytes[key.field], part, None)
        return found

    def _home(self, plan: Plan, chunk: int) -> int:
        """The place that a chunk is a part of."""
        box = plan.layout.owned[chunk]
        return next(home for home, whole in enumerate(self._whole.owned) if box in whole)


class Room:
    """What devices have free before anything of fields is there."""

    def __init__(self, executors: Mapping[int, Executor], largest_bytes: int) -> None:
        self._free = {
            executor: executor.ledger.cap_bytes - executor.ledger.on_device
            for executor in executors.values()
        }
        self._largest_bytes = largest_bytes

    def has(
        self, plan: Plan, executors: Mapping[int, Executor], ends: Sequence[Plan],
        comm: Communicator,
    ) -> bool:  # fmt: skip
        """Whether a plan fits that has nothing but images beside it, and what `ends` its runs.

        On all ranks.  Collective.
        """
        tiles = (memory for memory in plan.memories if memory.kind == "tile")
        mine = all(memory.nbytes <= self._largest_bytes for memory in tiles)
        for executor, free in self._free.items():
            places = [place for place in plan.places if executors[place] is executor]
            needed = nbytes_needed(plan, executor, places)
            needed += sum(nbytes_beside_tiles(one, executor, places) for one in ends)
            mine = mine and needed <= free
        return all(comm.allgather(mine))


def spans_of(plan: ChunkPlan, execution: Execution) -> list[int]:
    """The steps of passes to choose among: halved and doubled, whole launches.

    That of the plan alone where somebody has said it, and where steps have parts.
    """
    found = [plan.span]
    if isinstance(execution.halo_width, int) or plan.parts:
        return found
    while len(found) <= HALVED and not found[0] % (2 * plan.steps_per_launch):
        found.insert(0, found[0] // 2)
    for _ in range(DOUBLED):
        if 2 * found[-1] <= MOST_WIDTH:
            found.append(2 * found[-1])
    return found


def grid_of(
    plan: ChunkPlan, first: Size, execution: Execution,
    least: Callable[[int, int], int | None], fits: Callable[[Size], bool],
) -> SizeGrid:  # fmt: skip
    """The sizes among which a run chooses; what somebody has said stays as it is."""
    slots: Sequence[int] = SLOTS if execution.slots is None else ()
    if isinstance(plan, SkewedPlan):    # of parcels each way there are half as many
        slots = [count for count in slots if not count % 2 and count // 2 > 1]
    spans = spans_of(plan, execution)
    return SizeGrid(first, spans, least, MOST_CHUNKS, fits, slots=slots)
