# SPDX-License-Identifier: MIT
"""What a compiler says of OpenCL C, made fit to read: the lines that it names stand below.

Clang inside a driver counts its errors on standard error, past the log and past Python; that line
is left out, and whatever else appears there meanwhile is passed on.
"""
from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress

MAX_QUOTED = 8      # lines of the source
_POSITION = re.compile(r":(\d+):(\d+):")
_NUMBERED = re.compile(r'^#line (?P<first>\d+) "(?P<file>.*)"\n', re.MULTILINE)
_COUNTS = re.compile(
    rb"^\d+ (?:warnings?|errors?)(?: and \d+ errors?)? generated\.\r?\n", re.MULTILINE
)
_ERROR_OUTPUT = 2   # the descriptor that native code writes to


def with_lines(log: str, source: str) -> str:
    r"""`log`, each line of `source` below the message that names it first.

    >>> print(with_lines("error: <k>:2:5: unknown y", "int x;\nx = y;"))
    error: <k>:2:5: unknown y
        2 | x = y;
          |     ^
    """
    parts = [*_parts(source)]
    said: list[str] = []
    quoted: set[int] = set()
    for message in log.split("\n"):
        said.append(message)
        position = _POSITION.search(message)
        if position is None or len(quoted) == MAX_QUOTED:
            continue
        number, column = int(position[1]), int(position[2])
        for file, first, lines in parts:
            if file not in message or not 0 <= number - first < len(lines):
                continue
            line = lines[number - first]
            if line.strip() and line.strip() not in log and number not in quoted:
                quoted.add(number)      # some compilers quote it themselves
                tabs = "".join("\t" if sign == "\t" else " " for sign in line[: column - 1])
                said += [f"{number:5} | {line}", f"{'':5} | {tabs}^"]
    return "\n".join(said)


def _parts(source: str) -> Iterator[tuple[str, int, list[str]]]:
    """What is numbered by itself: the file, the number of its first line, the lines."""
    marks = [*_NUMBERED.finditer(source)]
    if not marks:
        yield "", 1, source.split("\n")
    for mark, end in zip(marks, [*(mark.start() for mark in marks[1:]), len(source)]):
        yield mark["file"], int(mark["first"]), source[mark.end() : end].split("\n")


@contextmanager
def without_counts(source: str) -> Iterator[None]:
    """What native code writes to standard error in here comes afterwards, less counts of errors.

    Only where `source` is a user's: generated text has no errors to be counted.
    """
    if not _NUMBERED.search(source):
        yield
        return
    with suppress(AttributeError, OSError, ValueError):     # none, or closed
        sys.stderr.flush()
    try:
        before = os.dup(_ERROR_OUTPUT)
    except OSError:     # closed
        yield
        return
    with tempfile.TemporaryFile() as kept:
        os.dup2(kept.fileno(), _ERROR_OUTPUT)
        try:
            yield
        finally:
            with suppress(AttributeError, OSError, ValueError):
                sys.stderr.flush()
            os.dup2(before, _ERROR_OUTPUT)
            os.close(before)
            kept.seek(0)
            _write(_COUNTS.sub(b"", kept.read()))


def _write(text: bytes) -> None:
    with suppress(OSError):     # nobody listens
        while text:
            text = text[os.write(_ERROR_OUTPUT, text) :]
