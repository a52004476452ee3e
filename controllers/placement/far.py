# SPDX-License-Identifier: MIT
"""What all ranks know of each other's devices, so that they choose alike: kind and free memory."""
from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from controllers.executor.executor import Executor
from controllers.memory.ledger import Ledger
from controllers.placement.placement import Placement
from hitmap.comm import Communicator


@dataclass(frozen=True)
class FarDevice:
    """kind: such as "gpu"."""

    kind: str


@dataclass(frozen=True, eq=False)
class FarExecutor:
    """A device of any rank, as far as it is known: the cap of its ledger is what is free there."""

    device: FarDevice
    ledger: Ledger


def known_to_all(placement: Placement, comm: Communicator) -> Placement:
    """The same places on devices of which all ranks know the same.  Collective."""
    mine = {
        placement.locations[place].controller: executor.ledger.cap_bytes - executor.ledger.on_device
        for place, executor in placement.executors.items()
    }
    free = comm.allgather(mine)
    known = {
        (rank, controller): FarExecutor(FarDevice(where.kind), Ledger(where.device, n_free))
        for where in placement.locations
        for rank, controller in [(where.rank, where.controller)]
        for n_free in [free[rank][controller]]
    }
    executors = {
        place: cast(Executor, known[where.rank, where.controller])
        for place, where in enumerate(placement.locations)
    }
    return replace(placement, executors=executors)
