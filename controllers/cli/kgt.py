# SPDX-License-Identifier: MIT
"""`controllers kgt`: the kernels of a pattern file; the same as `python -m controllers.kgt`."""
from __future__ import annotations

import argparse

from controllers.cli.outcome import FAILED, USAGE, Failure, on_root
from controllers.kgt.command import DESCRIPTION, HELP, add_options, deliver, kernels_of
from hitmap.comm import Communicator

__all__ = ["DESCRIPTION", "HELP", "add_options", "command"]


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Write or print the kernels, on rank 0.  Collective."""
    on_root(comm, lambda: _write(options))


def _write(options: argparse.Namespace) -> None:
    try:
        kernels = kernels_of(options)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, str(error)) from None
    try:
        deliver(options, kernels)
    except OSError as error:
        raise Failure(FAILED, str(error)) from None
