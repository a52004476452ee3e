# SPDX-License-Identifier: MIT
"""The options of `controllers estimates`; nothing here loads OpenCL or MPI."""
from __future__ import annotations

import argparse
import importlib

from controllers.cli.words import file_name
from hitmap.comm import Communicator

HELP = "list, draw or forget how long tasks took"
DESCRIPTION = (
    "List what is known of how long tasks take: a line per task, variant, device and driver, with "
    "its sizes, units and executions, and by how much a size would have been misjudged by all the "
    "others, in the middle.  It is kept in the user's cache; the environment variable "
    "CONTROLLERS_ESTIMATES is another folder for it, or off.  What is 90 days old is not used."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add = parser.add_argument
    add("words", metavar="WORD", nargs="*",
        help="only those whose task, variant, device or driver has all these words")
    add("--plot", metavar="FILE", type=file_name,
        help="also draw how long each size took over how long the other sizes had let expect")
    add("--forget", action="store_true", help="forget what is listed")
    add("--json", action="store_true", help="print one line of JSON, a list, instead of the table")


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """List, and what else is asked for."""
    importlib.import_module("controllers.cli.estimates").command(options)
