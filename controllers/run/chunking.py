# SPDX-License-Identifier: MIT
"""Fields that do not fit their devices: planned in chunks that pass through, or refused."""
# docs/decisions/0064-chunks-are-places-in-slots.md
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from controllers.kernel.registry import KernelChoice
from controllers.links.shared_links import SharedLinks
from controllers.memory.ledger import MemoryCapError
from controllers.memory.tile import Tile
from controllers.placement.capacity import fits
from controllers.placement.chunk_model import ends, least_chunks, least_skewed
from controllers.placement.chunking import SPANS, Cutting, cut, cuttings, refused, why_whole
from controllers.placement.far import known_to_all
from controllers.placement.halo_width import fixed_width, replanned_pass, spans_to_try
from controllers.placement.images import check_disk, images_for, least_images
from controllers.placement.own_kernel import as_planned, in_place, overlap_for
from controllers.placement.placement import Placement, failing_together
from controllers.placement.sharing_trial import shared_links_of
from controllers.placement.temporal import agreed_steps, fewest, plan_with_steps
from controllers.plan import ChunkPlan, PartedChunks, Plan, SkewedPlan, TileKey
from controllers.plan.folding import needed
from controllers.plan.rounds.paces import Steps
from controllers.program.following import followed
from controllers.program.program import Program
from controllers.program.segments import has_parts, with_formers
from controllers.program.steps import can_combine
from controllers.run.cut_anew import HostImages, Room, grid_of
from controllers.settings.division import AUTO
from controllers.settings.execution import Execution
from controllers.tuning.kept_size import KeptSize
from controllers.tuning.sizes import Size, Sizes, Spans
from hitmap.comm import Communicator
from hitmap.layout import Layout

WIDE = 2        # steps between exchanges for which a program is planned; any over 1 are alike
MOST_TRIES = 5      # numbers of chunks that are tried, where tables take more than was estimated


