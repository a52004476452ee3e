# SPDX-License-Identifier: MIT
"""What chunks move between host and device in a pass, and how little would do."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from controllers.plan.chunks.chunks import ChunkOutline
from controllers.program.sweep import Version
from hitmap.region import Region
from hitmap.shape import Shape


@dataclass(frozen=True)
class Traffic:
    """Bytes of a pass over the links of all devices together.

    least: each cell that is read before it is computed once up, each that is computed once down.
    """

    up: int
    down: int
    least: int

    @property
    def excess(self) -> int:
        """What is moved beyond the least: margins of chunks, and cells that keep their value."""
        return self.up + self.down - self.least


def traffic(plan: ChunkOutline) -> Traffic:
    """The bytes of a pass of `plan`."""
    each = [traffic_of(plan, field) for field in plan.kept_fields]
    return Traffic(*(sum(of) for of in zip(*((one.up, one.down, one.least) for one in each))))


def traffic_of(plan: ChunkOutline, field: str) -> Traffic:
    """The same of one field."""
    up = down = least = 0
    itemsize = np.dtype(plan.program.field(field).dtype).itemsize
    changes, read, computed = plan.changes(field), _read(plan, field), _computed(plan, field)
    for place in plan.places:
        own = plan.owned(field, place)
        brought = plan.brought(field, place)
        margin = _cells(
            box for message in plan.around(field, place) for box in message.halo
            if message.source != place
        )  # fmt: skip
        up += itemsize * (brought.n_cells + margin)
        down += itemsize * own.n_cells * changes
        least += itemsize * ((read & own).n_cells + (computed & own).n_cells)
    return Traffic(up, down, least)


def _read(plan: ChunkOutline, field: str) -> Region:
    """The cells of a field that a pass reads as they were before it, under any name."""
    names = [field]
    while len(names) < plan.n_launches:
        left = Version(names[-1], 0)
        later = [name for name in plan.kept_fields if plan.liveness.last(name) == left]
        if not later or later[0] in names:
            break
        names += later
    found = (_read_as(plan, name) for name in names)
    return Region.of(box for region in found for box in region.boxes)


def _computed(plan: ChunkOutline, field: str) -> Region:
    """The cells of a field as a pass leaves it that it has computed, under any name."""
    version = Version(field, 0)
    for _ in range(plan.n_launches):
        version = plan.liveness.last(version.field)
        if version.number:
            return plan.changing(version.field)
    return Region.of([])


def _read_as(plan: ChunkOutline, field: str) -> Region:
    """The cells that a step reads of a field as they were before it."""
    domain = plan.layout_of(field).domain
    found = made = Region.of([])
    for sweep in plan.sweeps:
        use = sweep.use(field)
        if use is not None:
            read = Region.of([sweep.read(use, sweep.cells) & domain])
            found = found | (read - made if use.version.number else read)
        if field in sweep.writes:
            made = made | Region.of([sweep.written(field, sweep.cells)])
    return found


def _cells(boxes: Iterable[Shape]) -> int:
    return sum(box.n_cells for box in boxes)
