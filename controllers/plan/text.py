# SPDX-License-Identifier: MIT
"""A plan as text: what a newcomer reads, and what tests compare."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from controllers.plan.folding import combined
from controllers.plan.operation import MemoryCells, Operation, TileKey, implied
from controllers.plan.outline import Outline
from hitmap.shape import Shape


def describe(plan: Outline, operations: Sequence[Operation]) -> str:
    """The places, then the operations of the first step of the period, place by place.

    Numbers count within the step.  `after` names what must be complete first, unless the
    in-order queue of the place sees to it; a number with an apostrophe is of the step before,
    with two apostrophes of the step before that.
    """
    return "\n".join([*_head(plan), *steps(plan, operations), *_openings(plan)])


def _openings(plan: Outline) -> Iterator[str]:
    """What is exchanged of fields that are only read, and made outside the domain for good."""
    for version, pattern in plan.exchanges.items():
        if plan.sent_after(version) < 0:
            n_messages = len(pattern.messages)
            yield (
                f"before the first step, once {version.field} is set: {pattern.n_cells} cells in "
                f"{n_messages} message{'s' * (n_messages != 1)}"
            )
    for field, pattern in plan.patterns.items():
        extension = plan.extension(field)
        if extension is not None and extension.boundary.is_steady:
            boxes = [box for n in range(plan.layout.n_places) for box in pattern.outside(n)]
            n_cells = sum(box.n_cells for box in boxes)
            if n_cells:
                yield (
                    f"before the first step, once {field} is set: {n_cells} cells outside the "
                    f"domain, in all buffers"
                )


def _head(plan: Outline) -> Iterator[str]:
    extent = " x ".join(map(str, plan.layout.domain.extent))
    yield f"plan of {plan.program.name}: {extent} cells, {plan.layout.n_places} places"
    for place, (where, owned) in enumerate(zip(plan.locations, plan.layout.owned, strict=True)):
        memory = "host memory" if where.shares_host else "device memory"
        home = f"rank {where.rank}, controller {where.controller}"
        name = f" ({where.device})" if where.device else ""
        yield f"  place {place}: {home}{name}, {memory}, owns {owned}"


def steps(plan: Outline, operations: Sequence[Operation]) -> Iterator[str]:
    """The operations of one step of the places that have any, line by line."""
    yield f"{plan.step_name} 0; {_others(plan)}"
    first = [operation for operation in operations if operation.phase == 0]
    for place in plan.places:
        yield f"  place {place}{plan.launches_text(place)}"
        for operation in first:
            if operation.place == place:
                line = _line(plan, operations, operation, len(first))
                yield f"    {operation.number:3} {line}".rstrip()


def _others(plan: Outline) -> str:
    """What the steps after the first one do."""
    live = plan.liveness
    turned = [place for place in plan.places if any(
        plan.newest(f, 1, place) != plan.newest(f, 0, place) for f in live.pools
    )]  # fmt: skip
    turning = [
        pool for pool, count in live.n_buffers.items()
        if any(plan.newest(f, 1, place) != plan.newest(f, 0, place) for f in live.pools
               if live.pools[f] == pool for place in turned[:1]) and count > 1
    ]  # fmt: skip
    if not turning:
        return "all others are the same"
    if len(turned) < len(plan.places):
        where = f"place{'s' * (len(turned) > 1)} {', '.join(map(str, turned))}"
        return f"number 1 is the same with time levels 0 and 1 exchanged at {where}"
    if len(live.pools) == 1:
        return "number 1 is the same with time levels 0 and 1 exchanged"
    last = plan.n_phases - 1
    which = "number 1 is" if last == 1 else f"numbers 1 to {last} are"
    return f"{which} the same with the buffers of {' and '.join(turning)} in other roles"


def _line(
    plan: Outline, operations: Sequence[Operation], operation: Operation, n_per_step: int
) -> str:
    after = [
        f"{edge.number % n_per_step}" + "'" * edge.steps_back
        for edge in operation.after
        if not implied(operations, edge, operation)
    ]
    what = f"{operation.verb:8} {subject(plan, operation)}"
    return f"{what:64} {'after ' + ', '.join(after) if after else ''}"


def subject(plan: Outline, operation: Operation) -> str:
    """What an operation does to which cells, without its verb."""
    if operation.task is not None:
        return f"{operation.task.name} on {_cells((*operation.reads, *operation.writes))}"
    if operation.verb in ("fold", "combine"):
        return _folds(plan, operation)
    if operation.sweep is not None:
        name = plan.sweeps[operation.sweep].name
        if not operation.writes:
            return f"{name}: {operation.launched} from {_cells(operation.reads)}"
        return f"{name}: {_cells(operation.writes)} from {_cells(operation.reads)}"
    if operation.verb in ("send", "receive"):
        assert operation.bundle is not None, "a message is part of an exchange"
        bundle = plan.bundles[operation.bundle]
        if operation.verb == "send":
            return f"{_cells(operation.reads)} to place {bundle.target}"
        return f"{_cells(operation.writes)} from place {bundle.source}"
    if operation.verb == "fill" and not operation.reads:
        return _cells(operation.writes)
    return f"{_cells(operation.reads)} -> {_cells(operation.writes)}"


def _folds(plan: Outline, operation: Operation) -> str:
    """Of a place, or of all ranks; which folds."""
    names = [name for n in combined(operation.gives) for name in plan.sweeps[n].folds]
    where = f"@{operation.place}" if operation.verb == "fold" else " of all ranks"
    when = ", when looked at" if operation.occasional else ""
    return f"{', '.join(names)}{where}{when}"


def _cells(accesses: Iterable[MemoryCells]) -> str:
    return ", ".join(f"{access.memory}{_place(access)}{_boxes(access)}" for access in accesses)


def _place(access: MemoryCells) -> str:
    return f"@{access.memory.place}" if isinstance(access.memory, TileKey) else ""


def _boxes(access: MemoryCells) -> str:
    return " " + " ".join(str(box) for box in access.cells if isinstance(box, Shape))
