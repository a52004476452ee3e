# SPDX-License-Identifier: MIT
"""What a command is to compute: a stencil, its kernel, the dtype and the extent of the field.

Found from the options and checked on one rank, before a device is opened.
"""
from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from controllers.cli.files import check_target, open_field
from controllers.cli.outcome import USAGE, Failure
from controllers.cli.picture import check_format
from controllers.pattern_file import read_patterns
from controllers.program import DTYPES
from controllers.registry import GENERIC, SPECIALISED, KernelChoice
from controllers.stencil import Stencil
from controllers.variant import Kernel


@dataclass(frozen=True)
class Job:
    """What is to be run, checked: the same on all ranks."""

    stencil: Stencil
    kernel: KernelChoice
    dtype: str
    extent: tuple[int, ...]


def check(options: argparse.Namespace) -> Job:
    """What can be found wrong before anything is computed; runs on one rank."""
    stencil = _stencil(options)
    if options.output is not None:
        check_target("--output", options.output)
    if options.trace is not None:
        check_target("--trace", options.trace)
    if options.plot is not None:
        check_target("--plot", options.plot)
        check_format(options.plot)
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
    return Job(stencil, _kernel(options.kernel), dtype, extent)


def _kernel(wanted: str) -> KernelChoice:
    """The kernel of --kernel; its file is read on one rank."""
    if not wanted.endswith(".cl"):
        return SPECIALISED if wanted == SPECIALISED else GENERIC
    try:
        return Kernel.of(Path(wanted).stem, Path(wanted))
    except OSError as error:
        raise Failure(USAGE, f"--kernel {wanted}: {error.strerror}; give a .cl file") from None
    except ValueError as error:     # empty, or not UTF-8
        raise Failure(USAGE, f"--kernel {wanted}: {error}") from None


def _stencil(options: argparse.Namespace) -> Stencil:
    try:
        stencils = {stencil.name: stencil for stencil in read_patterns(options.pattern)}
    except OSError as error:
        raise Failure(USAGE, f"{options.pattern}: {error.strerror}") from None
    except ValueError as error:
        raise Failure(USAGE, str(error)) from None
    if options.stencil is None and len(stencils) == 1:
        return next(iter(stencils.values()))
    if options.stencil not in stencils:
        wanted = f"there is no stencil {options.stencil!r}" if options.stencil else "say which one"
        raise Failure(
            USAGE,
            f"{options.pattern}: {wanted}, with --stencil NAME; it has {', '.join(stencils)}",
        )
    return stencils[options.stencil]
