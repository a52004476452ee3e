# SPDX-License-Identifier: MIT
"""What an operation moves from memory to memory: cells of fields, of each of several transfers."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controllers.plan.operation import Memory, MemoryCells, Operation, TileKey
from controllers.plan.outline import Outline
from hitmap.shape import Shape
from hitmap.strided import Strided, packed


@dataclass(frozen=True)
class Moved:
    """Cells of one field that an operation moves: `runs` say where `boxes` lie, in cells."""

    memory: Memory
    field: str
    boxes: tuple[Shape, ...]
    runs: tuple[Strided, ...]


def moved(plan: Outline, operation: Operation, accesses: Sequence[MemoryCells]) -> list[Moved]:
    """What `operation` reads or writes as it moves cells, transfer by transfer."""
    (access, *_) = accesses
    memory = access.memory
    if isinstance(memory, TileKey):
        return [_in_tile(plan, access) for access in accesses]
    itemsize, found = np.dtype(plan.bundles[memory.bundle].dtype).itemsize, []
    for transfer, part in zip(operation.transfers, access.cells, strict=True):
        message = transfer.message
        boxes = message.border if memory.end == "border" else message.halo
        runs = packed(boxes, part.lower[0] * itemsize // transfer.itemsize)
        found.append(Moved(memory, transfer.field, boxes, runs))
    return found


def _in_tile(plan: Outline, access: MemoryCells) -> Moved:
    key = access.memory
    assert isinstance(key, TileKey), "tiles and staging memory are not read at once"
    geometry = plan.lies(key)
    runs = tuple(geometry.strided(box) for box in access.cells)
    return Moved(key, key.field, access.cells, runs)
