# SPDX-License-Identifier: MIT
"""Files that are read, and files that appear as a whole; what is wrong with a name shows early.

Only regular files are read, since a pipe may never end, and only regular files are replaced: to
rename a file over a device would remove the device.  A new file has a temporary name in the same
folder until it is complete.
"""
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hitmap.temporary import Unfinished, temporary_name

_NOT_REGULAR = "is a pipe or a device, not a regular file"


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, opened for reading; OSError where there is none.

    >>> open_regular("/dev/zero")
    Traceback (most recent call last):
    OSError: [Errno 22] is a pipe or a device, not a regular file: '/dev/zero'
    """
    mode = os.stat(path).st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):   # `open` refuses a folder itself
        raise OSError(errno.EINVAL, _NOT_REGULAR, str(path))
    return open(path, "rb")


class NoTextError(ValueError):
    """Bytes that are no text; `line` is where that shows."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"is no UTF-8 text: {what}; save it as UTF-8")
        self.line = line


def decoded(content: bytes) -> str:
    r"""The text of a file in UTF-8, with a byte order mark in front or without.

    >>> decoded(b"\xef\xbb\xbfshape"), decoded("é".encode())
    ('shape', 'é')
    >>> decoded("shape".encode("utf-16"))
    Traceback (most recent call last):
    hitmap.files.NoTextError: is no UTF-8 text: it looks like UTF-16 or UTF-32; save it as UTF-8
    """
    for mark in (b"\xff\xfe", b"\xfe\xff", b"\0"):
        where = content.find(mark)
        if where == 0 or (where > 0 and mark == b"\0"):
            line = content.count(b"\n", 0, where) + 1
            raise NoTextError(line, "it looks like UTF-16 or UTF-32")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise NoTextError(line, f"the byte {content[error.start]:#x} cannot stand there") from None


def check_target(path: Path) -> None:
    """OSError unless a file called `path` can be made or replaced here and now."""
    if not path.parent.is_dir():
        raise OSError(errno.ENOENT, f"there is no folder {str(path.parent)!r}; make it first")
    if path.is_dir():
        raise OSError(errno.EISDIR, "is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, _NOT_REGULAR, str(path))
    trial = temporary_name(path)    # whoever asks for the rights alone overlooks much
    os.close(os.open(trial, os.O_CREAT | os.O_WRONLY, 0o600))
    trial.unlink(missing_ok=True)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name, renamed to `path` at the end and removed after an error."""
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
