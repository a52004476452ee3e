# SPDX-License-Identifier: MIT
"""The folder with the checkpoints of one run: which there are, a new one, and which are dropped.

Each is a folder `000007-step-1200` of its own, numbered in the order of writing.  It is made under
a temporary name, and renamed when all of it is on the disk; what is dropped is renamed first.  So
whatever ends the process leaves whole checkpoints, and perhaps a folder that the next run removes.
All of it is for one rank.
"""
from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection
from pathlib import Path

from controllers.checkpoint.manifest import MANIFEST, Manifest
from hitmap.files import sync

KEPT = 2        # checkpoints, the newest ones
_NAME = re.compile(r"(\d{6,})-step-(\d+)")
_LEFT = re.compile(r"\.(new|old)-\d{6,}-step-\d+")


def newest_first(folder: Path) -> list[Path]:
    """The checkpoints in a folder; none where it is not there."""
    names = os.listdir(folder) if folder.is_dir() else []
    found = [(int(match[1]), name) for name in names if (match := _NAME.fullmatch(name))]
    return [folder / name for _, name in sorted(found, reverse=True)]


def step_of(path: Path) -> int:
    """After how many steps it was written.

    >>> step_of(Path("000007-step-1200"))
    1200
    """
    return int(path.name.rpartition("-")[2])


def prepare(folder: Path) -> None:
    """Make the folder, and remove what runs that were ended have left; OSError where that fails.

    Whether anything can be written there is tried, too: better now than after hours.
    """
    if not folder.parent.parent.is_dir():
        raise FileNotFoundError(
            2, f"there is no folder {str(folder.parent.parent)!r}; make it first", str(folder)
        )
    for one in (folder.parent, folder):
        if not one.is_dir():
            one.mkdir()
            sync(one.parent)
    for name in os.listdir(folder):
        if _LEFT.fullmatch(name):
            shutil.rmtree(folder / name)
    trial = folder / ".new-000000-step-0"
    trial.mkdir()
    trial.rmdir()


def begin(folder: Path, step: int) -> tuple[Path, Path]:
    """A new folder with a temporary name, and the name that it will have."""
    before = newest_first(folder)
    number = int(before[0].name.partition("-")[0]) + 1 if before else 1
    target = folder / f"{number:06d}-step-{step}"
    temporary = folder / f".new-{target.name}"
    temporary.mkdir()
    return temporary, target


def complete(temporary: Path, target: Path, manifest: Manifest) -> None:
    """All other files are there: the manifest, then the name."""
    with open(temporary / MANIFEST, "xb") as file:
        file.write(manifest.encoded())
        file.flush()
        os.fsync(file.fileno())
    sync(temporary)
    os.rename(temporary, target)
    sync(target.parent)


def drop_others(newest: Path, damaged: Collection[str]) -> None:
    """Remove all but the newest ones; those that are known to be damaged, too."""
    good = [path for path in newest_first(newest.parent) if path.name not in damaged]
    for path in newest_first(newest.parent):
        if path not in good[:KEPT]:
            gone = path.with_name(f".old-{path.name}")
            os.rename(path, gone)
            shutil.rmtree(gone)
