# SPDX-License-Identifier: MIT
"""What the options say of checkpoints."""
from __future__ import annotations

import argparse
from pathlib import Path

from controllers.cli.outcome import USAGE, Failure
from controllers.settings.checkpoints import USUAL, Checkpoints
from controllers.settings.every import every


def checkpoints_of(options: argparse.Namespace, number: int = 1) -> Checkpoints | None:
    """Those of the computation of this number; None where there are to be none."""
    if options.checkpoint is None:
        for name in ("every", "restart", "restart_anyway"):
            if getattr(options, name):
                raise Failure(
                    USAGE,
                    f"--{name.replace('_', '-')} is of checkpoints; give --checkpoint DIR, too",
                )
        return None
    try:
        often = USUAL if options.every is None else every(seconds=options.every)
    except ValueError as error:
        raise Failure(USAGE, f"--every: {error}") from None
    folder: Path = options.checkpoint
    if number > 1:
        folder = folder.with_name(f"{folder.name}-{number}")
    return Checkpoints(folder, often, options.restart or "auto", options.restart_anyway)
