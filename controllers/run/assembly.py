# SPDX-License-Identifier: MIT
"""From a request to what runs: agree, divide, plan, bind, warm.

All ranks take these steps together; after a new division the last four are taken again, and the
fields change places between planning and binding where old and new do not fit in memory together.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controllers import tuning
from controllers.balance.first import First, first_division
from controllers.balance.remembered import AT_FIRST, SETTLED, Remembered
from controllers.calls.watchdog import Watched
from controllers.engine import Engine
from controllers.engine.relay import Relay
from controllers.kernel.registry import KernelChoice, agreed_kernel, check_math
from controllers.kernel.user_kernel import with_domain
from controllers.kernel.variant import Kernel
from controllers.memory.ledger import MemoryCapError
from controllers.memory.tile import Tile
from controllers.placement.capacity import check_capacity, fits
from controllers.placement.halo_width import (
    fixed_width,
    plan_of_width,
    replanned,
    replanned_pass,
    widths_to_try,
)
from controllers.placement.link_trial import links_of
from controllers.placement.own_kernel import check_boxes, in_place, overlap_for
from controllers.placement.placement import (
    Controllers,
    Placement,
    open_controllers,
)
from controllers.placement.places import divide
from controllers.placement.temporal import THICK, agreed_steps, plan_with_steps
from controllers.plan import Plan, TileKey
from controllers.plan.rounds.paces import Steps
from controllers.process.once import Start, Took
from controllers.program.idle import Idle
from controllers.program.program import Program
from controllers.run.bound import relay_of
from controllers.run.chunking import Chunking
from controllers.settings.division import Division
from controllers.settings.domain import domain_of
from controllers.settings.execution import Execution
from controllers.settings.request import Request
from controllers.tuning.sizes import Size
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

    engine: that runs the steps now, of those in `relay`.  begun: the division as it was resolved.
    took: how long, on this rank, once the devices were open.  chunking: of chunks.
    """

    terms: Terms
    layout: Layout
    placement: Placement
    engine: Engine
    relay: Relay
    begun: First
    took: Took
    chunking: Chunking | None = None

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

    def keep_times(self, seen: Sequence[Mapping[int, float]], *, settled: bool) -> None:
        """Remember, for later runs, how long steps took, those of this rank's devices here."""
        keep_times(self.terms, seen, SETTLED if settled else AT_FIRST)

    def cut_anew(self, size: Size, messages: Communicator, watched: Watched) -> Assembly:
        """The same with chunks of another size, which fits, on the same images.  Collective."""
        assert self.chunking is not None, "fields pass through"
        start, cut = Start.now(), self.chunking.cut_anew(size)
        widths = (cut[-1].halo_width,)
        draft = Draft(self.terms, *cut, widths, self.begun, False, start, self.chunking)
        return draft.assembled(messages, watched)

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

    plan: with the widest halo.  widths: that of the first steps, and those that others may have.
    fits_beside: where fields are divided anew, all of it fits in memory beside what they are in.
    start: when that was begun with.
    """

    terms: Terms
    layout: Layout
    placement: Placement
    plan: Plan
    widths: tuple[int, ...]
    begun: First
    fits_beside: bool
    start: Start
    chunking: Chunking | None = None

    def assembled(
        self, messages: Communicator, watched: Watched, tiles: Mapping[TileKey, Tile] | None = None
    ) -> Assembly:
        """Ready to step; `tiles` are those that hold fields already.  Collective."""
        if tiles is None and self.chunking is not None:
            tiles = self.chunking.images(self.plan, self.placement)
        relay = relay_of(
            self.plan, self.widths, self.placement, self.terms.execution, messages, watched, tiles
        )
        engine, took = relay.engine(self.widths[0]), self.start.took()
        more = self.begun, took, self.chunking
        return Assembly(self.terms, self.layout, self.placement, engine, relay, *more)


def drafted(
    request: Request, comm: Communicator, terms: Terms | None = None, old: Engine | None = None
) -> Draft:
    """From what is asked for to a plan that fits in memory, by three steps; collective.

    terms, old: those of an earlier assembly, of which only the division changes, and its engine.
    """
    terms = agree(request, comm) if terms is None else terms
    start = Start.now()
    begun = first_division(
        request.division, terms.execution, terms.program, terms.kernel, terms.controllers,
        terms.domain, comm,
    )  # fmt: skip
    layout, placement = divide(
        terms.controllers, terms.planned, terms.domain, begun.division,
        lambda: links_of(terms.controllers, comm),
    )  # fmt: skip
    try:
        if terms.execution.n_chunks is not None and old is None:
            return _in_chunks(terms, layout, placement, comm, begun, start)
        plan, fits_beside = plan_on(layout, placement, terms, comm, old)
    except MemoryCapError as error:     # on all ranks
        if old is not None or any(where.shares_host for where in placement.locations):
            raise
        return _in_chunks(terms, layout, placement, comm, begun, start, error)
    widths: tuple[int, ...] = (plan.halo_width,)
    if terms.execution.halo_width_search is not None:
        homes, largest = placement.executors, terms.controllers.largest_bytes
        widths = widths_to_try(
            plan, lambda wide, others: fits(wide, homes, largest, comm, old, others)
        )
    wide = replanned(plan, widths[-1])
    return Draft(terms, layout, placement, wide, widths, begun, fits_beside, start)


def _in_chunks(
    terms: Terms, layout: Layout, placement: Placement, comm: Communicator, begun: First,
    start: Start, error: MemoryCapError | None = None,
) -> Draft:  # fmt: skip
    """With fields that live on the host and pass through; refused where they cannot."""
    chunking = Chunking(
        terms.program, layout, placement, terms.execution, terms.kernel, comm,
        terms.controllers.largest_bytes,
    )  # fmt: skip
    layout, placement, plan = chunking.draft(error)
    check_boxes(terms.kernel, plan, placement.executors, comm)
    widths = chunking.spans(plan, placement)
    wide = replanned_pass(plan, max(widths))
    return Draft(terms, layout, placement, wide, widths, begun, False, start, chunking)


def keep_times(terms: Terms, seen: Sequence[Mapping[int, float]], how: str) -> None:
    """Remember how long steps took on all devices of these terms, those of this rank here."""
    controllers = terms.controllers
    for where, times in zip(controllers.locations, seen, strict=True):
        if where.rank == controllers.rank and times:
            device = controllers.executors[where.controller].device
            Remembered(device, terms.program, terms.domain).store(times, how)


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
    width = fixed_width(terms.execution)

    def plan_of(n_steps: Steps) -> Plan:
        return plan_of_width(
            width, terms.planned, layout, terms.planned.periodic, placement.locations,
            overlap=overlap_for(terms.execution.overlap, terms.kernel), only_rank=comm.rank,
            steps_per_launch=n_steps, in_place=in_place(terms.kernel, kinds),
            halo_capacity=_room(terms.planned),
        )  # fmt: skip

    largest_bytes = terms.controllers.largest_bytes
    plan = plan_with_steps(
        plan_of, terms.kernel, terms.execution.steps_per_launch, watched=terms.is_checked,
        width=width, usual=lambda plan: agreed_steps(plan, placement.executors, comm),
        fits=lambda plan: fits(plan, placement.executors, largest_bytes, comm, old),
    )  # fmt: skip
    fits_beside = check_capacity(plan, placement.executors, comm, old)
    check_boxes(terms.kernel, plan, placement.executors, comm)
    return plan, fits_beside


def _room(program: Program) -> tuple[tuple[int, int], ...]:
    """Halos for array expressions, of fields without steps that would need some."""
    alone = all(isinstance(stage, Idle) for stage in program.stages)
    return ((1, 1),) * program.n_axes if alone else ()
