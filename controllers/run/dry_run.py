# SPDX-License-Identifier: MIT
"""A run that is only planned: for any number of places, without devices, MPI, or a field.

Every place gets a rank and a device of its own, so that nothing is counted as free that costs a
message on a cluster.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import get_args

from controllers.kernel.configuration import Configuration, planned_configurations
from controllers.kernel.registry import GENERIC, SPECIALISED, KernelChoice, check_math
from controllers.kernel.variant import Kernel
from controllers.placement.partition import domain_of, make_layout, periodic_axes
from controllers.placement.temporal import plan_with_steps
from controllers.plan import Location, Overlap, Plan
from controllers.plan.needed import cells_needed
from controllers.plan.size import PlaceSize, place_sizes
from controllers.program.program import Math, Program
from controllers.report.explain import explain
from controllers.run.door import check_options, check_program
from hitmap.argument import one_of, whole

# Selectors whose devices compute in the host's memory; all others have memory of their own.
ON_HOST = ("cpu", "reference")


@dataclass(frozen=True)
class DryRun:
    """What a run would do and take."""

    plan: Plan
    configurations: tuple[Configuration, ...]
    sizes: tuple[PlaceSize, ...]

    def __str__(self) -> str:
        return explain(self.plan, self.configurations, self.sizes)

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON: bytes and messages of one step, and bytes of memory.

        A step here is one of the plan, of `steps_per_launch` time steps.
        """
        patterns = {v: pattern for v, pattern in self.plan.exchanges.items() if v.number}
        needed = sum(cells_needed(self.plan, version) for version in patterns)
        n_cells = sum(pattern.n_cells for pattern in patterns.values())
        return {
            "cells": self.plan.layout.domain.n_cells,
            "steps_per_launch": self.plan.steps_per_launch,
            "messages_per_step": sum(size.sends for size in self.sizes),
            "bytes_per_step": sum(size.bytes_sent for size in self.sizes),
            "cells_per_step": n_cells,
            "excess_cells_per_step": n_cells - needed,
            "bytes": sum(size.memory.nbytes for size in self.sizes),
            "places": [asdict(size) for size in self.sizes],
        }


def dry_run(
    program: Program,
    sizes: int | Sequence[int],
    n_controllers: int,
    *,
    partition: str | None = None,
    weights: Sequence[float] | None = None,
    align: int | Sequence[int] = 1,
    block: int | Sequence[int] | None = None,
    boundary: str | Sequence[str] = "fixed",
    devices: str | Sequence[str] | None = None,
    overlap: Overlap = "auto",
    kernel: KernelChoice = SPECIALISED,
    steps_per_launch: int | None = None,
    math: Math = "strict",
) -> DryRun:
    """Plan a run on `n_controllers` ranks with a device each; the options are `Computation`'s.

    `devices` are dealt to the ranks in turn; they say whether a place computes in the host's
    memory (cpu, reference) or in a device's own (all others, and the default).  ValueError where
    the options do not fit together.
    """
    program = check_program(program)
    check_options(
        sizes=sizes, partition=partition, weights=weights, align=align, block=block,
        boundary=boundary, devices=devices, steps_per_launch=steps_per_launch,
    )  # fmt: skip
    one_of(overlap, get_args(Overlap), "overlap")
    if not isinstance(kernel, Kernel):
        one_of(kernel, (SPECIALISED, GENERIC), "kernel")
    n_controllers = whole(n_controllers, "n_controllers")
    if n_controllers < 1:
        raise ValueError(f"a dry run is for at least 1 place, got {n_controllers}")
    check_math(math, kernel)
    program = program.with_math(math)
    domain = domain_of(program, sizes)
    layout = make_layout(
        domain, n_controllers, partition, weights, align=align, block=block
    )
    wanted = [devices] if isinstance(devices, str) else list(devices or ["gpu"])
    controllers = [_location(rank, wanted[rank % len(wanted)]) for rank in range(n_controllers)]
    in_turn = [controllers[place % n_controllers] for place in range(layout.n_places)]
    periodic = periodic_axes(boundary, program.n_axes)

    def plan_of(n_steps: int) -> Plan:
        return Plan(
            program, layout, periodic, in_turn, overlap=overlap, steps_per_launch=n_steps
        )

    plan = plan_with_steps(plan_of, kernel, steps_per_launch)
    return DryRun(plan, _configurations(plan, kernel), place_sizes(plan))


def _location(rank: int, selector: str) -> Location:
    on_host = selector.strip().lower().startswith(ON_HOST)
    word = selector.strip().lower()
    kind = "reference" if word.startswith("reference") else "cpu" if on_host else "gpu"
    return Location(rank, 0, shares_host=on_host, device=selector, kind=kind)


def _configurations(plan: Plan, kernel: KernelChoice) -> tuple[Configuration, ...]:
    """For each kind of device, the kernels of the boxes of all its places."""
    found: list[Configuration] = []
    for kind in ("cpu", "reference", "gpu"):
        places = [place for place in plan.places if plan.locations[place].kind == kind]
        for sweep in plan.sweeps if places else ():
            boxes = [box for place in places for box in plan.launched(sweep, place)]
            found += planned_configurations(
                plan.program, sweep.stage, kernel, boxes, kind, sweep.count
            )
    return tuple(found)
