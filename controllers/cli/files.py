# SPDX-License-Identifier: MIT
"""Fields in .npy files: read in place, written under a temporary name and renamed."""
from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.cli.outcome import USAGE, Failure


def open_field(path: Path) -> npt.NDArray[Any]:
    """The array of a .npy file, mapped read-only; `Failure` where it is none."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise Failure(USAGE, f"--input {path}: {_reason(error)}; give a .npy file") from None
    if not isinstance(array, np.ndarray):
        raise Failure(USAGE, f"--input {path}: holds several arrays; give a .npy file with one")
    if array.dtype.kind not in "iufb":
        raise Failure(USAGE, f"--input {path}: holds {array.dtype}, which are not real numbers")
    return array


def convert(cells: npt.NDArray[Any], target: npt.NDArray[Any]) -> bool:
    """Copy `cells` to `target`, rounded once where it holds floats; False where a value does not
    fit: beyond the range of floats, or changed by the conversion to integers.

    >>> small = np.empty(2, np.uint8)
    >>> convert(np.array([1.0, 255.0]), small), convert(np.array([0, 256]), small)
    (True, False)
    """
    if target.dtype.kind != "f":
        with np.errstate(invalid="ignore"):
            np.copyto(target, cells, casting="unsafe")
        return bool(np.array_equal(target, cells))
    try:
        with np.errstate(over="raise"):
            np.copyto(target, cells, casting="same_kind")
    except FloatingPointError:
        return False
    return True


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
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def new_field(path: Path, extent: tuple[int, ...], dtype: str) -> np.memmap[Any, Any]:
    """A new .npy file, mapped for writing.

    Its space is reserved first (OSError if the disk is full): a mapped page without space would
    kill the process.
    """
    np.lib.format.open_memmap(path, "w+", dtype, extent)
    with open(path, "r+b") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, os.path.getsize(path)))
    return np.lib.format.open_memmap(path, "r+")


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
