# SPDX-License-Identifier: MIT
"""Which operations of a plan begin and end the exchange of halos at the end of a step."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from controllers.plan.operation import MemoryCells, Operation, TileKey
from hitmap.shape import Shape

if TYPE_CHECKING:
    from controllers.plan.plan import Plan


class ExchangeEnds:
    """Numbers of operations, of all steps of the period.

    producers: launches that write cells of a border.
    consumers: launches that read cells of a halo.
    arrivals: operations after which the cells of a neighbour on another controller are in the
        halo, each with (place, neighbour).
    """

    def __init__(self, plan: Plan) -> None:
        leaving: dict[tuple[str, int], list[Shape]] = {}
        arriving: dict[tuple[str, int], list[Shape]] = {}
        for transfer in plan.transfers:
            if transfer.version.number:     # others are filled once, before the first step
                message, pool = transfer.message, plan.liveness.pools[transfer.field]
                leaving.setdefault((pool, message.source), []).extend(message.border)
                arriving.setdefault((pool, message.target), []).extend(message.halo)
        launches = [operation for operation in plan.operations if operation.verb == "launch"]
        self.launches = frozenset(o.number for o in launches)
        self.producers = frozenset(o.number for o in launches if _meet(o.writes, leaving))
        self.consumers = frozenset(o.number for o in launches if _meet(o.reads, arriving))
        self.arrivals: Mapping[int, tuple[int, int]] = _arrivals(plan)


def _meet(
    accesses: Sequence[MemoryCells], boxes: Mapping[tuple[str, int], Sequence[Shape]]
) -> bool:
    """Whether tiles are accessed in one of the boxes of their field and place."""
    for access in accesses:
        assert isinstance(access.memory, TileKey), "kernels work on tiles"
        for box in boxes.get((access.memory.field, access.memory.place), ()):
            if any(not (cells & box).empty for cells in access.cells):
                return True
    return False


def _arrivals(plan: Plan) -> dict[int, tuple[int, int]]:
    last: dict[tuple[int, int], Operation] = {}
    for operation in plan.operations:
        if operation.bundle is not None and operation.writes:
            if isinstance(operation.writes[0].memory, TileKey):
                last[operation.phase, operation.bundle] = operation
    found: dict[int, tuple[int, int]] = {}
    for (_, number), operation in last.items():
        bundle = plan.bundles[number]
        source, target = plan.locations[bundle.source], plan.locations[bundle.target]
        if not source.same_controller(target):
            found[operation.number] = (bundle.target, bundle.source)
    return found
