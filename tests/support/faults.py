# SPDX-License-Identifier: MIT
"""Faults to inject into plans and engine: with each of them, the check of the suite must fail.

    mpiexec -n 1 python tests/support/faults.py "host memory: no exchange"

Orders that nothing enforces are right most of the time.  So a fault in the order comes with a
*busy queue*: what the faulty operation should have waited for stands behind other work of its
device.  That changes no result of a correct plan, and the controls show it.  On a large field
the kernels themselves take long enough.
"""
from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from typing import Any

from injection import (
    Change,
    busy_queue,
    changed_plan,
    no_opening,
    one_buffer_loaded,
    with_levels,
    without_edge,
    without_operations,
)
from stencil_cases import Case, Combination

from controllers.language.weights import Stencil
from controllers.plan import Edge, Location, Operation, Plan
from controllers.plan.operation import implied
from controllers.settings.division import Division
from hitmap import Shape
from hitmap.comm import Communicator, default_communicator

TRIES = 20      # a race need not be lost at once
CONTROL_TRIES = 2
LARGE = (1501, 1303)
WIDE = (7, 100003)          # rows beyond what MPI libraries send at once

BOX = Stencil.of("box", [(-1, 1), (-1, 1)], [1, 2, 3, 4, 5, 6, 7, 8, 9], 45)
UPWIND = Stencil.of("upwind", [(-1, 0), (-1, 0)], [1, 2, 3, 4], 10)
FIXED = ("fixed", "fixed")


@dataclass(frozen=True)
class Setting:
    """A case and a combination that faults are tried with."""

    case: Case
    combination: Combination

    def plan(self) -> Plan:
        """The plan of all ranks; needs no device."""
        combination = self.combination
        locations = [
            Location(rank, controller, combination.zero_copy, context=0)    # parts of a CPU
            for rank, controller, _ in product(
                range(combination.ranks),
                range(combination.controllers),
                range(combination.places_per_controller),
            )
        ]
        return Plan(
            self.case.program,
            combination.division.layout_of(Shape.of_extent(self.case.extent), len(locations)),
            self.case.periodic,
            locations,
            overlap=combination.overlap,  # type: ignore[arg-type]
        )


def setting(stencil: Stencil, *how: Any, extent: tuple[int, ...] = (23, 19)) -> Setting:
    combination = Combination(*how, division=Division(how[3]))
    return Setting(Case(stencil, "float32", extent, FIXED, (3, 3), 1), combination)


# ranks, controllers per rank, places per controller, partition, overlap, memory shared
SETTINGS = {
    "host memory": setting(BOX, 1, 2, 1, "bands", "on", True),
    "device memory": setting(BOX, 1, 2, 1, "bands", "on", False),
    "device columns": setting(UPWIND, 1, 2, 1, "blocks", "on", False, extent=(9, 43)),
    "one device": setting(BOX, 1, 1, 2, "bands", "on", False),
    "messages": setting(BOX, 2, 1, 1, "bands", "on", True),
    "device messages": setting(BOX, 2, 1, 1, "bands", "on", False),
    "upwind messages": setting(UPWIND, 2, 1, 1, "bands", "on", True, extent=WIDE),
    "upwind device messages": setting(UPWIND, 2, 1, 1, "bands", "on", False, extent=WIDE),
    "message columns": setting(BOX, 2, 1, 1, "blocks", "on", True, extent=(9, 43)),
    "device message columns": setting(BOX, 2, 1, 1, "blocks", "on", False, extent=(9, 43)),
    "blocks": setting(BOX, 1, 2, 2, "blocks", "on", True),
    "device blocks": setting(BOX, 1, 2, 2, "blocks", "on", False),
    "blocks and messages": setting(BOX, 2, 1, 2, "blocks", "on", True),
    "large, host memory": setting(BOX, 1, 2, 1, "bands", "on", True, extent=LARGE),
    "large, messages": setting(BOX, 2, 1, 1, "bands", "on", True, extent=LARGE),
}
# where edges are left out: in these, hardly any order follows from what other ranks do
ORDERED = (
    "host memory", "device memory", "device columns", "one device",
    "upwind messages", "upwind device messages",
)  # fmt: skip
# A border is not computed anew before its download has ended: the download of the next step
# starts after the message of this one has left, and no step opens before that one has started.
KEPT_BY_STAGING = ("launch", "download", 2)


Injection = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True)
class Fault:
    """What is done, in which setting, to make a run go wrong."""

    setting: str
    injections: tuple[Injection, ...]

    def problem(self, comm: Communicator) -> str | None:
        """What the check of the suite says; collective."""
        where = SETTINGS[self.setting]
        with ExitStack() as stack:
            for inject in self.injections:
                stack.enter_context(inject())
            return where.case.problem(where.combination, comm)


def by_plan(setting: str, change: Change, *others: Injection) -> Fault:
    return Fault(setting, (partial(changed_plan, change), *others))


