# SPDX-License-Identifier: MIT
"""Fields at half points as text: which they are, and what became of stages that update several."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from controllers.plan import Plan
from controllers.program.pieces import division
from controllers.program.sweep import Sweep


def points(plan: Plan) -> Iterator[str]:
    """Which fields lie at half points, and how many they have."""
    program = plan.program
    names = [*range(program.n_axes)] if program.grid is None else program.grid.axes
    for field in program.fields:
        if field.half:
            axes = " and ".join(str(axis) for axis, half in zip(names, field.half) if half)
            extent = " x ".join(map(str, plan.layout_of(field.name).domain.extent))
            yield f"{field.name} lies at half points of {axes}: {extent}"


def divisions(plan: Plan) -> Iterator[str]:
    """What became of stages of fields at unlike locations, and why."""
    for stage in dict.fromkeys(plan.program.stages):
        domain, launch = plan.layout.domain, plan.launch_nbytes
        text = division(plan.program, stage, domain, plan.periodic, launch)
        if text:
            yield text


def beyond(sweeps: Sequence[Sweep]) -> str:
    """What is computed, and where, by sweeps that complete another one."""
    return ", ".join(f"{' and '.join(one.writes)} in {one.cells}" for one in sweeps)
