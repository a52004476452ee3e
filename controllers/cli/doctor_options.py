# SPDX-License-Identifier: MIT
"""The options of `controllers doctor`; nothing here loads OpenCL."""
from __future__ import annotations

import argparse
import importlib

from hitmap.comm import Communicator

HELP = "say what is wrong with this host, and what mends it"
DESCRIPTION = (
    "Look at MPI and who starts it, try every OpenCL driver in a process of its own (a small "
    "kernel, 20 s at most), look at caches and what PoCL keeps there, memory, versions, and the "
    "cores of each rank.  Under mpiexec all hosts of the job are examined.  Ends with 0 unless "
    "something must be mended: 3 if a host has no usable OpenCL device, 1 for another error."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    parser.add_argument("--json", action="store_true", help="print one line of JSON")


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Examine all nodes.  Collective."""
    importlib.import_module("controllers.cli.doctor").command(options, comm)
