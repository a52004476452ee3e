# SPDX-License-Identifier: MIT
"""Halo widths: how many time steps there are between two exchanges, and who can do so many."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from controllers.placement.temporal import thickest
from controllers.plan import ChunkPlan, PacedPlan, Plan, RepeatedRounds, RoundPlan
from controllers.plan.rounds.paces import Steps, pace_of
from controllers.plan.tile_boxes import TileBoxes
from controllers.program.program import Program
from controllers.settings.execution import Execution
from controllers.settings.launches import MOST_WIDTH
from hitmap.layout import Layout

MOST_TRIED = 64     # steps between two exchanges
MOST_HALVED, MOST_DOUBLED = 3, 2    # passes of other lengths than the estimate's, each way


def fixed_width(execution: Execution) -> int | None:
    """The steps between two exchanges that are asked for; None where nobody says it.

    Of unlike launches as few as are whole ones at all places.
    """
    width, steps = execution.halo_width, execution.steps_per_launch
    if width is None and isinstance(steps, tuple):
        return math.lcm(*steps)
    return None if width is None or isinstance(width, str) else width


def plan_of_width(
    width: int | None, program: Program, layout: Layout, *args: Any, steps_per_launch: Steps = 1,
    **options: Any,
) -> Plan:  # fmt: skip
    """A plan with so many steps between two exchanges, a multiple of those of a launch.

    By default as many as the longest launch has.  Where stages are repeated, so many turns of them.
    Of several numbers of steps per launch each is for a place, which divides the width into as few
    launches of at most so many as there can be.
    """
    if not isinstance(steps_per_launch, int):
        return _plan_of_lengths(width, steps_per_launch, program, layout, *args, **options)
    width = steps_per_launch if width is None else width
    if width == steps_per_launch:
        return Plan(program, layout, *args, steps_per_launch=steps_per_launch, **options)
    n_launches, rest = divmod(width, steps_per_launch)
    if rest or not n_launches:
        raise ValueError(
            f"launches of {steps_per_launch} steps do not make up the {width} steps between two "
            f"exchanges; use a halo_width that is a multiple of steps_per_launch"
        )
    if program.repeats:
        return RepeatedRounds(program, layout, *args, n_turns=width, **options)
    return RoundPlan(
        program, layout, *args, n_launches=n_launches, steps_per_launch=steps_per_launch, **options
    )


def _plan_of_lengths(
    width: int | None, lengths: Sequence[int], program: Program, layout: Layout, *args: Any,
    **options: Any,
) -> Plan:  # fmt: skip
    """Of launches that suit each place; of one kind where they come to the same for all."""
    if len(lengths) != layout.n_places:
        raise ValueError(
            f"steps_per_launch: one number for each of the {layout.n_places} places, got "
            f"{len(lengths)}; give as many, or one number for all"
        )
    width = max(lengths) if width is None else width
    paces = [pace_of(width, length) for length in lengths]
    if len({*paces}) == len({*paces[0]}) == 1:
        each = paces[0][0]
        plan = plan_of_width(width, program, layout, *args, steps_per_launch=each, **options)
    else:
        plan = PacedPlan(program, layout, *args, paces=paces, **options)
    plan.lengths = tuple(lengths)
    return plan


def replanned(
    plan: Plan, width: int | None, tiles_of: TileBoxes | None = None, layout: Layout | None = None,
) -> Plan:  # fmt: skip
    """The same plan with another halo width, or layout, and perhaps on the tiles of another one.

    None as `plan_of_width` has it.
    """
    if width == plan.halo_width and layout is None:
        return plan
    if isinstance(plan, ChunkPlan) and width is not None:
        return replanned_pass(plan, width)
    return plan_of_width(
        width, plan.program, layout or plan.layout, plan.periodic, plan.locations, way=plan.way,
        only_rank=plan.only_rank, in_place=plan.in_place, halo_capacity=plan.halo_capacity,
        room=plan.room, steps_per_launch=plan.lengths or plan.steps_per_launch,
        host_tasks=plan.host_tasks, tiles_of=tiles_of,
    )  # fmt: skip


def replanned_pass(plan: ChunkPlan, span: int) -> ChunkPlan:
    """The same chunks with passes of so many steps, in launches of as many as before, or of one."""
    per_launch = 1 if span % plan.steps_per_launch else plan.steps_per_launch
    expected = None if plan.pipeline is None else plan.pipeline.with_steps(span / plan.span)
    return type(plan)(
        plan.program, plan.layout, plan.periodic, plan.locations, way=plan.way,
        only_rank=plan.only_rank, steps_per_launch=per_launch, in_place=plan.in_place,
        n_launches=span // per_launch, n_slots=plan.n_slots, why=plan.why,
        images=plan.images, pipeline=expected,
    )  # fmt: skip


def spans_to_try(plan: ChunkPlan, fits: Callable[[Plan, Sequence[Plan]], bool]) -> tuple[int, ...]:
    """The steps of passes among which a run may choose, rising; that of `plan` is one of them.

    Halved and doubled: longer passes as long as their chunks fit in as many; `fits` is asked,
    collectively, for the longest one beside the engines of the others.
    """
    halves, span = [plan.span], plan.span
    while len(halves) <= MOST_HALVED and not halves[-1] % (2 * plan.steps_per_launch):
        halves.append(halves[-1] // 2)
    plans = [replanned_pass(plan, span) for span in reversed(halves)]
    while len(plans) > 1 and not fits(plans[-1], plans[:-1]):
        plans.pop(0)
    for _ in range(MOST_DOUBLED):
        span *= 2
        longer = replanned_pass(plan, span)
        if span > MOST_WIDTH or not fits(longer, plans):
            break
        plans.append(longer)
    return (*(one.span for one in plans),)


def widths_to_try(plan: Plan, fits: Callable[[Plan, Sequence[Plan]], bool]) -> tuple[int, ...]:
    """The widths among which a run may choose, rising; the first one is that of `plan`.

    Doubled as long as halos are not too thick, and there is memory for them: `fits` is asked,
    collectively, for the widest one beside the engines of the others.
    """
    found = [plan.halo_width]
    if plan.program.repeats or not plan.bundles:
        return (*found,)
    most = min(MOST_TRIED, thickest(plan.program, plan.layout, plan.periodic))
    while 2 * found[-1] <= most:
        found.append(2 * found[-1])
    plans = [replanned(plan, width) for width in found]
    while len(plans) > 1 and not fits(plans[-1], plans[:-1]):
        plans.pop()
    return (*found[: len(plans)],)
