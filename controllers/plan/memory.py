# SPDX-License-Identifier: MIT
"""How many bytes the places of a plan take: known before anything is allocated.

The engine allocates exactly this: every time level of every field with its halo, and the
staging memory of the messages.  Only tables of constants, a kernel's own, are not in the plan.
No operation is recorded for it: a thousand places are as quick as one.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from controllers.memory.tile import SLACK
from controllers.plan.exchange import Exchange
from controllers.plan.operation import Access, Lane, StagingKey, Verb
from hitmap.strided import whole_vectors

if TYPE_CHECKING:
    from controllers.plan.plan import Plan


@dataclass(frozen=True)
class PlaceMemory:
    """Bytes of one place.

    tiles: the fields, their doubles and the halos.
    alignment: what tiles in host memory take beside their cells, to begin where they should.
    device_staging, host_staging: borders and halos on their way.
    """

    tiles: int = 0
    alignment: int = 0
    device_staging: int = 0
    host_staging: int = 0

    @property
    def on_device(self) -> int:
        """What counts as memory of the place's device; a CPU's is the host's."""
        return self.tiles + self.alignment + self.device_staging

    @property
    def nbytes(self) -> int:
        """All of it."""
        return self.on_device + self.host_staging


def place_memories(plan: Plan) -> dict[int, PlaceMemory]:
    """The bytes of each place of `plan` that holds cells."""
    itemsize = np.dtype(plan.program.dtype).itemsize
    staged = {(place, on_device): 0 for place in plan.places for on_device in (True, False)}
    for key in _stagings(plan):
        n_cells = plan.transfers[key.message].message.n_cells
        n_elements = whole_vectors(n_cells) if key.on_device else n_cells
        staged[plan.home(key), key.on_device] += n_elements * itemsize
    n_tiles = len(plan.program.fields) * plan.n_phases
    return {
        place: PlaceMemory(
            tiles=plan.n_phases * itemsize * sum(
                plan.geometry(one.name, place).n_elements for one in plan.program.fields
            ),
            alignment=n_tiles * SLACK if plan.locations[place].shares_host else 0,
            device_staging=staged[place, True],
            host_staging=staged[place, False],
        )
        for place in plan.places
    }  # fmt: skip


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
