# SPDX-License-Identifier: MIT
"""The options of `controllers tune`; nothing here loads OpenCL."""
from __future__ import annotations

import argparse
import importlib

from controllers.cli.words import count, duration, file_name, memory_cap, n_cells
from controllers.kernel.registry import SPECIALISED
from controllers.program.program import DTYPES
from hitmap.comm import Communicator

HELP = "find the fastest configurations of a stencil's kernels, for later runs"
DESCRIPTION = (
    "Try configurations of the kernels that a run of the stencil would use, on each of its devices "
    "and for boxes of the extent that it computes there.  A configuration whose result has other "
    "bits is discarded.  The fastest one is kept in the user's cache, per device, driver, stencil, "
    "dtype and size, and taken by later runs; the environment variable CONTROLLERS_TUNING is "
    "another folder for it, or off.  With mpiexec the ranks measure at the same time, as they "
    "compute in a run."
)
# One place more than `controllers.tuning.search`, which loads what this does not need.
SEARCHES = ("hill_climb", "dichotomic", "random", "exhaustive")


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add = parser.add_argument
    add("pattern", metavar="PATTERN.py", type=file_name,
        help="pattern file: shape, pattern, factor as literals; it is parsed, never executed")
    add("--stencil", metavar="NAME", help="which one, of a pattern file with several stencils")
    add("--size", metavar="N", type=n_cells, nargs="+", required=True,
        help="extents of the field, boundary cells included")
    add("--boundary", metavar="KIND", nargs="+", default=["fixed"],
        help="one for all axes or one per axis: fixed (default), periodic, mirror, mirror:-1, "
        "fixed:VALUE, extrapolate:ORDER")
    add("--device", metavar="SELECTOR", action="append", default=[],
        help="as for the command run; may be repeated (default: all GPUs, else the CPU)")
    add("--dtype", choices=DTYPES, help="type to compute in (default: float32)")
    add("--seconds", metavar="N", type=duration, default=30.0,
        help="how long to search, for each stage on each device; nothing begins that would "
        "probably take longer (default: 30)")
    add("--search", choices=SEARCHES, default=SEARCHES[0],
        help="hill_climb goes from the default to better neighbours, dichotomic halves what is "
        "left of each parameter, random draws lots, exhaustive tries all, as far as the seconds "
        "reach (default: hill_climb)")
    add("--seed", metavar="N", type=count, default=0,
        help="of the random numbers of the search (default: 0)")
    add("--memory-cap", metavar="BYTES", type=memory_cap, help="as for the command run")
    add("--json", action="store_true", help="print one line of JSON, a list, instead of the table")
    parser.set_defaults(input=None, output=None, plot=None, trace=None, kernel=SPECIALISED)


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Search and print.  Collective."""
    importlib.import_module("controllers.cli.tune").command(options, comm)
