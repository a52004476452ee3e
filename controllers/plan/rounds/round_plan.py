# SPDX-License-Identifier: MIT
"""Plans that exchange halos after several launches, with their operations."""
from __future__ import annotations

from functools import reduce
from typing import Any

from controllers.plan.plan import Plan
from controllers.plan.recorder import Recorder
from controllers.plan.rounds.paced_recording import record_paced_step
from controllers.plan.rounds.paces import PacedOutline
from controllers.plan.rounds.round_recording import record_round_opening, record_round_step
from controllers.plan.rounds.rounds import RoundOutline
from controllers.program.program import Program
from controllers.program.repeat import Repeat
from hitmap.shape import Shape


class RoundPlan(RoundOutline):
    """A plan whose period is a round of launches, or several."""

    def _record_step(self, recorder: Recorder, phase: int) -> None:
        record_round_step(self, recorder, phase)

    def _record_opening(self, recorder: Recorder, phase: int) -> None:
        record_round_opening(self, recorder, phase)


class PacedPlan(PacedOutline):
    """A plan whose steps are rounds, which each place divides into launches of its own."""

    def _record_step(self, recorder: Recorder, phase: int) -> None:
        record_paced_step(self, recorder, phase)

    def _record_opening(self, recorder: Recorder, phase: int) -> None:
        record_round_opening(self, recorder, phase)


class RepeatedRounds(Plan):
    """A plan whose repeats exchange halos after so many turns; other parts do after each launch."""

    def __init__(self, *args: Any, n_turns: int, **options: Any) -> None:
        self._n_turns = n_turns
        super().__init__(*args, **options)

    @property
    def halo_width(self) -> int:
        return self._n_turns

    def full(self, field: str, place: int) -> Shape:
        plans = (part.plan for part in self.parts if field in part.plan.program.dtypes)
        return reduce(Shape.hull, (p.full(field, place) for p in plans), super().full(field, place))

    def _part(self, program: Program, repeat: Repeat | None) -> Plan:
        n_launches = 1 if repeat is None else min(self._n_turns, repeat.at_most)
        if n_launches == 1:
            return super()._part(program, repeat)
        return self._of_stages(RoundPlan, program, n_launches=n_launches)
