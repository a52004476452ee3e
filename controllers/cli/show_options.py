# SPDX-License-Identifier: MIT
"""The options of `controllers show`; nothing here loads OpenCL."""
from __future__ import annotations

import argparse
import importlib

from controllers.cli.words import count, file_name, limits, n_cells, place_on_axis
from hitmap.comm import Communicator

HELP = "say what is in a .npy file, a checkpoint or a zarr store, and draw it"
DESCRIPTION = (
    "Say what is in a .npy file, a folder of checkpoints or one of them, or a zarr store of "
    "controllers run --output: program, parameters, fields, steps and times; with --plot also draw "
    "fields at a step, or a film of all steps.  Only what is looked at is read."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of this command."""
    add = parser.add_argument
    add("path", metavar="PATH", type=file_name, help="a file, or a folder")
    add("--plot", metavar="FILE", type=file_name,
        help="where to draw fields; a film of all steps where it ends with .gif, or with .mp4, "
        "which needs ffmpeg")
    add("--step", metavar="N", type=count, help="which step is drawn (default: the last one)")
    add("--field", metavar="NAME", action="append", default=[],
        help="which field, or struct, is drawn; may be repeated (default: 6 at most)")
    add("--at", metavar="AXIS=NUMBER", type=place_on_axis, action="append", default=[],
        help="where to cut an axis, such as z=10: a coordinate where there are some, else an "
        "index; may be repeated (default: the middle, of all axes but two)")
    add("--limits", metavar="LOW,HIGH", type=limits,
        help="the values with the first and the last colour (default: those that are seen)")
    add("--stride", metavar="N", type=n_cells,
        help="draw each n-th cell (default: at most 1000 along an axis)")
    add("--json", action="store_true", help="print one line of JSON instead of the table")


def command(options: argparse.Namespace, comm: Communicator) -> None:
    """Say what is there, and draw it."""
    importlib.import_module("controllers.cli.show").command(options)
