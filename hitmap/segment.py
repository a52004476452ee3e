# SPDX-License-Identifier: MIT
"""Shared memory that MPI libraries take: files in /dev/shm, mapped by the ranks of a host.

MPICH gives a job one such file and removes it in MPI_Finalize, so that a job which ends badly
leaves it; where containers have 64 MB, a few dozen of these make every later job die of SIGBUS.
All ranks of a host have mapped it when MPI has been started, and nobody looks for its name after
that (tried with MPICH 5.0.2): the name is removed then, and the memory goes with the last process.
"""
from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

FOLDER = Path("/dev/shm")
NEED_PER_RANK = 6 << 20     # bytes: 5.4e6 with MPICH 5.0.2, 5.5e6 with Open MPI 5.0.11
_PREFIXES = ("mpich_shm_", "sm_segment.")   # MPICH, Open MPI
_OLD_S = 60.0       # nothing takes as long between the making of a segment and its mapping
_LOCAL_SIZES = ("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "MV2_COMM_WORLD_LOCAL_SIZE")
_MAPS = Path("/proc/self/maps")


class NoRoomError(RuntimeError):
    """MPI cannot be started here: it would die of SIGBUS when it touches what it was given."""


def unlink_own() -> None:
    """Remove the names of MPICH's segments that this process has mapped: of its own job."""
    for path in _mapped(_MAPS):
        if path.name.startswith(_PREFIXES[0]):
            with suppress(OSError):     # another rank has done it
                path.unlink()


def check_room(n_ranks: int, environment: Mapping[str, str] = os.environ) -> None:
    """NoRoomError if /dev/shm has no room for `n_ranks` ranks of a job, or those on this host.

    What dead jobs have left is removed first where it is needed.
    """
    local = next((environment[name] for name in _LOCAL_SIZES if name in environment), "")
    need = NEED_PER_RANK * (int(local) if local.isdecimal() else n_ranks)
    if (free := room()) is not None and free < need:
        remove_stale()
        if (free := room()) is not None and free < need:
            raise NoRoomError(short_of(free, need))


def short_of(free: int, need: int) -> str:
    """What is wrong with so much room, and what helps."""
    return (
        f"{FOLDER}, where MPI keeps the messages between the ranks of a host, has {free / 1e6:.1f} "
        f"MB free, this job needs {need / 1e6:.1f} MB; remove what ended jobs have left there "
        f"({', '.join(f'{FOLDER}/{prefix}*' for prefix in _PREFIXES)}), or give the container more "
        f"(docker run --shm-size=1g)"
    )


def room() -> int | None:
    """Free bytes in /dev/shm; None where there is no such folder."""
    try:
        found = os.statvfs(FOLDER)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize


def stale() -> Iterator[Path]:
    """Segments of this user that no process maps any more."""
    try:
        old = [path for path in FOLDER.iterdir() if path.name.startswith(_PREFIXES) and _old(path)]
    except OSError:
        return
    if old:
        used = {path for maps in Path("/proc").glob("[0-9]*/maps") for path in _mapped(maps)}
        yield from (path for path in old if path not in used)


def remove_stale() -> None:
    """Remove what dead jobs of this user have left."""
    for path in stale():
        with suppress(OSError):
            path.unlink()


def _old(path: Path) -> bool:
    try:
        status = path.stat()
    except OSError:
        return False
    return status.st_uid == os.getuid() and time.time() - status.st_mtime > _OLD_S


def _mapped(maps: Path) -> Iterator[Path]:
    """The files in /dev/shm that a process has mapped and that still have a name."""
    try:
        lines = maps.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:     # it has ended, or is another user's
        return
    for line in lines:
        name = line.split(maxsplit=5)[5] if line.count(str(FOLDER)) else ""
        if name.startswith(f"{FOLDER}/") and not name.endswith(" (deleted)"):
            yield Path(name)
