# SPDX-License-Identifier: MIT
"""Locks on single bytes of a file: as many as there are names, with one descriptor.

They belong to the open file ("open file description locks" of Linux): two openings exclude one
another, in one process too, and the kernel gives them back when the last copy of the descriptor is
closed, however its process ended.  A byte need not exist to be locked.
"""
from __future__ import annotations

import fcntl
import hashlib
import struct
from functools import lru_cache

_LAYOUT = "hhqqi4x"     # `struct flock`: type, whence, start, length, pid
_BITS = 62              # of an offset, which is signed


def byte_of(name: str) -> int:
    """The offset that stands for a name, the same in all processes."""
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> (64 - _BITS)


@lru_cache(4096)
def _packed(kind: int, name: str) -> bytes:
    return struct.pack(_LAYOUT, kind, 0, byte_of(name), 1, 0)


class ByteLocks:
    """The locks of one opening of a file; `number` is its descriptor, open for reading and writing.

    Nothing here waits.  OSError where the file system has no such locks.
    """

    def __init__(self, number: int) -> None:
        self._number = number

    def take(self, name: str, shared: bool = False) -> bool:
        """Lock the byte of `name`; False where another opening has it.

        A byte that this opening has already is taken anew, shared or not.
        """
        try:
            self._set(fcntl.F_RDLCK if shared else fcntl.F_WRLCK, name)
        except BlockingIOError:
            return False
        return True

    def free(self, name: str) -> None:
        """Give the byte of `name` back."""
        self._set(fcntl.F_UNLCK, name)

    def is_taken(self, name: str) -> bool:
        """Whether another opening has the byte of `name`, shared or not; nothing is taken."""
        found = fcntl.fcntl(self._number, fcntl.F_OFD_GETLK, _packed(fcntl.F_WRLCK, name))
        return bool(struct.unpack(_LAYOUT, found)[0] != fcntl.F_UNLCK)

    def _set(self, kind: int, name: str) -> None:
        fcntl.fcntl(self._number, fcntl.F_OFD_SETLK, _packed(kind, name))
