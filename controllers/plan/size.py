# SPDX-License-Identifier: MIT
"""What each place of a plan takes and moves: bytes of memory, and bytes and messages per step.

Known from the halo patterns alone, without recording the operations: for a thousand places as
for one.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controllers.plan.memory import PlaceMemory

if TYPE_CHECKING:
    from controllers.plan.plan import Plan


@dataclass
class PlaceSize:
    """One place: cells, bytes of memory, and what it moves in a step, or between two exchanges.

    owned, halo: cells of one buffer of all fields; `memory` has the bytes of all buffers.
    border, inner: cells that are computed before the borders are handed over, and after; a place
        that computes them at once has all of them in `inner`.
    sends, receives: messages between places, `bytes_sent` and `bytes_received` in them; those
        that stay within one controller are no messages but count as `copies`.
    folds: bytes of device memory that its launches fold into.
    """

    place: int
    memory: PlaceMemory
    owned: int = 0
    halo: int = 0
    border: int = 0
    inner: int = 0
    sends: int = 0
    receives: int = 0
    copies: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    folds: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of memory, all of it."""
        return self.memory.nbytes + self.folds


def place_sizes(plan: Plan, folds: Mapping[int, int] | None = None) -> tuple[PlaceSize, ...]:
    """The sizes of all places of `plan`, in order, those of other ranks too.

    folds: bytes that each place folds into, which kernels say.
    """
    plan = plan.of_rank(None)
    sizes = [_of_cells(plan, place) for place in range(plan.layout.n_places)]
    for place, nbytes in (folds or {}).items():
        sizes[place].folds = nbytes
    for bundle in plan.bundles:
        if bundle.after < 0:    # before the first step alone
            continue
        source, target = sizes[bundle.source], sizes[bundle.target]
        if plan.locations[bundle.source].same_controller(plan.locations[bundle.target]):
            source.copies += 1
        else:
            source.sends += 1
            source.bytes_sent += bundle.nbytes
            target.receives += 1
            target.bytes_received += bundle.nbytes
    return tuple(sizes)


def _of_cells(plan: Plan, place: int) -> PlaceSize:
    """Cells and memory; a place without cells has neither."""
    size = PlaceSize(place, plan.memory(place))
    if plan.layout.owned[place].empty:
        return size
    for field in plan.patterns:
        n_owned = plan.owned(field, place).n_cells
        size.owned += n_owned
        size.halo += plan.full(field, place).n_cells - n_owned
    for sweep in plan.sweeps:
        first, inner = plan.boxes(sweep, place)
        n_first = sum(box.n_cells for box in first)
        at_once = inner.empty
        size.border += 0 if at_once else n_first
        size.inner += n_first if at_once else inner.n_cells
        size.inner += plan.cells_before(sweep, place)
    return size
