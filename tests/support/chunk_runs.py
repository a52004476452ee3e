# SPDX-License-Identifier: MIT
"""Random programs whose fields pass through devices in chunks, by engines of any kind of plan."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from engine_runs import check_runs
from random_programs import ProgramCase

from controllers.engine import ChunkEngine, Engine, RepeatingEngine
from controllers.executor.executor import Executor
from controllers.placement.halo_width import replanned_pass
from controllers.plan import ChunkPlan, Location, PartedChunks, SkewedPlan
from controllers.plan.chunks.chunk_margins import why_overlapped
from controllers.plan.folding import needed
from controllers.program.program import Program
from hitmap import Layout
from hitmap.comm import Communicator


def kinds_of(program: Program, layout: Layout) -> Sequence[type[ChunkPlan]]:
    """Chunks with margins and, where there is nothing against them, skewed ones; or parts."""
    if program.repeats or needed(program):
        return [PartedChunks]
    return [ChunkPlan] if why_overlapped(program, layout) else [ChunkPlan, SkewedPlan]


def check_passes(
    kind: type[ChunkPlan], case: ProgramCase, layout: Layout, where: Sequence[Location],
    places: Mapping[int, Executor], comm: Communicator, **options: Any,
) -> None:  # fmt: skip
    """Runs of all steps at once, and of one at a time after the fields are set anew."""
    plan = kind(
        case.program, layout, case.periodic, where, only_rank=comm.rank, **options
    )
    of_plan: Any = RepeatingEngine if plan.parts else ChunkEngine
    engine: Engine = of_plan(plan, places, comm, shorter=replanned_pass)
    check_runs(engine, case)
