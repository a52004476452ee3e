# SPDX-License-Identifier: MIT
"""Files on their way to the disk while they are still being written.

What is left to the system is written when there is much of it, or when somebody waits for all of
it; the disk has nothing to do until then.  And it keeps what has been written, in memory that it
has to find: to clear a page and give it to a file may take longer than to write it to the disk.
"""
# docs/decisions/0100-what-is-written-leaves-at-once.md
from __future__ import annotations

import os

PIECE_NBYTES = 1 << 22      # asked for at once
BEHIND_NBYTES = 1 << 25     # within that of what is being written the disk should have come


def begin_writing(file: int, first: int, nbytes: int) -> None:
    """Ask for these bytes of an opened file to be written from now on; waits for nothing.

    What has been written already the system need not keep.
    """
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, first, nbytes, os.POSIX_FADV_DONTNEED)


class WriteBack:
    """Of a file that is written from one end to the other: asks for it, a piece at a time.

    Pages that the disk has are free for the next ones, so that a file takes as much of the memory
    whatever its size.  Of what is scattered the system takes care.
    """

    def __init__(self) -> None:
        self._first = self._asked = self._end = 0

    def wrote(self, file: int, first: int, nbytes: int) -> None:
        """A call has written these bytes."""
        if first != self._end:
            self._first = self._asked = first
        self._end = first + nbytes
        if self._end - self._asked >= PIECE_NBYTES:
            begin = max(self._first, self._end - BEHIND_NBYTES)
            begin_writing(file, begin, self._end - begin)
            self._asked = self._end
