# SPDX-License-Identifier: MIT
"""What each place of a plan takes and moves: bytes of memory, and bytes and messages per step.

Known from the halo patterns alone, without recording the operations: for a thousand places as
for one.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from controllers.plan.exchange import Exchange
from controllers.plan.operation import Access, Lane, StagingKey, Verb

if TYPE_CHECKING:
    from controllers.plan.plan import Plan


@dataclass
class PlaceSize:
    """One place: cells, bytes of memory, and what it moves in one step.

    owned, halo: cells of one time level of all fields; `tiles` are the bytes of all levels.
    border, inner: cells that are computed before the borders are handed over, and after; a place
        that computes them at once has all of them in `inner`.
    device_staging, host_staging: bytes for borders and halos on their way.
    sends, receives: messages between places, `bytes_sent` and `bytes_received` in them; those
        that stay within one controller are no messages but count as `copies`.
    """

    place: int
    owned: int = 0
    halo: int = 0
    border: int = 0
    inner: int = 0
    tiles: int = 0
    device_staging: int = 0
    host_staging: int = 0
    sends: int = 0
    receives: int = 0
    copies: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0

    @property
    def nbytes(self) -> int:
        """All memory of the place."""
        return self.tiles + self.device_staging + self.host_staging


def place_sizes(plan: Plan) -> tuple[PlaceSize, ...]:
    """The sizes of all places of `plan`, in order, those of other ranks too."""
    sizes = [_of_cells(plan, place) for place in range(plan.layout.n_places)]
    itemsize = np.dtype(plan.program.dtype).itemsize
    for transfer in plan.transfers:
        message = transfer.message
        source, target = sizes[message.source], sizes[message.target]
        nbytes = message.n_cells * itemsize
        if plan.locations[message.source].same_controller(plan.locations[message.target]):
            source.copies += 1
        else:
            source.sends += 1
            source.bytes_sent += nbytes
            target.receives += 1
            target.bytes_received += nbytes
    for key in _stagings(plan):
        message = plan.transfers[key.message].message
        size = sizes[message.source if key.end == "border" else message.target]
        nbytes = message.n_cells * itemsize
        if key.on_device:
            size.device_staging += nbytes
        else:
            size.host_staging += nbytes
    return tuple(sizes)


def _of_cells(plan: Plan, place: int) -> PlaceSize:
    """Cells and tiles; a place without cells has neither."""
    owned = plan.layout.owned[place]
    size = PlaceSize(place)
    if owned.empty:
        return size
    itemsize = np.dtype(plan.program.dtype).itemsize
    for described in plan.program.fields:
        n_elements = plan.geometry(described.name, place).n_elements
        size.owned += owned.n_cells
        size.halo += n_elements - owned.n_cells
        size.tiles += n_elements * itemsize * plan.n_phases
    for stage in plan.program.stages:
        first, inner = plan.boxes(stage, place)
        n_first = sum(box.n_cells for box in first)
        at_once = inner.empty
        size.border += 0 if at_once else n_first
        size.inner += n_first if at_once else inner.n_cells
    return size


@dataclass
class _Stagings:
    """Takes the operations of exchanges and keeps their staging memories."""

    found: dict[StagingKey, None] = field(default_factory=dict)

    def add(
        self,
        place: int,
        verb: Verb,
        lane: Lane,
        reads: Iterable[Access],
        writes: Iterable[Access],
        *,
        stage: int | None = None,
        transfer: int | None = None,
        refreshes: bool = False,
    ) -> None:
        for access in (*reads, *writes):
            if isinstance(access.memory, StagingKey):
                self.found[access.memory] = None


def _stagings(plan: Plan) -> Iterable[StagingKey]:
    """The staging memories of all messages, as the exchanges would use them."""
    taker = _Stagings()
    for transfer in plan.transfers:
        exchange = Exchange(plan, taker, transfer, 0, refreshes=True)
        exchange.pack()
        exchange.receive()
        exchange.leave()
        exchange.arrive()
    return taker.found
