# SPDX-License-Identifier: MIT
"""`python -m controllers.kgt PATTERN.py`: the command `controllers kgt`, without the others.

Exit codes: 0 done, 1 files cannot be written, 2 the options or the pattern file cannot be used.
"""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from controllers.kgt.command import DESCRIPTION, add_options, deliver, kernels_of

FAILED, USAGE = 1, 2    # as of the other commands


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code. Nothing is written unless all kernels can be."""
    parser = argparse.ArgumentParser(prog="python -m controllers.kgt", description=DESCRIPTION)
    add_options(parser)
    options = parser.parse_args(arguments)
    try:
        kernels = kernels_of(options)
    except (OSError, ValueError) as error:
        return _refused(USAGE, error)
    try:
        deliver(options, kernels)
    except OSError as error:
        return _refused(FAILED, error)
    return 0


def _refused(code: int, error: Exception) -> int:
    print(f"kgt: {error}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
