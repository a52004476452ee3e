# SPDX-License-Identifier: MIT
"""`--kgt-out DIR`: the kernels that a computation has built, as files."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from controllers.cli.files import reason
from controllers.cli.outcome import FAILED, USAGE, Failure, on_root
from controllers.kgt.command import write_kernels

if TYPE_CHECKING:
    from controllers.run.computation import Computation


def write_kernels_of(computation: Computation, folder: Path) -> None:
    """Write the texts of the kernels of all ranks, one file each, on rank 0.  Collective."""
    texts: dict[str, str] = {}
    for one in computation.configurations():
        if one.text and one.text not in texts.values():
            texts[_free(one.kernel, texts)] = one.text
    on_root(computation.comm, lambda: _write(folder, texts))


def _free(kernel: str, texts: dict[str, str]) -> str:
    """A name of a file: kernels of other devices, or of other boxes, may be called the same."""
    names = (f"{kernel}_{n}.cl" if n > 1 else f"{kernel}.cl" for n in range(1, len(texts) + 2))
    return next(name for name in names if name not in texts)


def _write(folder: Path, texts: dict[str, str]) -> None:
    try:
        write_kernels(folder, texts)
    except OSError as error:
        cannot = isinstance(error, (FileExistsError, NotADirectoryError, PermissionError))
        code = USAGE if cannot else FAILED
        raise Failure(code, f"--kgt-out {folder}: {reason(error)}; give a folder") from None
