# SPDX-License-Identifier: MIT
"""Files that are read, and files that appear as a whole; what is wrong with a name shows early.

Only regular files are read, since a pipe may never end, and only regular files are replaced: to
rename a file over a device would remove the device.  A new file has a temporary name in the same
folder until it is complete, and on the disk.  A symbolic link leads to the file that is replaced,
and a file that is replaced leaves its mode and its owner to the new one.
"""
from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from hitmap.temporary import Unfinished, temporary_name

_NOT_REGULAR = "is a pipe or a device, not a regular file"


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, opened for reading; OSError where there is none.

    A file whose size is 0 is read as empty: files of the kernel's, as /proc/kmsg, may never end.

    >>> open_regular("/dev/zero")
    Traceback (most recent call last):
    OSError: [Errno 22] is a pipe or a device, not a regular file: '/dev/zero'
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK)   # or a pipe would wait for its writer
    status = os.fstat(file)
    if stat.S_ISREG(status.st_mode) and status.st_size > 0:
        return os.fdopen(file, "rb")
    os.close(file)
    if stat.S_ISDIR(status.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, _NOT_REGULAR, str(path))
    return open(os.devnull, "rb")


def target_of(path: str | os.PathLike[str]) -> Path:
    """The file that is made or replaced where `path` is written: where symbolic links lead."""
    return Path(os.path.realpath(path)) if os.path.islink(path) else Path(path)


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
    path = target_of(path)
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    if not path.parent.is_dir():
        raise OSError(errno.ENOENT, f"there is no folder {str(path.parent)!r}; make it first")
    if path.is_dir():
        raise OSError(errno.EISDIR, "is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, _NOT_REGULAR, str(path))
    trial = temporary_name(path)    # whoever asks for the rights alone overlooks much
    os.close(os.open(trial, os.O_CREAT | os.O_WRONLY, 0o600))
    trial.unlink(missing_ok=True)


def put(temporary: Path, target: Path) -> None:
    """Give a file that is whole its name, mode and owner, and see to it that this lasts."""
    file = os.open(temporary, os.O_RDONLY)
    try:
        with suppress(FileNotFoundError):
            _keep(file, os.stat(target))
        os.fsync(file)      # before the rename, or a crash may leave the name with nothing in it
    finally:
        os.close(file)
    os.replace(temporary, target)
    sync(target.parent)


def sync(folder: Path) -> None:
    """What has been made or renamed in a folder is on the disk; OSError if it can't be."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _keep(file: int, old: os.stat_result) -> None:
    """The owner and the mode of the file that is replaced."""
    for owner in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
        with suppress(PermissionError):     # few users may give files away
            os.fchown(file, *owner)
            break
    os.fchmod(file, stat.S_IMODE(old.st_mode))      # the last: another owner resets some of it


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name, renamed to what `path` leads to at the end and removed after an error."""
    target = target_of(path)
    temporary = temporary_name(target)
    unfinished = Unfinished(temporary)
    try:
        yield temporary
        put(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        unfinished.close()
