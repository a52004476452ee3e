# SPDX-License-Identifier: MIT
"""What a process holds, for people: a file of each process that holds something.

It is locked as long as the process lives; one that is not is removed if there is no such process.
Nothing is decided by what it says.
"""
from __future__ import annotations

import fcntl
import json
import os
import secrets
import sys
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from controllers.arbiter.home import Home

_PREFIX = "holder-"
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MAX_BYTES = 1 << 20
_COMMAND = 200      # characters of it


@dataclass(frozen=True)
class Holder:
    """Who holds units, or uses them: `how` is "held", "used" or "the node".

    since: seconds of the clock (`time.time`).
    """

    pid: int
    command: str
    units: tuple[str, ...]
    how: str
    what: str
    since: float

    def __str__(self) -> str:
        ago = max(0, round(time.time() - self.since))
        what = f", {self.what}" if self.what else ""
        return f"process {self.pid} ({self.command}{what}), for {ago} s"


def holder(units: Collection[str], how: str, what: str) -> Holder:
    """This process, from now on."""
    return Holder(os.getpid(), _command(), tuple(units), how, what, time.time())


class Note:
    """The file of this process for one home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._name = f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        self._file = home.keep(os.open(self._name, _NEW, 0o600, dir_fd=home.folder))
        fcntl.flock(self._file, fcntl.LOCK_EX)      # unless somebody is just looking

    def write(self, holders: Iterable[Holder]) -> None:
        """What this process holds now."""
        rows = [[h.pid, h.command, list(h.units), h.how, h.what, h.since] for h in holders]
        content = json.dumps(rows).encode()
        os.pwrite(self._file, content, 0)
        os.ftruncate(self._file, len(content))

    def close(self) -> None:
        """It holds nothing any more; after a fork the file is the parent's."""
        if self._home.is_open:
            with suppress(FileNotFoundError):
                os.unlink(self._name, dir_fd=self._home.folder)
            self._home.drop(self._file)


def read_all(home: Home) -> list[Holder]:
    """What all living processes hold, by their numbers; the files of dead ones are removed."""
    names = [name for name in os.listdir(home.folder) if name.startswith(_PREFIX)]
    found = [holder for name in names for holder in _read(home, name)]
    return sorted(found, key=lambda holder: (holder.pid, holder.since))


def _read(home: Home, name: str) -> list[Holder]:
    try:
        file = os.open(name, _OLD, dir_fd=home.folder)
    except FileNotFoundError:
        return []
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _parsed(os.pread(file, _MAX_BYTES, 0))
    else:
        if not Path(f"/proc/{name.split('-')[1]}").exists():     # else it is just being made
            with suppress(FileNotFoundError):
                os.unlink(name, dir_fd=home.folder)
        return []
    finally:
        os.close(file)


def _parsed(content: bytes) -> list[Holder]:
    try:
        return [
            Holder(int(pid), str(said), tuple(map(str, units)), str(how), str(what), float(since))
            for pid, said, units, how, what, since in json.loads(content)
        ]
    except (TypeError, ValueError):     # it is just being written
        return []


def _command() -> str:
    return " ".join(sys.orig_argv)[:_COMMAND]