def faults_of_data(setting: str) -> Iterator[tuple[str, Fault]]:
    """Whatever their order, the wrong cells are moved, or none."""

    def exchanges(operation: Operation) -> bool:
        return operation.bundle is not None

    def older(operation: Operation, level: int) -> int:
        return 1 - level if operation.bundle is not None else level

    def stuck(operation: Operation, level: int) -> int:
        return 0 if operation.bundle is None else level

    yield "no exchange", by_plan(setting, lambda plan: without_operations(plan, exchanges))
    yield "the older level sent", by_plan(setting, lambda plan: with_levels(plan, older))
    yield "the same level read in all steps", by_plan(setting, lambda p: with_levels(p, stuck))
    yield "no opening after a load", Fault(setting, (no_opening,))
    yield "one buffer loaded", Fault(setting, (one_buffer_loaded,))


def faults_of_messages(setting: str) -> Iterator[tuple[str, Fault]]:
    """One message left out."""
    for bundle in SETTINGS[setting].plan().bundles:

        def belongs(operation: Operation, number: int = bundle.number) -> bool:
            return operation.bundle == number

        def change(plan: Plan, left_out: Callable[[Operation], bool] = belongs) -> Any:
            return without_operations(plan, left_out)

        corner = " (a corner)" if bundle.n_cells == 1 else ""
        what = f"no message from {bundle.source} to {bundle.target}{corner}"
        yield what, by_plan(setting, change)


def faults_of_order(setting: str) -> Iterator[tuple[str, Fault]]:
    """One edge left out, with something to keep the awaited operation busy."""
    plan = SETTINGS[setting].plan()
    for after, edge, before in edges(plan):
        if (after.verb, before.verb, edge.steps_back) != KEPT_BY_STAGING:
            change = partial(without_edge, after=after, before=before)
            busy = partial(busy_queue, *busy_for(plan, before))
            yield edge_name(after, edge, before), by_plan(setting, change, busy)


def faults_of_speed(setting: str) -> Iterator[tuple[str, Fault]]:
    """One edge left out between a kernel that takes long and the host's own work."""
    for after, edge, before in edges(SETTINGS[setting].plan()):
        kernel_first = before.verb == "launch" and after.verb in ("copy", "send")
        if kernel_first or (after.verb, before.verb) == ("launch", "receive"):
            change = partial(without_edge, after=after, before=before)
            yield edge_name(after, edge, before), by_plan(setting, change)


def busy_for(plan: Plan, before: Operation) -> tuple[str, int]:
    """Verb and place to be delayed so that `before` is late."""
    if before.verb == "send":   # it is complete when the other place has room for it
        assert before.bundle is not None
        return "launch", plan.bundles[before.bundle].target
    return (before.verb if before.on_device else "launch"), before.place


def edges(plan: Plan) -> Iterator[tuple[Operation, Edge, Operation]]:
    """What operations of the first step wait for, unless an in-order queue sees to it."""
    for operation in plan.operations:
        for edge in operation.after:
            if operation.phase == 0 and not implied(plan.operations, edge, operation):
                yield operation, edge, plan.operations[edge.number]


def edge_name(after: Operation, edge: Edge, before: Operation) -> str:
    back = f", {edge.steps_back} back" if edge.steps_back else ""
    return (
        f"{after.verb}@{after.place} {after.number} not after "
        f"{before.verb}@{before.place} {before.number}{back}"
    )


@cache
def all_faults() -> dict[str, Fault]:
    """Every fault by its name, which begins with its setting's."""
    found: dict[str, Fault] = {}
    for name in SETTINGS:
        parts: list[tuple[str, Fault]] = []
        if "large" in name:
            parts += faults_of_speed(name)
        else:
            parts += [*faults_of_data(name), *faults_of_messages(name)]
        if name in ORDERED:
            parts += faults_of_order(name)
        found |= {f"{name}: {what}": fault for what, fault in parts}
    return found


@cache
def all_controls() -> dict[str, Fault]:
    """No fault at all, and queues that are busy without one."""
    verbs = ("launch", "copy", "pack", "download", "upload", "unpack")
    found: dict[str, Fault] = {}
    for name, where in SETTINGS.items():
        found[f"{name}: as it should be"] = Fault(name, ())
        device = {(o.verb, o.place) for o in where.plan().operations if o.on_device}
        for verb in verbs:
            busy = [partial(busy_queue, *key) for key in sorted(device) if key[0] == verb]
            if busy and "large" not in name:
                found[f"{name}: {verb} late"] = Fault(name, tuple(busy))
    return found


def main(names: Sequence[str]) -> None:
    """Try each named fault until the check fails; print what that said.  Collective."""
    comm = default_communicator()
    faults = all_faults()
    known = {**faults, **all_controls()}
    for name in names:
        n_tries = TRIES if name in faults else CONTROL_TRIES
        problems = (known[name].problem(comm) for _ in range(n_tries))
        problem = next(filter(None, problems), None)
        if comm.rank == 0:
            print(json.dumps({"name": name, "problem": problem}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
