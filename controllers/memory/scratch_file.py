# SPDX-License-Identifier: MIT
"""Host memory in a file: cells that would not fit otherwise, mapped, read ahead, written back.

Whoever uses the mapping need not know of the file: which of its pages are in memory is the
system's choice.  Left to itself it reads a page when somebody touches it and writes when too much
has changed; so two threads read what is going to be touched next, and write what has been changed,
while others compute.  They change no byte: nothing waits for them.
"""
# docs/decisions/0066-images-in-files.md
from __future__ import annotations

import mmap
import os
import tempfile
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.memory.ledger import MemoryCapError, size
from hitmap.write_back import begin_writing

READ_NBYTES = 1 << 20       # at once, ahead of whoever needs them
AHEAD = 2           # uploads that are read for while another one is under way
PAUSE_S = 0.0005    # between two looks at an event

# First byte and number of bytes.
Run: TypeAlias = tuple[int, int]
# Whether a command has ended, and the bytes that it reads or writes.
Use: TypeAlias = tuple[Callable[[], bool], Sequence[Run]]


@dataclass(frozen=True)
class FilePart:
    """Bytes of a scratch file: `first` is where an array begins."""

    file: ScratchFile
    first: int


class ScratchFile:
    """Zeros on the disk, mapped as `array`; it has no name, and is gone with its last use."""

    def __init__(self, folder: str | os.PathLike[str], nbytes: int) -> None:
        """`MemoryCapError` where the folder has no room for so many bytes, which are reserved."""
        try:
            file = _reserved(folder, nbytes)
        except OSError as error:
            raise MemoryCapError(
                f"{size(nbytes)} in a file in {os.fspath(folder)!r}: {error.strerror or error}; "
                f"use another folder by --scratch, or a larger --host-memory-cap"
            ) from None
        self.array: npt.NDArray[Any] = np.frombuffer(mmap.mmap(file, nbytes), np.uint8)
        self._next = 0
        self._reads: SimpleQueue[Use | None] = SimpleQueue()
        self._writes: SimpleQueue[Use | None] = SimpleQueue()
        for work, uses in ((_read_ahead, self._reads), (_write_back, self._writes)):
            arguments = os.dup(file), uses, _Flag(self)
            threading.Thread(target=work, args=arguments, daemon=True).start()
        os.close(file)

    def part(self, n_elements: int, dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], FilePart]:
        """The next bytes that nobody has, as an array of zeros, and where they are."""
        first, nbytes = self._next, max(1, n_elements) * dtype.itemsize
        self._next += whole_pages(nbytes)
        return self.array[first : first + nbytes].view(dtype), FilePart(self, first)

    def will_read(self, ended: Callable[[], bool], runs: Sequence[Run]) -> None:
        """A command has been enqueued that reads these bytes."""
        self._reads.put((ended, runs))

    def will_write(self, ended: Callable[[], bool], runs: Sequence[Run]) -> None:
        """A command has been enqueued that changes these bytes."""
        self._writes.put((ended, runs))


class _Flag:
    """Whether a file is still in use: a thread must not keep it."""

    def __init__(self, file: ScratchFile) -> None:
        self.is_over = False
        weakref.finalize(file, self._end, file._reads, file._writes).atexit = False

    def _end(self, *queues: SimpleQueue[Use | None]) -> None:
        self.is_over = True
        for queue in queues:
            queue.put(None)


def _reserved(folder: str | os.PathLike[str], nbytes: int) -> int:
    """A new file without a name, that has its blocks; opened."""
    file, name = tempfile.mkstemp(prefix="controllers-", dir=folder)
    os.unlink(name)
    try:
        os.posix_fallocate(file, 0, nbytes)
    except OSError:
        os.close(file)
        raise
    return file


def whole_pages(nbytes: int) -> int:
    """As many bytes, rounded up to pages.

    >>> whole_pages(1), whole_pages(4096)
    (4096, 4096)
    """
    return -(-nbytes // mmap.PAGESIZE) * mmap.PAGESIZE


def _read_ahead(file: int, uses: SimpleQueue[Use | None], flag: _Flag) -> None:
    """Bring what is read next into the system's cache, some commands ahead."""
    room = memoryview(bytearray(READ_NBYTES))
    under_way: deque[Callable[[], bool]] = deque()
    for ended, runs in _uses(uses):
        under_way.append(ended)
        if len(under_way) > AHEAD:
            _await(under_way.popleft(), flag)
        for first, nbytes in _pieces(runs):
            if flag.is_over:
                break
            os.preadv(file, [room[:nbytes]], first)
    os.close(file)


def _write_back(file: int, uses: SimpleQueue[Use | None], flag: _Flag) -> None:
    """Write what has been changed before there is much of it."""
    for ended, runs in _uses(uses):
        _await(ended, flag)
        for first, nbytes in runs:
            if not flag.is_over:
                begin_writing(file, first, nbytes)
    os.close(file)


def _uses(queue: SimpleQueue[Use | None]) -> Iterator[Use]:
    while (use := queue.get()) is not None:
        yield use


def _pieces(runs: Iterable[Run]) -> Iterator[Run]:
    for first, nbytes in runs:
        for begin in range(first, first + nbytes, READ_NBYTES):
            yield begin, min(READ_NBYTES, first + nbytes - begin)


def _await(ended: Callable[[], bool], flag: _Flag) -> None:
    while not flag.is_over and not ended():
        time.sleep(PAUSE_S)
