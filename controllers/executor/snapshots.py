# SPDX-License-Identifier: MIT
"""Copies of cells that leave a device with memory of its own while it computes.

A copy in the device's memory is made in the lane of kernels, between two steps.  From there it goes
to pinned memory through a queue of its own, sent by a thread, so that each piece is enqueued when
the one before has arrived.  Steps wait for the copy alone.
"""
# docs/decisions/0081-snapshots-leave-beside-steps.md
from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.device.event import COMPLETE, Enqueued, Event
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.transfer import run_command
from controllers.memory.allocation import device_memory, pinned_memory
from controllers.memory.buffers import Buffers
from controllers.memory.tile import Tile
from hitmap.strided import Strided, dense_pitches

# Bytes of a transfer.  NVIDIA's driver tells in order of what has ended in any of its queues: what
# waits for an event waits for all that was enqueued before, so there is little of this at a time.
PIECE = 1 << 22


@dataclass(eq=False)
class _Room:
    """Memory of the device for a copy.  left: done when what was in it last is on the host."""

    buffer: cl.Buffer
    left: Future[None] | None = None


class Snapshots:
    """Takes cells of one device's tiles; see `take`.

    buffers: the pinned memory that the cells come to; whoever needs one no more gives it back.
    lane: what they leave through.
    Memory of the device is taken where its cap leaves room, and given back where others need it.
    """

    def __init__(self, executor: OpenCLExecutor) -> None:
        self._executor = executor
        self.lane = executor.lane()
        self.lane.time(False)
        self._rooms: list[_Room] = []
        self._used: list[_Room] = []    # of the moment that is being taken, the newest last
        self._copied: Event | None = None
        self._sender = ThreadPoolExecutor(1, "snapshots")
        self._sending: list[Event] = []     # PyOpenCL waits where one of them is forgotten
        self.buffers = Buffers(self._pinned)
        executor.ledger.lend(self)

    def take(self, tile: Tile, cells: Strided) -> tuple[npt.NDArray[Any], Future[None]] | None:
        """These cells of a tile as they are now, and what is done when they have come.

        None where there is no room.  They must not change until `settle` has returned.
        """
        assert tile.buffer is not None, "in the device's memory"
        room = self._room(cells.n_cells * tile.dtype.itemsize)
        if room is None:
            return None
        dense = Strided(0, dense_pitches(cells.extent), cells.extent)
        _await(room)
        copy = self._executor.copy_command(
            tile.buffer, room.buffer, tile.dtype.itemsize, (cells, dense)
        )
        try:
            array = self.buffers.taken(cells.extent, tile.dtype)
            self._copied = copy(None)
        except cl.MemoryError:      # others have it, whatever the cap says
            self._rooms.remove(room)
            return None
        self._executor.compute.flush()      # or the other queue might wait for ever
        room.left = self._sender.submit(
            self._send, room.buffer, array.reshape(-1), self._copied
        )
        self._used.append(room)
        return array, room.left

    def settle(self) -> None:
        """Return when all that was taken is copied: tiles may change.  Ctrl-C ends the wait."""
        if self._copied is not None:
            Enqueued(self._copied, self._executor.waiter).wait()
        self._copied = None
        self._used.clear()

    def drop(self) -> None:
        """Give back the memory of the device; what is on its way comes first."""
        for room in self._rooms:
            _await(room)
        self._rooms.clear()
        self._used.clear()

    def close(self) -> None:
        """Give back all memory; of what was taken nothing may be in use."""
        self.drop()
        self._sender.shutdown()
        self._sending.clear()
        self.buffers.clear()

    def _send(self, source: cl.Buffer, target: npt.NDArray[Any], copied: Event) -> None:
        """Bring the copy in `source` to `target`, a flat array; in the sender's thread."""
        step = max(1, PIECE // target.itemsize)
        for first in range(0, target.size, step):
            part = target[first : first + step]
            send = run_command(
                self.lane, source, Strided(first, (1,), part.shape), part, to_device=False
            )
            self._sending = [
                one for one in self._sending if one.command_execution_status > COMPLETE
            ]
            self._sending.append(send(None if first else [copied]))
            self.lane.finish()      # comes before the event is told of

    def _room(self, nbytes: int) -> _Room | None:
        """Memory for so many bytes: not used yet by this moment, or new, or what was used first."""
        fits = [room for room in self._rooms if room.buffer.size >= nbytes]
        free = [room for room in fits if room not in self._used]
        if free:
            return min(free, key=lambda room: room.buffer.size)
        ledger = self._executor.ledger
        if ledger.has_spare(nbytes):
            buffer = device_memory(self._executor.context, ledger, nbytes, "snapshots")
            self._rooms.append(_Room(buffer))
            return self._rooms[-1]
        fits.sort(key=lambda room: max(n for n, used in enumerate(self._used) if used is room))
        return fits[0] if fits else None

    def _pinned(self, extent: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        executor, n_cells = self._executor, int(np.prod(extent))
        queue = executor.transfer
        return pinned_memory(queue, executor.ledger, n_cells, dtype, "host images").reshape(extent)


def _await(room: _Room) -> None:
    """Return when a room is empty; an error is told to who waits for the cells."""
    if room.left is not None:
        room.left.exception()
