# SPDX-License-Identifier: MIT
"""A lock that processes of one host share: a file that one of them holds.

The kernel gives it back when its holder ends, however that ends; nothing has to be cleaned up.
What it protects must stay whole without it: where files cannot be locked, and where its holder
stands still, one goes on after a while.
"""
from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from controllers.process.private_folder import opened

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_PAUSE_S = 1e-3


@contextmanager
def locked(folder: Path, name: str, most_s: float) -> Iterator[bool]:
    """Hold the file `name` of a folder, which is made where it is missing; whether it is held.

    most_s: how long to wait for another holder, at most.  OSError where there is no such folder, or
    it is refused (`private_folder`).
    """
    with opened(folder) as within:
        number = os.open(name, _FLAGS, 0o600, dir_fd=within)
    try:
        yield _taken(number, most_s)
    finally:
        os.close(number)    # which gives it back


def _taken(number: int, most_s: float) -> bool:
    end = time.monotonic() + most_s
    while True:
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() >= end:
                return False
            time.sleep(_PAUSE_S)
        except OSError:     # a file system without locks
            return False
