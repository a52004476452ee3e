# SPDX-License-Identifier: MIT
"""From a request to what runs: agree, divide, plan, bind, warm.

All ranks take these steps together; after a new division the last four are taken again, and the
fields change places between planning and binding where old and new do not fit in memory together.
"""
from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers import check, tuning
from controllers.balance.first import First, first_division
from controllers.balance.remembered import Remembered
from controllers.engine import Engine, RepeatingEngine
from controllers.kernel.crash import labelled
from controllers.kernel.registry import KernelChoice, agreed_kernel, check_math
from controllers.kernel.user_kernel import with_domain
from controllers.kernel.variant import Kernel
from controllers.memory.tile import Tile
from controllers.placement.capacity import check_capacity, fits
from controllers.placement.link_trial import links_of
from controllers.placement.own_kernel import check_boxes, in_place, overlap_for
from controllers.placement.placement import (
    Controllers,
    Placement,
    failing_together,
    open_controllers,
)
from controllers.placement.places import divide
from controllers.placement.temporal import THICK, agreed_steps, plan_with_steps
from controllers.plan import Plan, TileKey
from controllers.plan.rate import Rate
from controllers.program.idle import Idle
from controllers.program.program import Program
from controllers.run.watchdog import Watched
from controllers.settings.division import Division
from controllers.settings.domain import domain_of
from controllers.settings.execution import Execution
from controllers.settings.request import Request
from controllers.tuning.settling import settle
from hitmap.comm import Communicator
from hitmap.layout import Layout
from hitmap.shape import Shape


@dataclass(frozen=True)
class Terms:
    """What all ranks have agreed on, and the controllers that were opened for it."""

    program: Program
    domain: Shape
    kernel: KernelChoice
    execution: Execution
    controllers: Controllers

    @property
    def planned(self) -> Program:
        """The program as it is planned, perhaps with temporary fields."""
        return self.controllers.program

    @property
    def is_checked(self) -> bool:
        """Whether every access is watched."""
        return self.execution.checked != "off"


@dataclass(frozen=True)
class Assembly:
    """A program on places, ready to step.

    begun: the division as it was resolved.  seconds: what it took, on this rank, once the devices
    were open.
    """

    terms: Terms
    layout: Layout
    placement: Placement
    engine: Engine
    begun: First
    seconds: float

    @property
    def devices(self) -> list[tuple[int, int]]:
        """All that compute, each by its rank and its number there."""
        return [(where.rank, where.controller) for where in self.terms.controllers.locations]

    def cells_of(self, shares: Sequence[float]) -> list[int]:
        """The cells that the devices would get with these shares."""
        _, layout, placement = self.divided(shares)
        found = dict.fromkeys(self.devices, 0)
        for box, where in zip(layout.owned, placement.locations, strict=True):
            found[where.rank, where.controller] += box.n_cells
        return [*found.values()]

    def keep_rates(self, rates: Sequence[Rate]) -> None:
        """Remember, for later runs, the rates of all devices, those of this rank here."""
        keep_rates(self.terms, rates)

    def divided(self, shares: Sequence[float]) -> tuple[Division, Layout, Placement]:
        """The domain with these shares, or ones nearer to equal where places would be too thin."""
        terms, plan, n = self.terms, self.engine.plan, len(shares)
        for equal in (0.0, 0.125, 0.25, 0.5, 0.75):
            mixed = [(1 - equal) * share + equal / n for share in shares]
            division = self.begun.division.shared(mixed)
            layout, placement = divide(terms.controllers, terms.planned, terms.domain, division)
            if is_thick(layout, plan):
                break
        return division, layout, placement


@dataclass(frozen=True)
class Draft:
    """A program on places, planned, of which nothing is in memory yet.

    fits_beside: where fields are divided anew, all of it fits in memory beside what they are in.
    begun_s: when that was begun with.
    """

    terms: Terms
    layout: Layout
    placement: Placement
    plan: Plan
    begun: First
    fits_beside: bool
    begun_s: float

    def assembled(
        self, messages: Communicator, watched: Watched, tiles: Mapping[TileKey, Tile] | None = None
    ) -> Assembly:
        """Ready to step; `tiles` are those that hold fields already.  Collective."""
        engine = bind(self.plan, self.placement, self.terms, messages, watched, tiles)
        if tiles is None:
            warm(engine, self.placement, self.terms)
        seconds = time.perf_counter() - self.begun_s
        return Assembly(self.terms, self.layout, self.placement, engine, self.begun, seconds)


def drafted(
    request: Request, comm: Communicator, terms: Terms | None = None, old: Engine | None = None
) -> Draft:
    """From what is asked for to a plan that fits in memory, by three steps; collective.

    terms, old: those of an earlier assembly, of which only the division changes, and its engine.
    """
    terms = agree(request, comm) if terms is None else terms
    start = time.perf_counter()
    begun = first_division(
        request.division, terms.execution, terms.program, terms.kernel, terms.controllers,
        terms.domain, comm,
    )  # fmt: skip
    layout, placement = divide(
        terms.controllers, terms.planned, terms.domain, begun.division,
        lambda: links_of(terms.controllers, comm),
    )  # fmt: skip
    plan, fits_beside = plan_on(layout, placement, terms, comm, old)
    return Draft(terms, layout, placement, plan, begun, fits_beside, start)


