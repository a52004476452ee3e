# SPDX-License-Identifier: MIT
"""Plans of skewed chunks, with what is recorded of them."""
from __future__ import annotations

from controllers.plan.chunks.chunk_recording import record_pass
from controllers.plan.chunks.skew_recording import bring, take
from controllers.plan.chunks.skewed import SkewedOutline
from controllers.plan.recorder import Recorder


class SkewedPlan(SkewedOutline):
    """A plan whose steps are passes of skewed chunks."""

    def _record_step(self, recorder: Recorder, phase: int) -> None:
        record_pass(self, recorder, phase, bring, take)
