# SPDX-License-Identifier: MIT
"""The command line's options, and what becomes of errors.

Exit codes: 0 done, 1 failed, 2 usage, 3 no usable device.  All ranks of a job end with the same.
Options are read before MPI or OpenCL is loaded: not every command needs them.
"""
from __future__ import annotations

import argparse
import io
import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from typing import NoReturn, Union

from controllers import __version__
from controllers.cli import devices, doctor_options, run_options
from controllers.cli.outcome import FAILED, NO_DEVICE, USAGE, Failure, end_together
from controllers.device import NoDeviceError
from hitmap.comm import (
    Communicator,
    SerialCommunicator,
    communicator_without_mpi,
    default_communicator,
)

_EPILOG = "Exit codes: 0 done, 1 failed, 2 usage, 3 no usable device."


def console() -> NoReturn:
    """The entry point of the console script."""
    warnings.formatwarning = lambda message, *_, **__: f"controllers: warning: {message}\n"
    sys.exit(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (by default the process's own); returns the exit code.  Collective."""
    parsed = _parse(arguments)
    try:
        alone = isinstance(parsed, argparse.Namespace) and getattr(parsed, "dry_run", None)
        comm = communicator_without_mpi() if alone else default_communicator()
    except RuntimeError as error:
        if "doctor" not in (sys.argv[1:] if arguments is None else arguments)[:1]:
            print(f"controllers: error: {error}", file=sys.stderr)
            return FAILED
        comm = SerialCommunicator()     # it says what is wrong
    ending = comm.Dup()
    try:
        code = end_together(ending, _attempt(lambda: _carry_out(parsed, comm)))
        ending.Free()
        return code
    except KeyboardInterrupt:
        if comm.size > 1:
            comm.Abort(130)
        return 130


# Options, a text that was asked for (--help, --version), or what is wrong with the arguments.
_Parsed = Union[argparse.Namespace, str, Failure]


def _parse(arguments: Sequence[str] | None) -> _Parsed:
    """Read the arguments; nothing is printed yet."""
    printed = io.StringIO()
    try:
        with redirect_stdout(printed):
            return _parser().parse_args(arguments)
    except SystemExit:
        return printed.getvalue()
    except Failure as failure:
        return failure


def _carry_out(parsed: _Parsed, comm: Communicator) -> None:
    if isinstance(parsed, Failure):
        raise parsed
    if not isinstance(parsed, str):
        parsed.command(parsed, comm)
    elif comm.rank == 0:
        print(parsed, end="", flush=True)


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
    except Exception as error:
        if isinstance(error, (OSError, RuntimeError, ValueError)) or _is_of_opencl(error):
            return Failure(FAILED, f"{type(error).__name__}: {error}")
        raise
    return None


def _is_of_opencl(error: Exception) -> bool:
    opencl = sys.modules.get("pyopencl")
    return opencl is not None and isinstance(error, opencl.Error)


class _Parser(argparse.ArgumentParser):
    """Raises what is wrong instead of exiting."""

    def error(self, message: str) -> NoReturn:
        raise Failure(USAGE, f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="controllers",
        description="Run stencils on OpenCL devices and MPI ranks.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"controllers {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, module in (("run", run_options), ("devices", devices), ("doctor", doctor_options)):
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