def keep_rates(terms: Terms, rates: Sequence[Rate | None]) -> None:
    """Remember what is known of all devices of these terms, those of this rank here."""
    controllers = terms.controllers
    for where, rate in zip(controllers.locations, rates, strict=True):
        if where.rank == controllers.rank and rate is not None:
            device = controllers.executors[where.controller].device
            Remembered(device, terms.program, terms.domain).store(rate)


def thinnest(plan: Plan) -> tuple[int, ...]:
    """Cells that a place has along each axis that is cut, at least, for halos not to be thick."""
    reach = (low + high for low, high in plan.program.reach)
    return tuple(max(1, THICK * along * plan.steps_per_launch) for along in reach)


def is_thick(layout: Layout, plan: Plan) -> bool:
    """Whether all places have as many cells along each axis that is cut."""
    axes = [*zip(thinnest(plan), layout.domain.extent)]
    return all(
        n >= least or n == whole
        for box in layout.owned if not box.empty
        for n, (least, whole) in zip(box.extent, axes)
    )  # fmt: skip


def least_cells(plan: Plan, division: Division) -> float:
    """Cells that a device keeps for its bands to be thick enough; blocks may need more."""
    domain = plan.layout.domain
    rows = thinnest(plan)[0] * division.places_per_controller
    return rows * domain.n_cells / max(1, domain.extent[0])


def agree(request: Request, comm: Communicator) -> Terms:
    """The program with its arithmetic, its kernels, and the devices of all ranks, opened."""
    execution = request.execution
    program = request.program.with_math(execution.math)
    domain = domain_of(program, request.sizes)
    kernel = agreed_kernel(comm, execution.kernel)
    check_math(execution.math, kernel, checked=execution.checked != "off")
    if execution.tune:
        tuning.check_tuning(execution.tune, kernel, program, execution.checked)
    own = with_domain(kernel, domain) if isinstance(kernel, Kernel) else kernel
    controllers = open_controllers(comm, program, execution, kernel=own)
    return Terms(program, domain, kernel, execution, controllers)


def plan_on(
    layout: Layout, placement: Placement, terms: Terms, comm: Communicator,
    old: Engine | None = None,
) -> tuple[Plan, bool]:  # fmt: skip
    """This rank's part of the plan; refused where it does not fit in memory.

    old: the engine whose fields it will have; whether it fits beside that, too.
    """
    if terms.is_checked:    # what watches accesses is in memory, too, and fills tiles with junk
        old = None
    kinds = {where.kind for where in placement.locations}

    def plan_of(n_steps: int) -> Plan:
        return Plan(
            terms.planned, layout, terms.planned.periodic, placement.locations,
            overlap=overlap_for(terms.execution.overlap, terms.kernel), only_rank=comm.rank,
            steps_per_launch=n_steps, in_place=in_place(terms.kernel, kinds),
            halo_capacity=_room(terms.planned),
        )  # fmt: skip

    largest_bytes = terms.controllers.largest_bytes
    plan = plan_with_steps(
        plan_of, terms.kernel, terms.execution.steps_per_launch, watched=terms.is_checked,
        usual=lambda plan: agreed_steps(plan, placement.executors, comm),
        fits=lambda plan: fits(plan, placement.executors, largest_bytes, comm, old),
    )  # fmt: skip
    fits_beside = check_capacity(plan, placement.executors, comm, old)
    check_boxes(terms.kernel, plan, placement.executors, comm)
    return plan, fits_beside


def _room(program: Program) -> tuple[tuple[int, int], ...]:
    """Halos for array expressions, of fields without steps that would need some."""
    alone = all(isinstance(stage, Idle) for stage in program.stages)
    return ((1, 1),) * program.n_axes if alone else ()


def bind(
    plan: Plan, placement: Placement, terms: Terms, messages: Communicator, watched: Watched,
    tiles: Mapping[TileKey, Tile] | None = None,
) -> Engine:  # fmt: skip
    """The plan tied to tiles, kernels and messages, and watched by the watchdog."""
    kind: type[Engine] = RepeatingEngine if plan.parts else Engine
    if terms.is_checked:
        kind = check.CheckedRepeatingEngine if plan.parts else check.CheckedEngine
    with failing_together(messages):    # one driver may fail to compile
        engine = kind(plan, placement.executors, messages, tiles)
    watched.engine = engine
    if terms.execution.limit_s is not None:
        engine.watch()
    return engine


def warm(engine: Engine, placement: Placement, terms: Terms) -> None:
    """Every kernel launched and all memory touched, so that steps cost what they always will."""
    if not terms.is_checked:    # a checked engine wants cells that have been set
        labelled(placement.first_launches, engine.warm)()
        if not engine.plan.parts:
            settle(engine)
