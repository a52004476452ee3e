# SPDX-License-Identifier: MIT
"""PoCL's cache of compiled kernels, looked into: a damaged entry ends every run that needs it.

An entry is a folder of bitcode (`program.bc`) and libraries (`KERNEL.so`), which PoCL reads without
a look.  Here each file is first seen to be one of its kind, whole; then a child process loads
those that look well, the latest first, as a run would: what ends the child is damaged.
"""
from __future__ import annotations

import json
import os
import stat
import struct
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from controllers.device import Verdict
from controllers.device.child import ending, last_lines, run_child, text_of

MARK = "controllers-loading "   # begins what the child says; drivers print too
LIMIT_S = 5.0      # to load entries
MAX_DAMAGED = 8     # of which it is told
SETTLED_S = 1.0     # since a file was written last: PoCL writes some in place
MAX_LOOKS = 5       # at one that is being written
_LOADING = "controllers.doctor.loading"
_MAX_FILES = 10_000
_UNNAMED = ("trial-", "tempfile")    # begin the names of what is being made and no run will load
_BITCODE, _ELF = b"BC\xc0\xde", b"\x7fELF"
_SECTIONS = struct.Struct("<40xQ10xHHH")     # of a 64-bit ELF file: where, size of one, how many


def damaged(folder: Path, verdicts: Sequence[Verdict], limit_s: float = LIMIT_S) -> list[str]:
    """The files of PoCL's cache that cannot be used, each with what is wrong: `PATH: WHY`."""
    found, good = [], []
    for path in _files(folder):
        why = _fault(path) and _lasting_fault(path)
        if why:
            found.append(f"{path}: {why}")
        elif not _unsettled_s(path):    # else it may not be whole yet
            good.append(path)
    libraries = [
        v.driver.library for v in verdicts if v.tried and "pocl" in v.driver.library.lower()
    ]
    if libraries:
        found += _unloadable(good, libraries[0], MAX_DAMAGED - len(found), limit_s)
    return found[:MAX_DAMAGED]


def _files(folder: Path) -> list[Path]:
    """Bitcode and libraries, the latest first; nothing is followed or waited for."""
    found: list[tuple[float, Path]] = []
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(_UNNAMED)]
        names = [
            name for name in (*files, *folders)
            if name.endswith((".so", ".bc")) and not name.startswith(_UNNAMED)
        ]
        for name in names:
            try:
                found.append((os.lstat(os.path.join(at, name)).st_mtime, Path(at, name)))
            except OSError:     # removed in the meantime
                continue
        if len(found) > _MAX_FILES:
            break
    return [path for _, path in sorted(found, reverse=True)]


def _fault(path: Path) -> str:
    """What is wrong with a file as far as its head shows; empty if nothing."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(number, "rb") as file:
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode):
                return "it is no regular file"
            head = file.read(64)
    except IsADirectoryError:
        return "it is no regular file"
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)
    if not head:
        return "it is empty"
    if path.suffix == ".bc":
        return "" if head.startswith(_BITCODE) else "it is no bitcode"
    if not head.startswith(_ELF) or len(head) < _SECTIONS.size:
        return "it is no library"
    start, size, count, _ = _SECTIONS.unpack_from(head)
    return "it is cut off" if start + size * count > status.st_size else ""


def _lasting_fault(path: Path) -> str:
    """The same, once nobody has written the file for a while: others may be building kernels."""
    for _ in range(MAX_LOOKS):
        rest_s = _unsettled_s(path)
        if not rest_s:
            break
        time.sleep(rest_s)
    return _fault(path)


def _unsettled_s(path: Path) -> float:
    """For how long a file may still be being written; 0 if it is settled, or gone."""
    try:
        age_s = time.time() - os.lstat(path).st_mtime
    except OSError:     # removed in the meantime
        return 0.0
    return SETTLED_S - age_s if 0 <= age_s < SETTLED_S else 0.0


def _unloadable(
    paths: Sequence[Path], library: str, max_damaged: int, limit_s: float
) -> Iterator[str]:
    """The files that a child process cannot load; those it has no time for count as good."""
    end = time.monotonic() + limit_s
    left = list(paths)
    while left and max_damaged > 0 and (rest_s := end - time.monotonic()) > 0:
        facts, died = _load(left, library, rest_s)
        told = [f"{fact['path']}: {fact['problem']}" for fact in facts if "problem" in fact]
        n_begun = sum("problem" not in fact for fact in facts)
        if died and n_begun:
            told.append(f"{left[n_begun - 1]}: loading it ends the process {died}")
        yield from told
        max_damaged -= len(told)
        left = left[n_begun:] if died and n_begun else []


def _load(paths: Sequence[Path], library: str, limit_s: float) -> tuple[list[dict[str, str]], str]:
    """What a child process says of the files, and how it died; empty where it did not."""
    with tempfile.TemporaryDirectory(prefix="controllers-") as name:
        folder = Path(name)
        (folder / "files").write_text(json.dumps([str(path) for path in paths]), "utf-8")
        (folder / "cache").mkdir()
        arguments = [library, str(folder / "files")]
        try:
            code = run_child(_LOADING, arguments, str(folder / "cache"), folder, limit_s)
        except OSError:     # no process can be started, which the drivers tell of
            return [], ""
        said = [line for line in text_of(folder / "out").splitlines() if line.startswith(MARK)]
        facts = [json.loads(line.removeprefix(MARK)) for line in said]
        died = f"({ending(code)}) {last_lines(folder / 'err')}".strip() if code else ""
    return facts, died
