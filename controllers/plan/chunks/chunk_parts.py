# SPDX-License-Identifier: MIT
"""Plans of chunks of programs whose steps have parts, each of which is passes of its own.

A part is a repeat, what is between two, or what comes after a fold that it uses: that is known when
all chunks have been computed.  A repeat whose turns use what they fold has parts itself.  All have
their images in common, and the memory through which their chunks pass in turn.
"""
# docs/decisions/0095-parts-of-a-step-are-passes.md
from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from controllers.plan.chunks.chunk_margins import why_overlapped
from controllers.plan.chunks.chunk_plan import ChunkPlan
from controllers.plan.chunks.skewed_plan import SkewedPlan
from controllers.plan.folding import needed
from controllers.plan.memory import PlanMemory
from controllers.plan.operation import Memory
from controllers.plan.plan import Part, Plan
from controllers.plan.recorder import Recorder
from controllers.program.program import Program
from controllers.program.repeat import Repeat
from controllers.program.segments import formers, segments, with_formers


class PartedChunks(ChunkPlan):
    """What the parts of a step have in common, which has no operations of its own."""

    def __init__(self, program: Program, *args: Any, n_launches: int = 1, **options: Any) -> None:
        """n_launches: turns of a repeat in a pass."""
        self._n_turns = n_launches
        super().__init__(with_formers(program), *args, n_launches=1, **options)

    @property
    def halo_width(self) -> int:
        return self._n_turns

    @property
    def span(self) -> int:
        return 1

    @property
    def step_name(self) -> str:
        return "step"

    def why_not(self, program: Program) -> str:
        return ""

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        return tuple(
            Part(self._part(program, repeat), repeat)
            for program, repeat in segments(self.program, at_folds=True)
        )

    @property
    def passes(self) -> tuple[ChunkPlan, ...]:
        """Of each part, those of its own parts in place of one that has some."""
        found: list[ChunkPlan] = []
        for part in self.parts:
            assert isinstance(part.plan, ChunkPlan), "parts are of chunks, too"
            found += part.plan.passes if isinstance(part.plan, PartedChunks) else [part.plan]
        return (*found,)

    @cached_property
    def kept_fields(self) -> tuple[str, ...]:
        """Those that live on the host, between the parts of a step alone too."""
        return (*super().kept_fields, *(field.name for field in formers(self.program)))

    @property
    def n_buffers(self) -> Mapping[str, int]:
        return self.liveness.n_buffers

    def n_images(self, field: str) -> int:
        every = (one.n_images(field) for one in self.passes if field in one.kept_fields)
        return max(every, default=1)

    def _part(self, program: Program, repeat: Repeat | None) -> Plan:
        kind: type[ChunkPlan] = SkewedPlan
        if needed(program):
            kind, repeat = PartedChunks, None       # turns are passes, and no pass has several
        elif why_overlapped(program, self.layout):
            kind = ChunkPlan
        return kind(
            program, self.layout, self.periodic, self.locations, way=self.way,
            only_rank=self.only_rank, in_place=self.in_place, n_slots=self.n_slots,
            n_launches=1 if repeat is None else min(self._n_turns, repeat.in_a_row),
        )  # fmt: skip

    def _memories_of_chunks(self) -> Iterator[PlanMemory]:
        """Images, and rooms as large as any part needs them."""
        yield from self._memories_of_images()
        rooms: dict[Memory, PlanMemory] = {}
        for part in self.passes:
            for one in part.memories:
                if one.kind == "tile" and (
                    one.key not in rooms or rooms[one.key].nbytes < one.nbytes
                ):
                    rooms[one.key] = one
        yield from rooms.values()

    def _record_step(self, recorder: Recorder, phase: int) -> None:
        """Nothing: that is what parts do."""

    def _record_opening(self, recorder: Recorder, phase: int) -> None:
        """Nothing."""
