# SPDX-License-Identifier: MIT
"""A plan as text: what a newcomer reads, and what tests compare."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from controllers.plan.operation import Access, Operation, TileKey, implied
from hitmap.shape import Shape

if TYPE_CHECKING:
    from controllers.plan.plan import Plan


def describe(plan: Plan) -> str:
    """The places, then the operations of the first step of the period, place by place.

    Numbers count within the step.  `after` names what must be complete first, unless the
    in-order queue of the place sees to it; a number with an apostrophe is of the step before,
    with two apostrophes of the step before that.
    """
    return "\n".join([*_head(plan), *steps(plan)])


def _head(plan: Plan) -> Iterator[str]:
    extent = " x ".join(map(str, plan.layout.domain.extent))
    yield f"plan of {plan.program.name}: {extent} cells, {plan.layout.n_places} places"
    for place, (where, owned) in enumerate(zip(plan.locations, plan.layout.owned, strict=True)):
        memory = "host memory" if where.shares_host else "device memory"
        home = f"rank {where.rank}, controller {where.controller}"
        name = f" ({where.device})" if where.device else ""
        yield f"  place {place}: {home}{name}, {memory}, owns {owned}"


def steps(plan: Plan) -> Iterator[str]:
    """The operations of one step of the places that have any, line by line."""
    yield f"{plan.step_name} 0; number 1 is the same with time levels 0 and 1 exchanged"
    first = [operation for operation in plan.operations if operation.phase == 0]
    for place in plan.places:
        yield f"  place {place}"
        for operation in first:
            if operation.place == place:
                yield f"    {operation.number:3} {_line(plan, operation, len(first))}".rstrip()


def _line(plan: Plan, operation: Operation, n_per_step: int) -> str:
    after = [
        f"{edge.number % n_per_step}" + "'" * edge.steps_back
        for edge in operation.after
        if not implied(plan.operations, edge, operation)
    ]
    what = f"{operation.verb:8} {subject(plan, operation)}"
    return f"{what:64} {'after ' + ', '.join(after) if after else ''}"


def subject(plan: Plan, operation: Operation) -> str:
    """What an operation does to which cells, without its verb."""
    if operation.stage is not None:
        name = plan.program.stages[operation.stage].name
        return f"{name}: {_cells(operation.writes)} from {_cells(operation.reads)}"
    assert operation.transfer is not None
    message = plan.transfers[operation.transfer].message
    if operation.verb == "send":
        return f"{_cells(operation.reads)} to place {message.target}"
    if operation.verb == "receive":
        return f"{_cells(operation.writes)} from place {message.source}"
    return f"{_cells(operation.reads)} -> {_cells(operation.writes)}"


def _cells(accesses: Iterable[Access]) -> str:
    return ", ".join(f"{access.memory}{_place(access)}{_boxes(access)}" for access in accesses)


def _place(access: Access) -> str:
    return f"@{access.memory.place}" if isinstance(access.memory, TileKey) else ""


def _boxes(access: Access) -> str:
    return " " + " ".join(str(box) for box in access.cells if isinstance(box, Shape))
