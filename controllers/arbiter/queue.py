# SPDX-License-Identifier: MIT
"""The queue of those who wait: a file each, numbered in the order in which they came.

Each is locked by who waits, so that a file which is not locked is that of a dead process, and is
removed by the next one that looks.  All of this happens while the gate of the arbiter is held.
"""
from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass

from controllers.arbiter.home import Home

_PREFIX = "ticket-"
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Ticket:
    """A place in the queue; `file` is an open descriptor."""

    name: str
    home: Home
    file: int

    def leave(self) -> None:
        """Give the place up, which needs no gate; after a fork it is the parent's."""
        if self.home.is_open:
            with suppress(FileNotFoundError):
                os.unlink(self.name, dir_fd=self.home.folder)
            self.home.drop(self.file)


def join(home: Home, text: str) -> Ticket:
    """A new place, the last one, for who waits for what `text` says."""
    last = max(_names(home), default=_PREFIX + "0")
    name = f"{_PREFIX}{int(last[len(_PREFIX) :]) + 1:020d}"
    ticket = Ticket(name, home, home.keep(os.open(name, _NEW, 0o600, dir_fd=home.folder)))
    try:
        fcntl.flock(ticket.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(ticket.file, text.encode())
    except BaseException:
        ticket.leave()
        raise
    return ticket


def ahead(home: Home, own: Ticket | None) -> list[str]:
    """What those wait for who came before `own`, the first one first; all of them if it is None."""
    names = (name for name in sorted(_names(home)) if own is None or name < own.name)
    return [text for name in names if (text := _read(home, name)) is not None]


def _names(home: Home) -> list[str]:
    return [
        name for name in os.listdir(home.folder)
        if name.startswith(_PREFIX) and name[len(_PREFIX) :].isdecimal()
    ]  # fmt: skip


def _read(home: Home, name: str) -> str | None:
    """What a living process waits for; None, and the file is removed, where it is dead."""
    try:
        file = os.open(name, _OLD, dir_fd=home.folder)
    except FileNotFoundError:   # it has just left
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(file, _MAX_BYTES, 0).decode(errors="replace")
    else:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=home.folder)
        return None
    finally:
        os.close(file)
