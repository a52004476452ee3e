# SPDX-License-Identifier: MIT
"""The command line's options, and what becomes of errors.

Exit codes: 0 done, 1 failed, 2 usage, 3 no usable device.  All ranks of a job end with the same.
"""
from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NoReturn

import pyopencl as cl

from controllers import __version__
from controllers.cli import devices, doctor, run
from controllers.cli.outcome import FAILED, NO_DEVICE, USAGE, Failure, end_together
from controllers.device import NoDeviceError
from hitmap.comm import Communicator, SerialCommunicator, default_communicator

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

_EPILOG = "Exit codes: 0 done, 1 failed, 2 usage, 3 no usable device."


def console() -> NoReturn:
    """The entry point of the console script."""
    warnings.formatwarning = lambda message, *_, **__: f"controllers: warning: {message}\n"
    sys.exit(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (by default the process's own); returns the exit code.  Collective."""
    try:
        comm = default_communicator()
    except RuntimeError as error:
        if "doctor" not in (sys.argv[1:] if arguments is None else arguments)[:1]:
            print(f"controllers: error: {error}", file=sys.stderr)
            return FAILED
        comm = SerialCommunicator()     # it says what is wrong
    ending = comm.Dup()
    try:
        code = end_together(ending, _attempt(lambda: _command(arguments, comm)))
        ending.Free()
        return code
    except KeyboardInterrupt:
        if comm.size > 1:
            comm.Abort(130)
        return 130


def _command(arguments: Sequence[str] | None, comm: Communicator) -> None:
    words = sys.argv[1:] if arguments is None else arguments
    # argparse would take the word after a bare --check, such as the pattern file, for its value
    words = ["--check=on" if word == "--check" else word for word in words]
    try:
        options = _parser(comm.rank == 0).parse_args(words)
    except SystemExit:  # --help and --version have been printed
        return
    options.command(options, comm)


def _attempt(work: Callable[[], None]) -> Failure | None:
    """Errors that a user can meet become a `Failure`; others are ours, and keep their traceback."""
    try:
        work()
    except Failure as failure:
        return failure
    except NoDeviceError as error:
        return Failure(NO_DEVICE, str(error))
    except MemoryError as error:
        return Failure(FAILED, f"out of memory: {error}")
    except (cl.Error, OSError, RuntimeError, ValueError) as error:
        return Failure(FAILED, f"{type(error).__name__}: {error}")
    return None


class _Parser(argparse.ArgumentParser):
    """Raises what is wrong instead of exiting, and prints on one rank only."""

    prints = True

    def error(self, message: str) -> NoReturn:
        raise Failure(USAGE, f"{message}; see {self.prog} --help")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        if self.prints:
            super()._print_message(message, file)


def _parser(prints: bool) -> argparse.ArgumentParser:
    kind = type("_RankParser", (_Parser,), {"prints": prints})
    parser: argparse.ArgumentParser = kind(
        prog="controllers",
        description="Run stencils on OpenCL devices and MPI ranks.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"controllers {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in (("run", run), ("devices", devices), ("doctor", doctor)):
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.DESCRIPTION,
            epilog=_EPILOG,
            allow_abbrev=False,
        )
        module.add_options(command)
        command.set_defaults(command=module.command)
    return parser
