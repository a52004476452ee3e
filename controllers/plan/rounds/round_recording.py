# SPDX-License-Identifier: MIT
"""What a plan of rounds records for each step: wide launches, and in the last one the exchange."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.plan import exchange
from controllers.plan.folding import record_occasional
from controllers.plan.operation import MemoryCells, TileKey
from controllers.plan.recorder import Recorder
from controllers.plan.recording import (
    bundles_with,
    fill_once,
    made_by,
    record_carry,
    record_fill,
    record_launches,
)
from controllers.plan.rounds.rounds import RoundOutline
from controllers.program.sweep import Version


def record_round_step(plan: RoundOutline, recorder: Recorder, phase: int) -> None:
    """All of one step of the period."""
    fill_first(plan, recorder, phase, timed=True)
    for numbers in plan.liveness.groups:
        _record_sweeps(plan, recorder, numbers, phase)
    fill_first(plan, recorder, phase + 1, timed=False)
    record_occasional(plan, recorder)


def record_round_opening(plan: RoundOutline, recorder: Recorder, phase: int) -> None:
    """What a step begins with once fields were set: halos as wide as for a whole round."""
    deliveries = [
        exchange.Delivery(plan, recorder, bundle, phase, opens=True) for bundle in plan.bundles
    ]
    for one in deliveries:
        one.pack()
    exchange.record(deliveries)
    for field in plan.patterns:
        for place in plan.places:
            _spread(plan, recorder, field, phase, place)
    fill_first(plan, recorder, phase, timed=False, opens=True)
    fill_once(plan, recorder)


def _spread(plan: RoundOutline, recorder: Recorder, field: str, phase: int, place: int) -> None:
    """Copy what never changes in the halo to the buffers that no message reaches."""
    region, pool = plan.steady(field, place), plan.liveness.pools[field]
    if region.empty:
        return
    newest = plan.newest(field, phase, place)
    for buffer in range(plan.liveness.n_buffers[pool]):
        if buffer != newest.buffer:
            source = MemoryCells(newest, region.boxes)
            target = MemoryCells(TileKey(pool, buffer, place), region.boxes)
            recorder.add(place, "copy", "compute", [source], [target])


def fill_first(
    plan: RoundOutline, recorder: Recorder, phase: int, *, timed: bool, opens: bool = False
) -> None:
    """Make cells outside the domain of what a step begins with: those that are `timed`, or not."""
    made = outside_first(plan, timed=timed, opens=opens)
    for place in plan.places:
        fill_before(plan, recorder, made, plan.first_of(phase, place), place, opens=opens)


def outside_first(plan: RoundOutline, *, timed: bool, opens: bool = False) -> list[Version]:
    """What a launch begins with and has cells outside the domain that are made again and again."""
    made = []
    for field in plan.patterns:
        extension = plan.extension(field)
        if extension is None or extension.boundary.is_steady or extension.is_timed != timed:
            continue
        if not (timed or opens or plan.changes(field)):
            continue    # as it was filled when it was opened
        made.append(Version(field, 0))
    return made


def fill_before(
    plan: RoundOutline, recorder: Recorder, made: Sequence[Version], phase: int, place: int, *,
    opens: bool = False,
) -> None:  # fmt: skip
    """Make these cells at a place, before the launch of `phase` there."""
    outside = {one: plan.made_outside(one, phase, place, opens=opens) for one in made}
    record_fill(plan, recorder, phase, place, outside)


def _record_sweeps(
    plan: RoundOutline, recorder: Recorder, numbers: tuple[int, ...], phase: int
) -> None:
    """A sweep, and those that complete it; in the last launch of a round, with what they send."""
    made = made_by(plan, numbers)
    for version in made:
        for place in plan.places:
            region = plan.kept(version, phase, place)
            record_carry(plan, recorder, version, phase, place, region)
    is_last = phase % plan.n_launches == plan.n_launches - 1
    leaving = bundles_with(plan, numbers) if is_last else ()
    record_launches(plan, recorder, numbers, phase, leaving)
    read = {use.version for sweep in plan.sweeps for use in sweep.uses}
    changing = [
        version for version in made
        if version in read and not plan.program.field(version.field).boundary.is_steady
    ]  # fmt: skip
    for place in plan.places:
        outside = {version: plan.made_outside(version, phase, place) for version in changing}
        record_fill(plan, recorder, phase, place, outside)
