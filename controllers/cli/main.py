# SPDX-License-Identifier: MIT
"""The commands of the command line, and how it ends.

Exit codes: 0 done, 1 failed on the way, 2 an option or a file cannot be used, 3 no usable device.
All ranks of a job end with the same.
"""
from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

from controllers import __version__
from controllers.cli import devices, run
from controllers.cli.outcome import FAILED, attempt, end_together
from controllers.cli.parser import CommandParser
from hitmap.comm import Communicator, default_communicator

_EPILOG = (
    "Exit codes: 0 done, 1 failed on the way, 2 an option or a file cannot be used, "
    "3 no usable device."
)


def console() -> NoReturn:
    """The entry point of the console script."""
    sys.exit(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (by default the process's own); returns the exit code.  Collective."""
    try:
        comm = default_communicator()
    except RuntimeError as error:
        print(f"controllers: error: {error}", file=sys.stderr)
        return FAILED
    ending = comm.Dup()
    try:
        code = end_together(ending, attempt(lambda: _command(arguments, comm)))
        ending.Free()
        return code
    except KeyboardInterrupt:
        if comm.size > 1:
            comm.Abort(130)
        return 130


def _command(arguments: Sequence[str] | None, comm: Communicator) -> None:
    """Parse on every rank; what is wrong with the options is the same on all of them."""
    try:
        options = _parser(comm.rank == 0).parse_args(arguments)
    except SystemExit:  # --help and --version have been printed
        return
    options.command(options, comm)


def _parser(prints: bool) -> CommandParser:
    parser = CommandParser(
        prog="controllers",
        description="Run stencils on OpenCL devices and MPI ranks.",
        epilog=_EPILOG,
    )
    parser.prints = prints
    parser.add_argument("--version", action="version", version=f"controllers {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in (("run", run), ("devices", devices)):
        command = commands.add_parser(
            name, help=module.HELP, description=module.DESCRIPTION, epilog=_EPILOG
        )
        command.prints = prints
        module.add_options(command)
        command.set_defaults(command=module.command)
    return parser
