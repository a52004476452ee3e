# SPDX-License-Identifier: MIT
"""Plans of fields that live on the host and pass through their devices in chunks."""
from __future__ import annotations

from controllers.plan.chunks.chunk_messages import record_messages
from controllers.plan.chunks.chunk_recording import download, record_pass, upload
from controllers.plan.chunks.chunks import ChunkOutline
from controllers.plan.recorder import Recorder


class ChunkPlan(ChunkOutline):
    """A plan whose steps are passes of all chunks."""

    def _record_step(self, recorder: Recorder, phase: int) -> None:
        record_pass(self, recorder, phase, upload, download)

    def _record_opening(self, recorder: Recorder, phase: int) -> None:
        """What the images of other ranks have; all else around a chunk comes with it."""
        record_messages(self, recorder, phase, opens=True)
