# SPDX-License-Identifier: MIT
"""What a command is to compute: a stencil, its kernel, the dtype and the extent of the field.

Found from the options and checked on one rank, before a device is opened.
"""
from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controllers.cli.files import check_targets, open_field, reason
from controllers.cli.outcome import USAGE, Failure
from controllers.cli.outputs import is_in_time
from controllers.cli.picture import check_format, check_view, view_of
from controllers.kernel.registry import GENERIC, SPECIALISED, KernelChoice
from controllers.kernel.variant import Kernel
from controllers.language.pattern_file import read_patterns
from controllers.language.weights import Stencil
from controllers.program.identifier import short
from controllers.program.program import DTYPES, Program
from controllers.settings.division import Division
from controllers.settings.domain import bounded, check_some_computed, domain_of
from controllers.settings.execution import Execution
from controllers.settings.initial import Place
from controllers.settings.request import merged

_FOR_PROGRAMS = {
    "run": "a program is run without --size and --input",
    "tune": "a program is tuned as it runs, by controllers run FILE.py --tune SECONDS",
}


@dataclass(frozen=True)
class Job:
    """What is to be run, checked: the same on all ranks."""

    stencil: Stencil
    dtype: str
    extent: tuple[int, ...]
    boundary: tuple[str, ...]
    division: Division
    execution: Execution

    @property
    def program(self) -> Program:
        """Made on each rank: its expression may be too deep to be sent."""
        return self.stencil.program(self.dtype)


def check(options: argparse.Namespace) -> Job:
    """What can be found wrong before anything is computed; runs on one rank."""
    stencil = _stencil(options)
    kernel = _kernel(options.kernel or SPECIALISED)
    output = None if is_in_time(options) else options.output    # else its folder may be there
    targets = {"--output": output, "--plot": options.plot, "--trace": options.trace}
    kernel_file = Path(options.kernel) if isinstance(kernel, Kernel) else None
    check_targets(targets, {"the pattern": options.pattern, "--kernel": kernel_file})
    if options.plot is not None:
        check_format(options.plot, films=True)
    if options.input is None:
        dtype, extent = options.dtype or "float32", tuple(options.size)
    else:
        field = open_field(options.input)
        dtype, extent = options.dtype or field.dtype.name, field.shape
        if dtype not in DTYPES:
            raise Failure(
                USAGE,
                f"--input {options.input}: holds {dtype}, but fields are {', '.join(DTYPES)}; "
                f"convert it while reading, with --dtype float64 for example",
            )
    try:
        boundary = _boundary(options)
        program = bounded(stencil.program(dtype), boundary)
        check_some_computed(program, domain_of(program, extent), program.periodic)
        division, execution = _division(options), _execution(options, kernel)
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    if options.plot is not None:
        check_view(view_of(options), [one.name for one in program.fields], Place(extent))
    return Job(stencil, dtype, extent, boundary, division, execution)


def _boundary(options: argparse.Namespace) -> tuple[str, ...]:
    """The words of --boundary, which may stand between commas too."""
    given = options.boundary or ["fixed"]
    return tuple(word for text in given for word in text.split(",") if word)


def _division(options: argparse.Namespace) -> Division:
    return merged(Division, None, "division", _given(options))


def _execution(options: argparse.Namespace, kernel: KernelChoice) -> Execution:
    given = {**_given(options), "devices": options.device or None, "kernel": kernel}
    return merged(Execution, None, "execution", {**given, "trace": options.trace is not None})


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The options by name, those that a command has and that were given."""
    return {name: value for name, value in vars(options).items() if value is not None}


def _kernel(wanted: str) -> KernelChoice:
    """The kernel of --kernel; its file is read on one rank."""
    if not wanted.endswith(".cl"):
        return SPECIALISED if wanted == SPECIALISED else GENERIC
    try:
        return Kernel.of(Path(wanted).stem, Path(wanted))
    except OSError as error:
        raise Failure(USAGE, f"--kernel {wanted}: {reason(error)}; give a .cl file") from None
    except ValueError as error:     # empty, or not UTF-8
        raise Failure(USAGE, f"--kernel: {error}") from None


def _stencil(options: argparse.Namespace) -> Stencil:
    try:
        stencils = {stencil.name: stencil for stencil in read_patterns(options.pattern)}
    except OSError as error:
        raise Failure(
            USAGE, f"{options.pattern}: {reason(error)}; give a pattern file"
        ) from None
    except ValueError as error:
        raise Failure(USAGE, f"{error}; {_FOR_PROGRAMS[options.name]}") from None
    if options.stencil is None and len(stencils) == 1:
        return next(iter(stencils.values()))
    if options.stencil not in stencils:
        missing = options.stencil is not None
        wanted = f"there is no stencil {short(options.stencil)}" if missing else "say which one"
        listed = ", ".join(stencils)
        raise Failure(
            USAGE, f"{options.pattern}: {wanted}, with --stencil NAME; it has {listed}"
        )
    return stencils[options.stencil]
