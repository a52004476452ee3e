# SPDX-License-Identifier: MIT
"""What the options say of checkpoints."""
from __future__ import annotations

import argparse
from pathlib import Path

from controllers.cli.outcome import USAGE, Failure
from controllers.cli.outputs import is_in_time, said
from controllers.settings.checkpoints import USUAL, Checkpoints
from controllers.settings.every import every


def checkpoints_of(options: argparse.Namespace, number: int = 1) -> Checkpoints | None:
    """Those of the computation of this number; None where there are to be none."""
    in_time = is_in_time(options)
    if options.checkpoint is None:
        for name in ("every", "checkpoint_every", "restart", "restart_anyway"):
            if getattr(options, name) and not (name == "every" and in_time):
                or_output = ", or --output RUN.zarr" if name == "every" else ""
                raise Failure(
                    USAGE,
                    f"--{name.replace('_', '-')} is of checkpoints; give --checkpoint DIR"
                    f"{or_output}, too",
                )
        return None
    often = USUAL
    if options.checkpoint_every is not None:
        often = every(seconds=options.checkpoint_every)
    elif options.every is not None and not in_time:
        often = said(options.every, "seconds")
        if often.time is not None:
            raise Failure(USAGE, "--every: checkpoints are written every so many seconds")
    folder: Path = options.checkpoint
    if number > 1:
        folder = folder.with_name(f"{folder.name}-{number}")
    return Checkpoints(folder, often, options.restart or "auto", options.restart_anyway)
