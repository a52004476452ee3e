# SPDX-License-Identifier: MIT
"""A run that is only planned: for any number of places, without devices, MPI, or a field.

Every place gets a rank and a device of its own, so that nothing is counted as free that costs a
message on a cluster.
"""
from __future__ import annotations

from dataclasses import asdict, dataclass

from controllers.device.device import WITHOUT_OPENCL
from controllers.kernel.configuration import (
    KernelUse,
    planned_configurations,
    planned_folds_nbytes,
)
from controllers.kernel.registry import KernelChoice, check_math, find_kernel
from controllers.language.half_points import Locations
from controllers.language.kinds import DTypes
from controllers.links.link import Links
from controllers.placement.halo_width import fixed_width, plan_of_width
from controllers.placement.own_kernel import as_planned, in_place, overlap_for
from controllers.placement.temporal import plan_with_steps
from controllers.plan import Location, Plan
from controllers.plan.chunks.needed import cells_needed
from controllers.plan.rounds.paces import Steps
from controllers.plan.size import PlaceSize, place_sizes
from controllers.report.explain import explain
from controllers.settings.arrangement import arranged, is_open
from controllers.settings.division import Division
from controllers.settings.domain import Boundaries, domain_of
from controllers.settings.execution import Execution
from controllers.settings.request import Described, Request, Sizes
from hitmap.argument import whole

# Selectors whose devices compute in the host's memory; all others have memory of their own.
ON_HOST = ("cpu", *WITHOUT_OPENCL)


@dataclass(frozen=True)
class DryRun:
    """What a run would do and take."""

    plan: Plan
    configurations: tuple[KernelUse, ...]
    sizes: tuple[PlaceSize, ...]
    why: str = ""       # the places are where they are, by the links that were given

    def __repr__(self) -> str:
        return f"<DryRun of {self.plan!r}>"

    def __str__(self) -> str:
        return explain(self.plan, self.configurations, self.sizes, self.why)

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON: bytes and messages of one step, and bytes of memory.

        A step here is one of the plan, of `steps_per_launch` time steps.
        """
        plan = self.plan
        patterns = {v: one for v, one in plan.exchanges.items() if plan.sent_after(v) >= 0}
        needed = sum(cells_needed(plan, version) for version in patterns)
        n_cells = sum(pattern.n_cells for pattern in patterns.values())
        return {
            "cells": self.plan.layout.domain.n_cells,
            "steps_per_launch": self.plan.steps_per_launch,
            "messages_per_step": sum(size.sends for size in self.sizes),
            "bytes_per_step": sum(size.bytes_sent for size in self.sizes),
            "cells_per_step": n_cells,
            "excess_cells_per_step": n_cells - needed,
            "bytes": sum(size.nbytes for size in self.sizes),
            "places": [asdict(size) for size in self.sizes],
        }


def dry_run(
    program: Described,
    sizes: Sizes,
    n_controllers: int,
    *,
    dtype: DTypes = None,
    boundary: Boundaries = None,
    location: Locations = None,
    dt: float | None = None,
    division: Division | None = None,
    execution: Execution | None = None,
    links: Links | None = None,
    **keywords: object,
) -> DryRun:
    """Plan a run on `n_controllers` ranks with a device each; the options are `Computation`'s.

    Devices are dealt to the ranks in turn; they say whether a place computes in the host's
    memory (cpu, reference) or in a device's own (all others, and the default).  What matters only
    while steps are run has no effect.  ValueError where the options do not fit together.
    links: how long messages take, of which a run measures its own: where they make other cuts or
        another order of places clearly better, these are planned (docs/placement.md).
    """
    request = Request.of(
        program, sizes, dtype=dtype, boundary=boundary, location=location, dt=dt, division=division,
        execution=execution, keywords=keywords,
    )  # fmt: skip
    n_controllers = whole(n_controllers, "n_controllers")
    if n_controllers < 1:
        raise ValueError(f"a dry run is for at least 1 place, got {n_controllers}")
    division, execution = request.division, request.execution
    _check_no_chunks(execution)
    kernel = find_kernel(execution.kernel)
    check_math(execution.math, kernel)
    asked = request.program.with_math(execution.math)
    layout = division.layout_of(domain_of(asked, request.sizes), n_controllers)
    wanted = execution.devices or ("gpu",)
    words = [wanted] if isinstance(wanted, str) else list(wanted)
    ranks = [_location(rank, words[rank % len(words)]) for rank in range(n_controllers)]
    n_each, why = 1 if division.is_dealt else division.places_per_controller, ""
    kinds = {ranks[place // n_each % n_controllers].kind for place in range(layout.n_places)}
    planned = as_planned(asked, kernel, execution, kinds)
    if links is not None and is_open(division, planned, layout, n_controllers):
        on_host = [where.shares_host for where in ranks]
        layout, choice = arranged(division, planned, layout, on_host, links)
        ranks, why = [ranks[n] for n in choice.chosen.order], str(choice)
    locations = [ranks[place // n_each % n_controllers] for place in range(layout.n_places)]

    width = fixed_width(execution)

    def plan_of(n_steps: Steps) -> Plan:
        return plan_of_width(
            width, planned, layout, planned.periodic, locations,
            overlap=overlap_for(execution.overlap, kernel), steps_per_launch=n_steps,
            in_place=in_place(kernel, kinds),
        )  # fmt: skip

    plan = plan_with_steps(plan_of, kernel, execution.steps_per_launch, width=width)
    folds = {place: _folds_nbytes(plan, kernel, place) for place in plan.places}
    return DryRun(plan, _configurations(plan, kernel), place_sizes(plan, folds), why)


def _check_no_chunks(execution: Execution) -> None:
    if execution.chunks is not None:
        raise ValueError(
            f"a dry run plans fields that stay on their devices, got chunks={execution.chunks}; "
            f"leave it out, or make the Computation and ask it to explain"
        )


def _location(rank: int, selector: str) -> Location:
    on_host = selector.strip().lower().startswith(ON_HOST)
    word = selector.strip().lower()
    kind = next(filter(word.startswith, ON_HOST), "gpu")
    return Location(rank, 0, shares_host=on_host, device=selector, kind=kind)


def _configurations(plan: Plan, kernel: KernelChoice) -> tuple[KernelUse, ...]:
    """For each kind of device, the kernels of the boxes of all its places."""
    found: list[KernelUse] = []
    for kind in (*ON_HOST, "gpu"):
        places = [place for place in plan.places if plan.locations[place].kind == kind]
        for sweep in plan.sweeps_of(places) if places else ():
            boxes = [box for place in places for box in plan.launched(sweep, place)]
            found += planned_configurations(plan.program, sweep, kernel, boxes, kind)
    return tuple(found)


def _folds_nbytes(plan: Plan, kernel: KernelChoice, place: int) -> int:
    """Bytes on its device that the launches of a place fold into."""
    kind = plan.locations[place].kind
    return sum(
        planned_folds_nbytes(
            plan.program, plan.shortened(sweep, 1), kernel, [*plan.folded(sweep, place)], kind
        )
        for sweep in plan.sweeps if sweep.folds
    )
