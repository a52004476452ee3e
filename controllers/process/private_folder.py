# SPDX-License-Identifier: MIT
"""Folders whose files are trusted, because nobody but this user (or root) can have put them there.

A folder that another user owns or may write, or that is reached by a link of another user, is
refused; one of this user's own within a folder for everybody, such as /tmp, is not.  Its files are
opened without following links and without waiting, and only regular ones of this user are read.
"""
from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def exposure(folder: Path) -> str:
    """Why files in `folder` are not trusted; empty if they are, or if there is no such folder."""
    try:
        with opened(folder):
            return ""
    except FileNotFoundError:
        return ""
    except OSError as error:
        return error.strerror or str(error)


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    """The descriptor of a folder; OSError where there is none, or it is refused."""
    if not _own(os.lstat(folder)):
        raise PermissionError(0, "it belongs to another user", str(folder))
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        status = os.fstat(number)   # where it is a link, of what that leads to
        if not _own(status):
            raise PermissionError(0, "it belongs to another user", str(folder))
        if status.st_mode & _OTHERS:
            mode = stat.S_IMODE(status.st_mode)
            text = f"other users may write it (mode {mode:o}; chmod go-w helps)"
            raise PermissionError(0, text, str(folder))
        yield number
    finally:
        os.close(number)


def read(folder: Path, name: str, max_bytes: int) -> bytes:
    """The file `name` of `folder`; OSError where it is none of this user, or a larger one."""
    with opened(folder) as within:
        number = os.open(name, _OLD, dir_fd=within)
        with open(number, "rb") as file:
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode) or not _own(status):
                raise PermissionError(0, "it is no regular file of this user", name)
            if status.st_size > max_bytes:
                raise OSError(0, f"it has more than {max_bytes} bytes", name)
            return file.read(max_bytes)


def write(folder: Path, name: str, content: bytes) -> None:
    """Make `name` in `folder`, in place of what is there; whoever reads sees all of it or nothing.

    The folder is made where it is missing, for this user alone.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = f"{secrets.token_hex(8)}.tmp"
    with opened(folder) as within:
        number = os.open(temporary, _NEW, 0o600, dir_fd=within)
        try:
            with open(number, "wb") as file:
                file.write(content)
            os.replace(temporary, name, src_dir_fd=within, dst_dir_fd=within)
        except BaseException:
            os.unlink(temporary, dir_fd=within)
            raise


def _own(status: os.stat_result) -> bool:
    return status.st_uid in (os.geteuid(), 0)
