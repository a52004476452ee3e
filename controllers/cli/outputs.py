# SPDX-License-Identifier: MIT
"""What the options say of output in time, and of how often that and checkpoints are written."""
from __future__ import annotations

import argparse
from pathlib import Path

from controllers.cli.outcome import USAGE, Failure
from controllers.settings.every import Every, every
from controllers.settings.outputs import KINDS, Output


def is_in_time(options: argparse.Namespace) -> bool:
    """Whether moments are to be written while steps run."""
    return options.output is not None and options.output.suffix in KINDS


def output_of(options: argparse.Namespace, number: int = 1) -> Output | None:
    """That of the computation of this number; None where there is to be none."""
    if not is_in_time(options):
        return None
    path: Path = options.output
    if number > 1:
        path = path.with_stem(f"{path.stem}-{number}")
    return Output(path, None if options.every is None else said(options.every, "steps"))


def said(value: tuple[float, str], usual: str) -> Every:
    """What --every says; without a unit so many of the usual one."""
    count, unit = value
    name = {"s": "seconds", "t": "time"}.get(unit, usual)
    if name == "seconds":
        return every(seconds=count)
    if name == "time":
        return every(time=count)
    if count != int(count):
        raise Failure(USAGE, f"--every {count:g}: a whole number of steps is needed")
    return every(steps=int(count))
