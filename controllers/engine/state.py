# SPDX-License-Identifier: MIT
"""How far an engine has come, for a thread beside the one that drives it.

Nothing here asks MPI or changes anything: what is under way may have ended since the driver
looked last.
"""
from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from controllers.device.event import CommandFailed, Event, is_complete
from controllers.engine.place import PlaceRun
from controllers.engine.task import Awaited, Task
from controllers.plan import Plan
from controllers.plan.text import subject

if TYPE_CHECKING:
    from controllers.engine.driver import Engine


def activity(engine: Engine) -> tuple[object, ...]:
    """Something that changes whenever a task is started or a kernel has ended."""
    engine = engine.active
    return tuple(
        (place.step, len(place.waiting), sum(map(_has_ended, tuple(place.recent))))
        for place in engine.places.values()
    )


def describe(engine: Engine) -> Iterator[str]:
    """Each place with the operations that it waits for and those that are under way."""
    engine = engine.active
    for number, place in engine.places.items():
        where = engine.plan.locations[number]
        name = engine.plan.step_name
        yield f"place {number} on {where.device or 'its device'}: {_progress(place, name)}"
        waiting, blockers = place.waiting, place.blockers
        reasons = dict(zip(map(id, waiting), blockers)) if len(waiting) == len(blockers) else {}
        for task in (*place.tasks, *chain.from_iterable(place.opening)):
            text = f"{task.operation.verb} {subject(engine.plan, task.operation)}"
            peer = _peer(engine.plan, task)
            if task in waiting:
                yield f"  not started: {text}{peer}{_reason(engine.plan, reasons.get(id(task)))}"
            elif _is_under_way(task):
                yield f"  started in step {task.step}, not known to have ended: {text}{peer}"


def _progress(place: PlaceRun, name: str) -> str:
    if place.step < 0:
        return f"before its first {name}"
    begun = f"has begun {name} {place.step} of a run to {place.last}"
    if place.recent.maxlen == 0:    # not watched
        return begun
    n_ended = sum(map(_has_ended, tuple(place.recent)))
    return f"{begun}; {n_ended} of the last {len(place.recent)} kernels have ended"


def _peer(plan: Plan, task: Task) -> str:
    """The rank at the other end of a message."""
    operation = task.operation
    if operation.lane != "network" or operation.bundle is None:
        return ""
    bundle = plan.bundles[operation.bundle]
    place = bundle.target if operation.verb == "send" else bundle.source
    return f", rank {plan.locations[place].rank}, {bundle.n_cells} cells"


def _reason(plan: Plan, blocker: Awaited | None) -> str:
    if not isinstance(blocker, Task):
        return ""
    return f", waits for: {blocker.operation.verb} {subject(plan, blocker.operation)}"


def _is_under_way(task: Task) -> bool:
    """Whether it may be; MPI is not asked after messages."""
    event = task.event
    return event is not None and not (task.operation.on_device and _has_ended(event))


def _has_ended(event: Event) -> bool:
    try:
        return is_complete(event)
    except CommandFailed:
        return True
