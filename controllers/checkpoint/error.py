# SPDX-License-Identifier: MIT
"""What may be wrong with checkpoints that are there."""
from __future__ import annotations

from controllers.process.error import ControllersError


class CheckpointError(ControllersError, RuntimeError):
    """A run cannot go on from its checkpoints: there are none, all are damaged, or of another run.

    Raised on all ranks.
    """

    __module__ = "controllers"


class Damaged(Exception):
    """A checkpoint that is not as it was written; the text says what shows that."""
