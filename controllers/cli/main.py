# SPDX-License-Identifier: MIT
"""The commands of the command line, and how it ends.

Exit codes: 0 done, 1 failed on the way, 2 an option or a file cannot be used, 3 no usable device,
75 ended by a signal after a checkpoint.  All ranks of a job end with the same.  Options are read
before MPI or OpenCL is loaded: not every command needs them.
"""
from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import redirect_stdout
from typing import NoReturn, Union

from controllers import __version__
from controllers.cli import (
    bench_options,
    compare_options,
    devices,
    docs,
    doctor_options,
    estimates_options,
    examples,
    kgt,
    run_options,
    show_options,
    tune_options,
)
from controllers.cli.outcome import FAILED, USAGE, Failure, attempt, end_together
from controllers.cli.parser import CommandParser
from hitmap.abort import INTERRUPTED, end_job
from hitmap.agreement import agree_on_call
from hitmap.comm import (
    Communicator,
    SerialCommunicator,
    communicator_without_mpi,
    default_communicator,
)

_EPILOG = (
    "Exit codes: 0 done, 1 failed on the way, 2 an option or a file cannot be used, "
    "3 no usable device, 75 ended by a signal after a checkpoint.  controllers docs lists the "
    "documentation, and prints its pages."
)
_ALONE = ("compare", "docs", "estimates", "examples", "kgt", "show")    # need neither ranks nor MPI


def console() -> NoReturn:
    """The entry point of the console script."""
    _open_streams()
    warnings.formatwarning = lambda message, *_, **__: f"controllers: warning: {message}\n"
    sys.exit(main())


def _open_streams() -> None:
    """Standard streams that were closed lead nowhere, and no other file gets their descriptors."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:      # in order: the lowest free descriptor is the right one
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
            setattr(sys, f"__{name}__", getattr(sys, name))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line (by default the process's own); returns the exit code.  Collective."""
    parsed = _parse(arguments)
    try:
        comm = communicator_without_mpi() if _is_alone(parsed) else default_communicator()
    except RuntimeError as error:
        if "doctor" not in (sys.argv[1:] if arguments is None else arguments)[:1]:
            print(f"controllers: error: {error}", file=sys.stderr)
            return FAILED
        comm = SerialCommunicator()     # it says what is wrong
    ending = comm.Dup()
    try:
        code = end_together(ending, attempt(lambda: _carry_out(parsed, comm)))
        ending.Free()
        return code
    except KeyboardInterrupt:
        if comm.size > 1:
            end_job(INTERRUPTED)
        return INTERRUPTED


# Options, a text that was asked for (--help, --version), or what is wrong with the arguments.
_Parsed = Union[argparse.Namespace, str, Failure]


def _parse(arguments: Sequence[str] | None) -> _Parsed:
    """Read the arguments; nothing is printed yet."""
    printed = io.StringIO()
    words = sys.argv[1:] if arguments is None else arguments
    # argparse would take the word after a bare --check, such as the pattern file, for its value
    bare = {"--check": "--check=on", "--exclusive": "--exclusive=yes"}
    words = [bare.get(word, word) for word in words]
    arguments = []      # of a program
    if words[:1] == ["run"] and "--" in words:
        at = words.index("--")
        words, arguments = words[:at], words[at + 1 :]
    try:
        with redirect_stdout(printed):
            return _parser().parse_args(words, argparse.Namespace(arguments=arguments))
    except SystemExit:
        return printed.getvalue()
    except Failure as failure:
        return failure


def _is_alone(parsed: _Parsed) -> bool:
    return isinstance(parsed, argparse.Namespace) and (
        parsed.name in _ALONE or getattr(parsed, "dry_run", None) is not None
    )


def _carry_out(parsed: _Parsed, comm: Communicator) -> None:
    if isinstance(parsed, Failure):
        raise parsed
    if isinstance(parsed, str):
        if comm.rank == 0:
            print(parsed, end="", flush=True)
        return
    own = ("command", "device")     # ranks may have devices of their own
    given = {name: value for name, value in vars(parsed).items() if name not in own}
    given["package"] = __version__
    try:
        agree_on_call(comm, f"the command {parsed.name}", given)
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    parsed.command(parsed, comm)


def _parser() -> CommandParser:
    parser = CommandParser(
        prog="controllers",
        description="Run stencils on OpenCL devices and MPI ranks.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"controllers {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    modules = {
        "run": run_options, "tune": tune_options, "bench": bench_options, "devices": devices,
        "doctor": doctor_options, "estimates": estimates_options, "kgt": kgt, "examples": examples,
        "docs": docs, "show": show_options, "compare": compare_options,
    }  # fmt: skip
    for name, module in modules.items():
        command = commands.add_parser(
            name, help=module.HELP, description=module.DESCRIPTION, epilog=_EPILOG
        )
        module.add_options(command)
        command.set_defaults(command=module.command, name=name)
    return parser
