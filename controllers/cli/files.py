# SPDX-License-Identifier: MIT
"""The files of a command: fields to be read, names that can be written, pictures replaced."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy.typing as npt

from controllers.cli.outcome import USAGE, Failure
from hitmap.npy import open_npy
from hitmap.temporary import Unfinished, temporary_name


def open_field(path: Path) -> npt.NDArray[Any]:
    """The array of a .npy file, mapped read-only; `Failure` where it is none."""
    try:
        array = open_npy(path)
    except (OSError, ValueError) as error:
        raise Failure(USAGE, f"--input {path}: {_reason(error)}; give a .npy file") from None
    if array.dtype.kind not in "iufb":
        raise Failure(USAGE, f"--input {path}: holds {array.dtype}, which are not real numbers")
    return array


def check_target(option: str, path: Path) -> None:
    """`Failure` if `path` cannot be written."""
    folder = path.parent
    if not folder.is_dir():
        raise Failure(USAGE, f"{option} {path}: there is no folder {str(folder)!r}; make it first")
    if path.is_dir():
        raise Failure(USAGE, f"{option} {path}: is a folder; give the name of a file")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise Failure(USAGE, f"{option} {path}: the folder {str(folder)!r} cannot be written to")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it at the end and removed after an error."""
    temporary = temporary_name(path)
    unfinished = Unfinished(temporary)
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        unfinished.close()


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
