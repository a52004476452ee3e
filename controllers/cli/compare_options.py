# SPDX-License-Identifier: MIT
"""The options of `controllers compare`; nothing here loads OpenCL."""
from __future__ import annotations

import argparse
import importlib

from controllers.cli.words import file_name
from hitmap.comm import Communicator

HELP = "say where two results differ: .npy files, checkpoints, zarr stores"
DESCRIPTION = (
    "Compare the fields of two .npy files, checkpoints or zarr stores, of any two kinds, bit for "
    "bit: the first step, field and cell that differ, how many do, and by how much at most.  They "
    "are read by parts.  Exit code: 0 the same, 1 they differ, 2 they cannot be compared."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add = parser.add_argument
    add("one", metavar="A", type=file_name, help="a file, or a folder")
    add("other", metavar="B", type=file_name, help="what it is compared with")
    add("--field", metavar="NAME", action="append",
        help="compare this field; may be repeated (default: all that both have)")
    add("--all", action="store_true",
        help="all steps that both have (default: to the first that differs)")
    add("--json", action="store_true", help="print one line of JSON instead")


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Say what differs."""
    importlib.import_module("controllers.cli.compare").command(options)
