# SPDX-License-Identifier: MIT
"""The files of a command: fields that are read, names that can be written."""
from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from controllers.cli.outcome import USAGE, Failure
from hitmap.files import check_target
from hitmap.npy import open_npy


def open_field(path: Path) -> npt.NDArray[Any]:
    """The array of a .npy file, mapped read-only; `Failure` where it is none."""
    try:
        array = open_npy(path)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, f"--input {path}: {reason(error)}; give a .npy file") from None
    if array.dtype.kind not in "iufb":
        raise Failure(
            USAGE,
            f"--input {path}: holds {array.dtype}, which are not real numbers; "
            "give a .npy file of numbers",
        )
    return array


def check_targets(targets: Mapping[str, Path | None], sources: Mapping[str, Path | None]) -> None:
    """`Failure` unless all targets can be written, each a file of its own and none a source.

    Both map the names of options to paths, None where an option is not given.
    """
    taken = {_identity(path): what for what, path in sources.items() if path is not None}
    for option, path in targets.items():
        if path is None:
            continue
        try:
            check_target(path)
        except OSError as error:
            raise Failure(
                USAGE, f"{option} {path}: cannot be written: {reason(error)}"
            ) from None
        what = taken.setdefault(_identity(path), option)
        if what != option:
            raise Failure(
                USAGE, f"{option} {path}: is the file of {what} as well; give another name"
            )


def reason(error: Exception) -> str:
    """What is wrong, without the path and the number of the error."""
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def _identity(path: Path) -> str:
    """The same for all names of a file, there or not."""
    return os.path.realpath(path)
