# SPDX-License-Identifier: MIT
"""The file of a rank's blocks, written while the next ones are made ready.

One thread writes, others compute checksums, and one has what is written so far put on the disk: the
file system might keep all of it until the end, when everybody waits.
"""
# docs/decisions/0081-snapshots-leave-beside-steps.md
from __future__ import annotations

import os
import zlib
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from controllers.checkpoint.manifest import Block
from controllers.memory.buffers import Buffers
from hitmap.shape import Shape

AHEAD = 2               # blocks that are being written, or wait for it
SYNC_BYTES = 1 << 26    # that are written between two requests to the disk


class _Flight(NamedTuple):
    """A block on its way to the file.  copy: memory that is used again then, if there is any."""

    field: str
    box: Shape
    first: int
    data: memoryview
    copy: npt.NDArray[Any] | None
    crc: Future[int]
    written: Future[None]


class BlockFile:
    """A new file at `path`, called `name` in the manifest; OSError from whatever fails first."""

    def __init__(self, path: Path, name: str) -> None:
        self._file = open(path, "xb", buffering=0)      # noqa: SIM115 (`__exit__` closes it)
        self._name, self._nbytes = name, 0
        self._blocks: list[Block] = []
        self._flights: deque[_Flight] = deque()
        self._buffers = Buffers()
        self._writer, self._syncer = ThreadPoolExecutor(1), ThreadPoolExecutor(1)
        self._checker = ThreadPoolExecutor(AHEAD)
        self._unsynced = 0
        self._synced: Future[None] | None = None        # the newest request

    def __enter__(self) -> BlockFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        for pool in (self._writer, self._checker, self._syncer):
            pool.shutdown(cancel_futures=True)
        self._file.close()

    def add(self, field: str, box: Shape, values: npt.NDArray[Any]) -> None:
        """Write the cells of a box, [*box.extent]; they must not change until `finish`."""
        while len(self._flights) >= AHEAD:
            self._land()
        copy = None if values.flags.c_contiguous else self._buffers.copied(values)
        dense = values if copy is None else copy
        data = dense.reshape(-1).view(np.uint8).data
        crc = self._checker.submit(zlib.crc32, data)
        written = self._writer.submit(self._write, data)
        self._flights.append(_Flight(field, box, self._nbytes, data, copy, crc, written))
        self._nbytes += data.nbytes

    def finish(self) -> list[Block]:
        """All blocks, which are on the disk when this returns."""
        while self._flights:
            self._land()
        if self._synced is not None:
            self._synced.result()       # an error is told once
        os.fsync(self._file.fileno())
        return self._blocks

    def _land(self) -> None:
        """The oldest of the blocks is in the file."""
        one = self._flights.popleft()
        one.written.result()
        crc = one.crc.result()
        self._blocks.append(Block(
            one.field, one.box.lower, one.box.upper, self._name, one.first, one.data.nbytes, crc,
        ))  # fmt: skip
        if one.copy is not None:
            self._buffers.give(one.copy)

    def _write(self, data: memoryview) -> None:
        left = data
        while left:     # a call may write less than it is given
            left = left[self._file.write(left) :]
        self._unsynced += data.nbytes
        if self._unsynced < SYNC_BYTES:
            return
        if self._synced is None or self._synced.done():
            if self._synced is not None:
                self._synced.result()
            self._synced = self._syncer.submit(os.fdatasync, self._file.fileno())
            self._unsynced = 0
