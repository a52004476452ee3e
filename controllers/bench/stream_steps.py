# SPDX-License-Identifier: MIT
"""A benchmark of time steps whose fields pass through their device: each step is some passes."""
# docs/decisions/0095-parts-of-a-step-are-passes.md
from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from controllers.bench.rounds import Entrant, interleaved
from controllers.bench.stream_cases import Module, StreamCase
from controllers.report.pipeline import PipelineReport
from controllers.run.computation import Computation

TIMED = 3       # steps whose copies and kernels are timed one by one


@dataclass(frozen=True)
class StepSpeed:
    """Seconds of a step with one slot and with several; what one slot has seen; the chunks."""

    alone_s: float
    pipelined_s: float
    seen: PipelineReport
    chunks: int
    least: int
    slots: int


def measured(
    name: str, case: StreamCase, example: Module, n_cells: int, options: Mapping[str, Any],
    seconds: float, chunks: int | Literal["auto"] | None,
) -> StepSpeed:  # fmt: skip
    """As `run_stream`.  RuntimeError where both ways give unlike results."""
    assert case.begin is not None, "a benchmark of steps"
    with case.begin(example, n_cells, {**options, "chunks": 1}) as fewest:
        least = len(fewest.plan.places)
    with case.begin(example, n_cells, {**options, "slots": 1}) as single, case.begin(
        example, n_cells, {**options, "chunks": chunks}
    ) as several:
        for run in (single, several):
            run.run(1)      # the first one touches memory
            run.run(TIMED)
        for field in single.fields:
            one, other = (np.asarray(run[field].gather()) for run in (single, several))
            if not np.array_equal(one, other):
                raise RuntimeError(f"{name}: unlike results with one slot and with several")
        seen = single.report().pipeline
        assert seen is not None, "passes were looked at"
        alone, pipelined = map(
            statistics.median, interleaved([*map(_stepped, (single, several))], seconds)
        )
        plan = several.plan
        return StepSpeed(
            alone, pipelined, seen, len(plan.places), least, getattr(plan, "n_slots", 0)
        )


def _stepped(run: Computation) -> Entrant:
    def steps(count: int) -> None:
        run.run(count)

    steps(1)
    return Entrant(steps, 1, 0.0)