class Chunking:
    """Plans chunks of a program on these places.

    largest_bytes: the largest single allocation that all devices allow.  shared_links: what several
    devices have of their links at once, once there is a draft, if it is known.
    """

    shared_links: SharedLinks | None = None

    def __init__(
        self, program: Program, layout: Layout, placement: Placement, execution: Execution,
        kernel: KernelChoice, comm: Communicator, largest_bytes: int,
    ) -> None:  # fmt: skip
        self._layout, self._placement, self._comm = layout, placement, comm
        self._execution, self._kernel = execution, kernel
        self._largest_bytes = largest_bytes
        self._room, self._host = Room(placement.executors, largest_bytes), HostImages(layout)
        self._drawn: tuple[Size, Layout, Placement, ChunkPlan] | None = None
        self._kinds = {where.kind for where in placement.locations}
        wide = replace(execution, halo_width=WIDE, steps_per_launch=None)
        self._program = with_formers(as_planned(program, kernel, wide, self._kinds))
        self._has_parts = bool(self._program.repeats or needed(self._program))
        self._images = images_for(execution, comm)
        asked = execution.steps_per_launch is not None
        self._wanted = 1 if program.folds else execution.most_steps if asked else None

    def draft(self, error: MemoryCapError | None) -> tuple[Layout, Placement, ChunkPlan]:
        """Chunks that fit; `error` says what does not as a whole, if anything.  Collective.

        `MemoryCapError` on all ranks where there are none; ValueError where somebody has asked
        for them all the same.
        """
        program, execution = self._program, self._execution
        why = why_whole(program, execution, self._placement)
        if why:
            raise refused(error, why)
        self._single = single = self._plan(Plan, self._layout, self._placement, steps_per_launch=1)
        self._known = known = known_to_all(self._placement, self._comm)
        self.kept = self._kept(single, known)
        size, width = None, fixed_width(execution)
        if execution.chunks == AUTO or execution.halo_width_search is not None:
            size = self._comm.bcast(self.kept.load() if self._comm.rank == 0 else None)
        self.is_known = size is not None
        if size is not None:
            width = width if self._has_parts else size.span
            execution = replace(execution, chunks=size.chunks, slots=size.slots)
        per_launch = self._wanted or 1
        if self._wanted is None and can_combine(program, self._layout.domain):
            per_launch = fewest(agreed_steps(single, self._placement.executors, self._comm))
        if per_launch > 1 and program.renames:      # as launches of several steps write them
            self._single = single = self._plan(
                Plan, self._layout, self._placement, program=followed(program), steps_per_launch=1
            )  # fmt: skip
        images = least_images(self._images, self._comm)
        most = self._most_turns(error, width) if self._has_parts else SPANS[-1]
        for cutting in cuttings(single, known, execution, images, width, per_launch, most):
            n_chunks = cutting.n_chunks
            for _ in range(MOST_TRIES):
                layout, placement = self._cut(n_chunks, cutting)
                plan = self._chunks(cutting, layout, placement)
                homes, comm = placement.executors, self._comm
                if fits(plan, homes, self._largest_bytes, comm, on_same_tiles=_ends(plan)):
                    check_disk(plan, comm)
                    self._first = replace(cutting, n_chunks=n_chunks)
                    self.shared_links = shared_links_of(placement, comm)
                    return layout, placement, plan
                n_chunks += -(-n_chunks // 8)
        raise refused(error, f"a row of cells with its margins has no room in {_slots(execution)}")

    def spans(self, plan: ChunkPlan, placement: Placement) -> tuple[int, ...]:
        """The steps of passes that have an engine from the beginning, first that of `plan`.

        Collective.
        """
        search = self._execution.halo_width_search
        stays = self.is_known or search is None or self._has_parts
        if stays or self.cuts_anew(plan):
            return (plan.halo_width,)

        def fit(longest: Plan, others: Sequence[Plan]) -> bool:
            return fits(longest, placement.executors, self._largest_bytes, self._comm,
                        on_same_tiles=[*others, *_ends(plan)])  # fmt: skip

        found = spans_to_try(plan, fit)
        return (plan.span, *(span for span in found if span != plan.span))

    def cuts_anew(self, plan: Plan) -> bool:
        """Whether chunks and slots are tried, too: where images lie in memory.  Collective."""
        in_files = any(self._comm.allgather(any(one.in_file for one in plan.memories)))
        return self._execution.chunks == AUTO and not self.is_known and not in_files

    def images(self, plan: Plan, placement: Placement) -> dict[TileKey, Tile] | None:
        """The images of a plan that may be cut otherwise; None where each has its own memory.

        Collective.
        """
        if not self.cuts_anew(plan):
            return None
        with failing_together(self._comm):
            return self._host.tiles(plan, placement.executors)

    def sizes(self, plan: ChunkPlan, spans: Sequence[int]) -> Sizes:
        """What a run chooses among; `spans`: the steps of passes that have an engine.  Collective.
        """
        cutting = self._first
        if not self.cuts_anew(plan):
            first = Size(plan.halo_width, cutting.n_chunks, cutting.n_slots)
            return Spans(tuple(spans), first)
        first = Size(plan.span, cutting.n_chunks, cutting.n_slots)

        def least(span: int, n_slots: int) -> int | None:
            count = least_skewed if cutting.is_skewed else least_chunks
            return count(self._single, self._known, self._launched(span), n_slots)

        return grid_of(plan, first, self._execution, least, lambda size: self.fits(size))

    def fits(self, size: Size) -> bool:
        """Whether chunks may be of this size, on all ranks.  Collective."""
        _, placement, plan = self.cut_anew(size)
        return self._room.has(plan, placement.executors, _ends(plan), self._comm)

    def cut_anew(self, size: Size) -> tuple[Layout, Placement, ChunkPlan]:
        """Chunks of this size.  Collective."""
        if self._drawn is None or self._drawn[0] != size:
            cutting = replace(
                self._first, n_chunks=size.chunks, span=self._launched(size.span),
                n_slots=size.slots, why="found while passes ran",
            )  # fmt: skip
            layout, placement = self._cut(size.chunks, cutting)
            self._drawn = size, layout, placement, self._chunks(cutting, layout, placement)
        return self._drawn[1:]

    def _cut(self, n_chunks: int, cutting: Cutting) -> tuple[Layout, Placement]:
        around = ends(self._single, cutting.span) if cutting.is_skewed else None
        return cut(self._layout, self._placement, n_chunks, around)

    def _launched(self, span: int) -> int:
        """Steps of a pass; of steps that have parts, turns of a repeat, which stay."""
        return self._first.span if self._has_parts else span

    def _most_turns(self, error: MemoryCapError | None, width: int | None) -> int:
        """Of a repeat in a pass; a step that has parts is no pass of several steps."""
        program = self._program
        turns = [one.in_a_row for one in program.repeats if not has_parts(program, one)]
        if not turns and width not in (None, 1):
            what = "turns" if program.repeats else "steps"
            why = f"{what} use what they fold, so that a pass has no {width} of them; use 1"
            raise refused(error, why)
        return max(turns, default=1)

    def _kept(self, single: Plan, known: Placement) -> KeptSize:
        """What earlier runs have found for the same, on devices with as much memory."""
        execution, caps = self._execution, [
            executor.ledger.cap_bytes for executor in known.executors.values()
        ]  # fmt: skip
        asked = execution.chunks, execution.slots, execution.halo_width, self._wanted, self._images
        return KeptSize(single, (caps, asked))

    def _chunks(self, cutting: Cutting, layout: Layout, placement: Placement) -> ChunkPlan:
        """With as many steps per launch as promise to be fast."""
        span = cutting.span
        if self._has_parts:
            plan = self._plan(
                PartedChunks, layout, placement, n_launches=span, n_slots=cutting.n_slots,
                why=cutting.why, images=self._images,
            )  # fmt: skip
            assert isinstance(plan, ChunkPlan)
            return plan

        def make(n_steps: Steps, n_launches: int | None = None) -> Plan:
            assert isinstance(n_steps, int), "chunks are alike"
            return self._plan(
                SkewedPlan if cutting.is_skewed else ChunkPlan, layout, placement,
                steps_per_launch=n_steps, n_launches=n_launches or span // n_steps,
                n_slots=cutting.n_slots, why=cutting.why,
                images=self._images, pipeline=cutting.pipeline,
            )  # fmt: skip

        def usual(single: Plan) -> int:     # by one launch of each chunk, of thousands
            return fewest(agreed_steps(make(1, 1), placement.executors, self._comm))

        plan = plan_with_steps(make, self._kernel, self._wanted, width=span, usual=usual)
        assert isinstance(plan, ChunkPlan)
        return plan

    def _plan(
        self, kind: type[Plan], layout: Layout, placement: Placement,
        program: Program | None = None, **options: Any,
    ) -> Plan:  # fmt: skip
        return kind(
            program or self._program, layout, self._program.periodic, placement.locations,
            overlap=overlap_for(self._execution.overlap, self._kernel), only_rank=self._comm.rank,
            in_place=in_place(self._kernel, self._kinds), **options,
        )  # fmt: skip


def _ends(plan: ChunkPlan) -> list[ChunkPlan]:
    """The longest passes that may end a run: one of whole launches, and one of single steps."""
    spans = plan.span - plan.steps_per_launch, plan.steps_per_launch - 1
    return [replanned_pass(plan, span) for span in spans if span]


def _slots(execution: Execution) -> str:
    count = execution.slots
    return "the slots of a device" if count is None else f"{count} slot{'s' * (count > 1)}"
