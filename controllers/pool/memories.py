# SPDX-License-Identifier: MIT
"""The memories of a pool: where cells are brought to before a task, by way of the host."""
from __future__ import annotations

import gc
import time
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from controllers.device.event import Event
from controllers.executor.opencl import OpenCLExecutor
from controllers.memory.ledger import MemoryCapError
from controllers.memory.tile import Tile
from controllers.pool.data import Coming, Datum, Touch
from controllers.pool.newest import HOST_MEMORY, Newest
from hitmap.region import Region
from hitmap.shape import Shape
from hitmap.strided import Geometry

# The images in which devices have computed what the host does after them.
Replicas: TypeAlias = "dict[tuple[int, Datum], Tile]"
MOST_NOTED = 256    # moves whose times nobody has asked for


class Memories:
    """Images of arrays on devices with a memory of their own, each numbered from 1.

    Nothing else moves the same cells meanwhile, by the order of tasks; moves of one array take
    turns.  any: whether there is another one than the host's.
    moved: memory, whether to it, bytes and seconds, of the newest moves.
    """

    def __init__(self) -> None:
        self.any = False
        self._executors: dict[int, OpenCLExecutor] = {}
        self._holds: dict[int, weakref.WeakSet[Datum]] = {}
        self._in_use: dict[int, set[Datum]] = {}    # by the task that a device is doing
        self.nbytes: Counter[tuple[int, bool]] = Counter()      # moved: memory, whether to it
        self.moved: deque[tuple[int, bool, int, float]] = deque(maxlen=MOST_NOTED)

    def join(self, executor: OpenCLExecutor) -> int:
        """The number of the memory of a device."""
        memory, self.any = len(self._executors) + 1, True
        self._executors[memory], self._holds[memory] = executor, weakref.WeakSet()
        return memory

    @property
    def moved_nbytes(self) -> tuple[int, int]:
        """Bytes that went to devices, and came from them."""
        up, down = (
            sum(nbytes for (_, to_device), nbytes in self.nbytes.items() if to_device == wanted)
            for wanted in (True, False)
        )
        return up, down

    def before(
        self, touches: Iterable[Touch], memory: int, replicas: Replicas | None = None
    ) -> None:
        """Bring what a task reads to where it computes; of a replica, all to the host, too."""
        if self._executors:
            touches = list(touches)
            for touch in touches:
                if touch.writes and touch.datum.coming:
                    with touch.datum.moving:
                        self._await(touch.datum)
            for touch in touches if replicas is not None else ():
                self.bring(touch.datum, HOST_MEMORY, touch.box)
            if memory != HOST_MEMORY:
                self._in_use[memory] = {touch.datum for touch in touches}
            for touch in touches:
                if touch.reads:
                    self.bring(touch.datum, memory, touch.box)

    def are_there(self, touches: Sequence[Touch], memory: int) -> bool:
        """Whether a task can compute there with nothing to wait for or to make room for.

        Then it is the one that does, without `before`.
        """
        for touch in touches:
            datum = touch.datum
            if datum.coming or (memory != HOST_MEMORY and memory not in datum.tiles):
                return False
            if touch.reads and not datum.newest.has(memory, touch.box):
                return False
        if memory != HOST_MEMORY:
            self._in_use[memory] = {touch.datum for touch in touches}
        return True

    def after(
        self, touches: Iterable[Touch], memory: int, replicas: Replicas | None = None
    ) -> None:
        """A task has written there.

        A replica on a device counts when the host has written the same, if its image is there.
        """
        if self._executors:
            for touch in touches:
                datum = touch.datum
                if touch.writes:
                    with datum.moving:
                        if replicas is not None and memory != HOST_MEMORY:
                            datum.newest.spoilt(memory, touch.box)
                            replicas[memory, datum] = datum.tiles[memory]
                            continue
                        datum.newest.wrote(memory, touch.box)
                        for (other, of), tile in (replicas or {}).items():
                            if of is datum and datum.tiles.get(other) is tile:
                                datum.newest.brought(other, Region.of([touch.box]))
            if memory != HOST_MEMORY:
                self._in_use[memory] = set()

    def bring(self, datum: Datum, memory: int, box: Shape) -> None:
        """Copy the stale cells of `box` to a memory; they are there when it returns.

        Where there are none it waits for no move of other cells.
        """
        if datum.newest.has(memory, box):
            return
        with datum.moving:
            self._await(datum)
            for source, target, cells in datum.newest.moves(memory, box):
                self._copy(datum, max(source, target), cells.boxes, to_device=target > HOST_MEMORY)
                datum.newest.brought(target, cells)

    def send(self, touches: Iterable[Touch], memory: int) -> None:
        """What a task has written there sets off for the host, before anything else it has to do.

        Who needs it waits until it is there.
        """
        for touch in touches if memory != HOST_MEMORY else ():
            datum = touch.datum
            with datum.moving:
                for source, _, cells in datum.newest.moves(HOST_MEMORY, touch.box):
                    if touch.writes and source == memory:
                        event = self._begun(datum, memory, cells.boxes, to_device=False)
                        datum.coming.append(Coming(event, cells))

    def away(self, touches: Iterable[Touch]) -> list[Touch]:
        """Those of which the host has not all of the newest cells."""
        return [
            touch for touch in touches if not touch.datum.newest.has(HOST_MEMORY, touch.box)
        ]  # fmt: skip

    def image(self, datum: Datum, memory: int) -> Tile:
        """The tile of an array on a device; other arrays leave it where there is no room."""
        tile = datum.tiles.get(memory)
        if tile is None:
            geometry, executor = Geometry.dense(datum.box), self._executors[memory]
            try:
                tile = executor.tile(geometry, datum.dtype)
            except MemoryCapError:
                self._give_way(memory)
                tile = executor.tile(geometry, datum.dtype)
            datum.tiles[memory] = tile
            self._holds[memory].add(datum)
        return tile

    def forget(self, datum: Datum) -> None:
        """The host has all cells, and may write them; no task is under way."""
        self.bring(datum, HOST_MEMORY, datum.box)
        datum.newest, datum.foreseen = Newest(datum.box), Newest(datum.box)

    def _copy(
        self, datum: Datum, memory: int, boxes: tuple[Shape, ...], *, to_device: bool
    ) -> None:
        begin_s = time.perf_counter()
        self._begun(datum, memory, boxes, to_device=to_device).wait()
        nbytes = sum(box.n_cells for box in boxes) * datum.dtype.itemsize
        self.moved.append((memory, to_device, nbytes, time.perf_counter() - begin_s))

    def _begun(
        self, datum: Datum, memory: int, boxes: tuple[Shape, ...], *, to_device: bool
    ) -> Event:
        executor, tile = self._executors[memory], self.image(datum, memory)
        event = executor.move_command(tile, datum.flat, boxes, to_device=to_device)(None)
        executor.flush()
        nbytes = sum(box.n_cells for box in boxes) * datum.dtype.itemsize
        self.nbytes[memory, to_device] += nbytes
        return event

    def _await(self, datum: Datum) -> None:
        """What is on its way has come; for who holds `datum.moving`."""
        while datum.coming:
            one = datum.coming.pop()
            one.event.wait()
            datum.newest.brought(HOST_MEMORY, one.cells)

    def _give_way(self, memory: int) -> None:
        """Take all arrays from a device but those of its task; what it alone has goes to the host.

        Its tasks are done one at a time, so that none is computing with the others.
        """
        for datum in list(self._holds[memory]):
            if datum in self._in_use[memory] or datum.owner() is None:
                continue
            if datum.moving.acquire(blocking=False):    # else it is on its way just now
                try:
                    self._await(datum)
                    for source, _, cells in datum.newest.moves(HOST_MEMORY, datum.box):
                        if source == memory:
                            self._copy(datum, memory, cells.boxes, to_device=False)
                            datum.newest.brought(HOST_MEMORY, cells)
                    datum.newest.forget(memory)
                    datum.tiles.pop(memory, None)
                    self._holds[memory].discard(datum)
                finally:
                    datum.moving.release()
        gc.collect()
