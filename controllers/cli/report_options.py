# SPDX-License-Identifier: MIT
"""The options of `controllers run` about what is told of a run."""
from __future__ import annotations

import argparse

from controllers.cli.words import file_name, n_places


def add_report_options(parser: argparse.ArgumentParser) -> None:
    """What is told."""
    add = parser.add_argument
    add("--explain", action="store_true",
        help="before the run, print the program, who owns what, the messages, the plan, the "
        "kernels' configuration and the bytes of each place (with --json on stderr); of a program "
        "all this of each computation that it makes before its first steps, where it ends, and of "
        "pools of tasks, which are done, where each was sent and why")
    add("--kgt-out", metavar="DIR", type=file_name,
        help="write the kernels in use as DIR/NAME.cl, before the first step")
    add("--dry-run", metavar="N", type=n_places,
        help="print the same, with bytes and messages per step, for a run on N ranks with a device "
        "each, and end: no device, no MPI, no field is touched; --device cpu means places in host "
        "memory, all others in a device's own")
    add("--trace", metavar="FILE.json", type=file_name,
        help="where to write a timeline of all ranks: kernels, copies and messages of the first "
        "and the last 100 steps, or of tasks, for ui.perfetto.dev or chrome://tracing")
    add("--json", action="store_true", help="print one line of JSON instead of the table")
    add("-v", "--verbose", action="store_true",
        help="say on stderr what happens: devices chosen, kernels built, tuned, divided anew")
