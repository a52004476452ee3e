# SPDX-License-Identifier: MIT
"""What a plan records for a round that places divide by themselves: launches, then one exchange."""
from __future__ import annotations

from controllers.plan.folding import record_occasional
from controllers.plan.recorder import Recorder
from controllers.plan.recording import (
    bundles_with,
    made_by,
    record_carry,
    record_launch,
    record_launches,
)
from controllers.plan.rounds.paces import PacedOutline
from controllers.plan.rounds.round_recording import fill_before, fill_first, outside_first
from controllers.program.sweep import Version

_ALL = (0,)     # several time steps are those of a single sweep


def record_paced_step(plan: PacedOutline, recorder: Recorder, phase: int) -> None:
    """All of one round."""
    for place in plan.places:
        _record_early(plan, recorder, phase, place)
    record_launches(plan, recorder, _ALL, phase, bundles_with(plan, _ALL))
    fill_first(plan, recorder, phase + 1, timed=False)
    record_occasional(plan, recorder)


def _record_early(plan: PacedOutline, recorder: Recorder, phase: int, place: int) -> None:
    """The launches of a place before the last one; what that one needs, too."""
    made, outside = made_by(plan, _ALL), outside_first(plan, timed=False)
    first, last = plan.first_of(phase, place), plan.last_of(phase, place)
    for at in range(first, last):
        _carry(plan, recorder, made, at, place)
        parts, _ = plan.parts_of(0, at, place)
        for part, (over, folds) in enumerate(parts):
            record_launch(plan, recorder, 0, at, place, over, part, folds=folds)
        recorder.launch += 1
        fill_before(plan, recorder, outside, at + 1, place)
    _carry(plan, recorder, made, last, place)


def _carry(
    plan: PacedOutline, recorder: Recorder, made: list[Version], at: int, place: int
) -> None:
    """Copy what no launch computes to where its field goes on."""
    recorder.launch = plan.launch_of(at, place)
    for version in made:
        record_carry(plan, recorder, version, at, place, plan.kept(version, at, place))
