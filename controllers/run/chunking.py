# SPDX-License-Identifier: MIT
"""Fields that do not fit their devices: planned in chunks that pass through, or refused."""
# docs/decisions/0064-chunks-are-places-in-slots.md
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from controllers.kernel.registry import KernelChoice
from controllers.memory.ledger import MemoryCapError
from controllers.placement.capacity import fits
from controllers.placement.chunking import Cutting, cut, cuttings, refused, why_whole
from controllers.placement.far import known_to_all
from controllers.placement.halo_width import fixed_width, replanned_pass, spans_to_try
from controllers.placement.images import check_disk, images_for
from controllers.placement.own_kernel import as_planned, in_place, overlap_for
from controllers.placement.placement import Placement
from controllers.placement.temporal import agreed_steps, fewest, plan_with_steps
from controllers.plan import ChunkPlan, Plan, SkewedPlan
from controllers.plan.paces import Steps
from controllers.program.program import Program
from controllers.program.steps import can_combine
from controllers.settings.execution import Execution
from controllers.tuning.kept_pass import KeptPass
from hitmap.comm import Communicator
from hitmap.layout import Layout

WIDE = 2        # steps between exchanges for which a program is planned; any over 1 are alike
MOST_TRIES = 5      # numbers of chunks that are tried, where tables take more than was estimated


class Chunking:
    """Plans chunks of a program on these places.

    largest_bytes: the largest single allocation that all devices allow.
    """

    def __init__(
        self, program: Program, layout: Layout, placement: Placement, execution: Execution,
        kernel: KernelChoice, comm: Communicator, largest_bytes: int,
    ) -> None:  # fmt: skip
        self._layout, self._placement, self._comm = layout, placement, comm
        self._execution, self._kernel = execution, kernel
        self._largest_bytes = largest_bytes
        self._kinds = {where.kind for where in placement.locations}
        wide = replace(execution, halo_width=WIDE, steps_per_launch=None)
        self._program = as_planned(program, kernel, wide, self._kinds)
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
        width = fixed_width(execution)
        if why:
            raise refused(error, why)
        single = self._plan(Plan, self._layout, self._placement, steps_per_launch=1)
        known = known_to_all(self._placement, self._comm)
        self.kept = self._kept(single, known)
        if execution.halo_width_search is not None:
            width = self._comm.bcast(self.kept.load() if self._comm.rank == 0 else None)
        self.is_known = width is not None
        per_launch = self._wanted or 1
        if self._wanted is None and can_combine(program, self._layout.domain):
            per_launch = fewest(agreed_steps(single, self._placement.executors, self._comm))
        for cutting in cuttings(single, known, execution, self._images, width, per_launch):
            n_chunks = cutting.n_chunks
            for _ in range(MOST_TRIES):
                layout, placement = cut(self._layout, self._placement, n_chunks)
                plan = self._chunks(cutting, layout, placement)
                homes, comm = placement.executors, self._comm
                if fits(plan, homes, self._largest_bytes, comm, on_same_tiles=_ends(plan)):
                    check_disk(plan, comm)
                    return layout, placement, plan
                n_chunks += -(-n_chunks // 8)
        raise refused(error, f"a row of cells with its margins has no room in {_slots(execution)}")

    def spans(self, plan: ChunkPlan, placement: Placement) -> tuple[int, ...]:
        """The steps of passes to choose among, that of `plan` first.  Collective."""
        if self.is_known or self._execution.halo_width_search is None:
            return (plan.span,)

        def fit(longest: Plan, others: Sequence[Plan]) -> bool:
            return fits(longest, placement.executors, self._largest_bytes, self._comm,
                        on_same_tiles=[*others, *_ends(plan)])  # fmt: skip

        found = spans_to_try(plan, fit)
        return (plan.span, *(span for span in found if span != plan.span))

    def _kept(self, single: Plan, known: Placement) -> KeptPass:
        """What earlier runs have found for the same, on devices with as much memory."""
        execution, caps = self._execution, [
            executor.ledger.cap_bytes for executor in known.executors.values()
        ]  # fmt: skip
        asked = execution.chunks, execution.slots, self._wanted, self._images
        return KeptPass(single, (caps, asked))

    def _chunks(self, cutting: Cutting, layout: Layout, placement: Placement) -> ChunkPlan:
        """With as many steps per launch as promise to be fast."""
        span = cutting.span

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
        self, kind: type[Plan], layout: Layout, placement: Placement, **options: Any
    ) -> Plan:
        return kind(
            self._program, layout, self._program.periodic, placement.locations,
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
