# SPDX-License-Identifier: MIT
"""From a request to what runs: agree, divide, plan, bind, warm.

All ranks take these steps together; after a new division the last four are taken again, and the
fields change places between planning and binding where old and new do not fit in memory together.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from controllers.balance.first import First, first_division
from controllers.balance.remembered import AT_FIRST, SETTLED
from controllers.calls.watchdog import Watched
from controllers.engine import Engine
from controllers.engine.relay import Relay
from controllers.memory.ledger import MemoryCapError
from controllers.memory.tile import Tile
from controllers.placement.capacity import check_capacity, fit_on_tiles, fits
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
    Placement,
)
from controllers.placement.places import divide
from controllers.placement.relocation import plan_within, roomy
from controllers.placement.temporal import agreed_steps, is_thick, plan_with_steps
from controllers.plan import Plan, TileKey
from controllers.plan.rounds.paces import Steps
from controllers.process.once import Start, Took
from controllers.program.idle import Idle
from controllers.program.program import Program
from controllers.run.bound import relay_of
from controllers.run.chunking import Chunking
from controllers.run.terms import Terms, agree, keep_times
from controllers.settings.division import Division
from controllers.settings.request import Request
from controllers.tuning.sizes import Size
from hitmap.comm import Communicator
from hitmap.layout import Layout


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
    _lately: dict[tuple[float, ...], tuple[Division, Layout, Placement]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )       # the domain as it was divided last, which each decision asks for several times

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

    def has_room(self, shares: Sequence[float]) -> bool:
        """Whether tiles have room for such shares."""
        return self.engine.plan.reaches(self.divided(shares)[1])

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
        key = tuple(shares)
        if key not in self._lately:
            self._lately.clear()
            self._lately[key] = self._divided(key)
        return self._lately[key]

    def _divided(self, shares: Sequence[float]) -> tuple[Division, Layout, Placement]:
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
    start: when that was begun with.  on: the engine on whose tiles the fields stay.
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
    on: Engine | None = None

    def assembled(
        self, messages: Communicator, watched: Watched, tiles: Mapping[TileKey, Tile] | None = None
    ) -> Assembly:
        """Ready to step; `tiles` are those that hold fields already.  Collective."""
        tiles = tiles if self.on is None else self.on.tiles
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
    stays = None if old is None else _on_tiles(old, layout, placement, terms, comm)
    if stays is not None:
        return Draft(terms, layout, placement, *stays, begun, True, start, on=old)
    balances = begun.mode != "off"
    try:
        if terms.execution.n_chunks is not None and old is None:
            return _in_chunks(terms, layout, placement, comm, begun, start)
        plan, fits_beside = plan_on(layout, placement, terms, comm, old, balances=balances)
    except MemoryCapError as error:     # on all ranks
        if old is not None or any(where.shares_host for where in placement.locations):
            raise
        return _in_chunks(terms, layout, placement, comm, begun, start, error)
    homes, largest = placement.executors, terms.controllers.largest_bytes
    widths = _widths(
        plan, terms, lambda wide, others: fits(wide, homes, largest, comm, old, others)
    )
    wide = replanned(plan, widths[-1])
    return Draft(terms, layout, placement, wide, widths, begun, fits_beside, start)


def _on_tiles(
    old: Engine, layout: Layout, placement: Placement, terms: Terms, comm: Communicator
) -> tuple[Plan, tuple[int, ...]] | None:
    """The plan and the widths on the tiles of `old`, where they have room; else None.  Collective.
    """
    first = plan_within(old.plan, layout, placement.locations, fixed_width(terms.execution))
    if terms.is_checked or first is None:
        return None
    homes, wide = placement.executors, first.root

    def fits_there(plan: Plan, others: Sequence[Plan]) -> bool:
        return wide.holds(plan) and fit_on_tiles([plan, *others], homes, comm)

    widths = _widths(first, terms, fits_there)
    plan = replanned(first, widths[-1], first.tiles_of)
    return (plan, widths) if fits_there(plan, ()) else None


def _widths(
    plan: Plan, terms: Terms, fits: Callable[[Plan, Sequence[Plan]], bool]
) -> tuple[int, ...]:
    """That of the plan, and those that are to be tried."""
    searches = terms.execution.halo_width_search is not None
    return widths_to_try(plan, fits) if searches else (plan.halo_width,)


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


def plan_on(
    layout: Layout, placement: Placement, terms: Terms, comm: Communicator,
    old: Engine | None = None, *, balances: bool = False,
) -> tuple[Plan, bool]:  # fmt: skip
    """This rank's part of the plan; refused where it does not fit in memory.

    old: the engine whose fields it will have; whether it fits beside that, too.  balances: tiles
    have room for cuts to move, where there is memory for it beside all that is there.
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
            halo_capacity=_for_arrays(terms.planned),
        )  # fmt: skip

    largest_bytes = terms.controllers.largest_bytes
    plan = plan_with_steps(
        plan_of, terms.kernel, terms.execution.steps_per_launch, watched=terms.is_checked,
        width=width, usual=lambda plan: agreed_steps(plan, placement.executors, comm),
        fits=lambda plan: fits(plan, placement.executors, largest_bytes, comm, old),
    )  # fmt: skip
    if balances:
        plan = roomy(
            plan, lambda one, part: fits(one, placement.executors, largest_bytes, comm, part=part)
        )
    fits_beside = check_capacity(plan, placement.executors, comm, old)
    check_boxes(terms.kernel, plan, placement.executors, comm)
    return plan, fits_beside


def _for_arrays(program: Program) -> tuple[tuple[int, int], ...]:
    """Halos for array expressions, of fields without steps that would need some."""
    alone = all(isinstance(stage, Idle) for stage in program.stages)
    return ((1, 1),) * program.n_axes if alone else ()
