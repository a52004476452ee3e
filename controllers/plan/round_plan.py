# SPDX-License-Identifier: MIT
"""Plans that exchange halos after several launches, with their operations."""
from __future__ import annotations

from controllers.plan.recorder import Recorder
from controllers.plan.round_recording import record_round_opening, record_round_step
from controllers.plan.rounds import RoundOutline


class RoundPlan(RoundOutline):
    """A plan whose period is a round of launches, or several."""

    def _record_step(self, recorder: Recorder, phase: int) -> None:
        record_round_step(self, recorder, phase)

    def _record_opening(self, recorder: Recorder, phase: int) -> None:
        record_round_opening(self, recorder, phase)
