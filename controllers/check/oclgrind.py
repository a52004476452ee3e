# SPDX-License-Identifier: MIT
"""Oclgrind: a simulated OpenCL device that sees every access of every work-item.

It is an OpenCL driver like others, read by the loader from PyOpenCL's folder.  What it looks for,
and the file that it writes to, it takes from the environment when a context is made.
"""
from __future__ import annotations

import os
import re
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from controllers.check.finding import Complaint, FaultKind, Index
from controllers.device import Device, NoDeviceError, find_simulator
from controllers.process.environment import environment

_REMEDY = (
    'pip install "opencl-controllers[check]" (x86-64 Linux), or leave the check to --check alone'
)
# the last is a number for all contexts of the process
_OPTIONS = {
    "OCLGRIND_DATA_RACES": "1",
    "OCLGRIND_UNINITIALIZED": "1",
    "OCLGRIND_MAX_ERRORS": "100000",
}
_KINDS: tuple[tuple[str, FaultKind], ...] = (    # by a word of the title, the gravest first
    ("nvalid", "bounds"),
    ("divergence", "barrier"),
    ("data race", "race"),
    ("ninitialized", "uninitialised"),
    ("", "bounds"),
)
_REPORT = re.compile(r"^(?=\S)(.*?)(?=^\S|\Z)", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"Local\((\d+),(\d+),(\d+)\) Group\((\d+),(\d+),(\d+)\)")
_ADDRESS = re.compile(r"global memory address 0x([0-9a-f]+)")
_LINE = re.compile(r"At line (\d+) \(column \d+\) of (.*?):$", re.MULTILINE)
_KERNEL = re.compile(r"Kernel:\s*(\w+)")


def simulator() -> Device:
    """Oclgrind's device; NoDeviceError where it is not installed."""
    device = find_simulator()
    if device is None:
        raise NoDeviceError(f"--check=oclgrind needs Oclgrind, which is not installed; {_REMEDY}")
    return device


class ReportFile:
    """The file that Oclgrind writes its reports to, and how far it has been read."""

    def __init__(self) -> None:
        handle, name = tempfile.mkstemp(prefix="controllers-oclgrind-", suffix=".log")
        os.close(handle)
        self._path, self._read = Path(name), 0
        weakref.finalize(self, self._path.unlink, missing_ok=True)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Contexts that are made in here write to this file."""
        with environment({**_OPTIONS, "OCLGRIND_LOG": str(self._path)}):
            yield

    def news(self) -> list[str]:
        """The reports since the last call."""
        with self._path.open(encoding="utf-8", errors="replace") as file:
            file.seek(self._read)
            text = file.read()
            self._read = file.tell()
        return reports(text)


def reports(text: str) -> list[str]:
    """The reports of a log: each begins at the margin, and goes on indented.

    >>> reports("\\nInvalid read of size 4\\n\\tKernel: a\\n\\nUninitialized\\n\\tKernel: b\\n")
    ['Invalid read of size 4\\n\\tKernel: a', 'Uninitialized\\n\\tKernel: b']
    """
    return [found.strip() for found in _REPORT.findall(text) if _KERNEL.search(found)]


def gravest(news: Sequence[str]) -> str | None:
    """The report to tell of: a value may be missing because of a race."""
    return min(news, key=_rank, default=None)


def address(report: str) -> int:
    """The address in global memory that a report names; -1 where it names none."""
    found = _ADDRESS.search(report)
    return int(found[1], 16) if found else -1


def complaint(report: str, kernel: str, tile: str = "", cell: Index = None) -> Complaint:
    """A report as a complaint; `kernel` and `tile` are what the user calls them."""
    kind, title = _KINDS[_rank(report)][1], report.partition("\n")[0]
    line = _LINE.search(report)
    # line 0: the compiler has moved the instruction
    place = f" in line {line[1]} of {line[2]}" if line and line[1] != "0" else ""
    item = work_item(report)
    who = f", work-item {item[0]} of group {item[1]}" if item else ""
    what = _ADDRESS.sub(f"cell {cell} of {tile}" if cell else r"\g<0>", title)
    text = f"kernel {kernel!r}{place}: {what[:1].lower()}{what[1:]} (Oclgrind){who}"
    return Complaint(kind, text, tile, cell)


def _rank(report: str) -> int:
    title = report.partition("\n")[0]
    return next(rank for rank, (word, _) in enumerate(_KINDS) if word in title)


def work_item(report: str) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The local id and the group of the first work-item that a report names, in OpenCL's order."""
    found = _ITEM.search(report)
    if found is None:
        return None
    numbers = tuple(map(int, found.groups()))
    return numbers[:3], numbers[3:]
