# SPDX-License-Identifier: MIT
"""Where the files of an arbiter lie, and what of them is open.

In /tmp, which is the node's own, and in which the same folder is found whatever the environment of
a process says (`TMPDIR` is each job's own, the home is that of all nodes, the runtime folder of a
login is removed when the user leaves).  The folder is this user's alone.
"""
from __future__ import annotations

import fcntl
import os
import threading
import weakref
from contextlib import suppress
from pathlib import Path

from controllers.process.byte_locks import ByteLocks
from controllers.process.private_folder import opened

_UNITS = "units"
# One for all arbiters of the process: who opens, locks or looks holds it, so that a fork sees all
# of what is open, or none.  Who waits is told by it that something was given back.
changed = threading.Condition(threading.RLock())
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def home() -> Path | None:
    """The folder of this user's arbiter on this node; None where nobody is to be asked."""
    said = os.environ.get("CONTROLLERS_ARBITER", "")
    if said == "off":
        return None
    return Path(said) if said else Path(f"/tmp/controllers-arbiter-{os.geteuid()}")


class Home:
    """The open folder of an arbiter, made where it is missing.

    folder: its descriptor.  locks: those of the gate and of all units, bytes of one file.
    In a child process after a fork it is closed, since what is held is the parent's.
    OSError where it cannot be used.
    """

    def __init__(self, path: Path) -> None:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = path
        self._open: set[int] = set()
        with changed:
            try:
                with opened(path) as number:
                    self.folder = self.keep(os.dup(number))
                with suppress(BlockingIOError):
                    # systemd-tmpfiles leaves a folder alone that somebody has locked
                    fcntl.flock(self.folder, fcntl.LOCK_SH | fcntl.LOCK_NB)
                self._file = self.keep(os.open(_UNITS, _FLAGS, 0o600, dir_fd=self.folder))
                self.locks = ByteLocks(self._file)
            except BaseException:
                self.close()
                raise
            _homes.add(self)
            weakref.finalize(self, _close_dropped, self._open)

    @property
    def is_open(self) -> bool:
        """Whether it was not closed, by its owner or by a fork."""
        return bool(self._open)

    @property
    def is_there(self) -> bool:
        """Whether the path still leads to what is open: somebody may have removed it."""
        try:
            return os.path.samestat(os.stat(self.path / _UNITS), os.fstat(self._file))
        except OSError:
            return False

    def keep(self, number: int) -> int:
        """A descriptor that is closed with this, if not before."""
        self._open.add(number)
        return number

    def drop(self, number: int) -> None:
        """Close a descriptor, which gives its locks back."""
        if number in self._open:
            self._open.remove(number)
            os.close(number)

    def close(self) -> None:
        """Close all, which gives all locks back."""
        with changed:
            for number in [*self._open]:
                self.drop(number)
            changed.notify_all()


_homes: weakref.WeakSet[Home] = weakref.WeakSet()


def _close_dropped(numbers: set[int]) -> None:
    while numbers:
        os.close(numbers.pop())


def _close_in_child() -> None:
    """A child holds nothing: what its parent held is free when that ends, not when both have."""
    for found in [*_homes]:
        found.close()
    changed.release()


os.register_at_fork(
    before=changed.acquire, after_in_parent=changed.release, after_in_child=_close_in_child
)
