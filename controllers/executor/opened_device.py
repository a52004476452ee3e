# SPDX-License-Identifier: MIT
"""An opened device: its context, its queues, its memory, and copies between host and device.

Commands are bound once and called often: a `*_command` method returns a function that
enqueues the command, with all arguments set, and returns its event at once.
"""
from __future__ import annotations

import atexit
import ctypes
from collections.abc import Sequence
from functools import cached_property
from typing import Any
from weakref import WeakSet, WeakValueDictionary

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.device import Device
from controllers.device.event import Command, Event, in_order
from controllers.executor.clearing import Clearing
from controllers.executor.clock import Clock
from controllers.executor.contexts import context_of, own_options
from controllers.executor.lane import Lane
from controllers.executor.slot_memory import SlotMemory
from controllers.executor.transfer import (
    between_command,
    box_command,
    clock_reading,
    copy_box,
    run_command,
)
from controllers.kernel.build import where
from controllers.kernel.crash import labelled
from controllers.memory.allocation import device_memory, pinned_memory
from controllers.memory.ledger import HostPurpose, Ledger, cap_for
from controllers.memory.tile import Linear, Tile, aligned, host_tile_memory
from controllers.process.waiter import Waiter
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided, whole_vectors

STAGGER = 5     # cache-line pairs between the starts of successive tiles, modulo a page

_OPENED: WeakSet[OpenedDevice] = WeakSet()


class OpenedDevice:
    """One device: a lane for kernels, others for transfers, and memory.

    Where the device shares the host's memory, tiles are host arrays that kernels use in
    place; elsewhere they are internal, and `staging` is pinned.  All that is allocated is in
    the account of `ledger`, whose cap is `memory_cap` (see `controllers.memory.ledger.cap_for`).
    """

    def __init__(self, device: Device, zero_copy: bool, memory_cap: str | int | None) -> None:
        self.device = device
        self.shares_host = device.shares_host and zero_copy
        cap_bytes = cap_for(device.capacity_bytes, memory_cap)
        self.ledger = Ledger(device.name, cap_bytes, device.max_allocation_bytes)
        self.context, self.own_options = context_of(device), own_options(device)
        self.compute_lane, self.transfer_lane = self.lane(), self.lane()
        self._lanes = [self.compute_lane, self.transfer_lane]
        # for what the host waits for while the lanes go on
        self.results = None if self.shares_host else self.lane().timed
        self._clearing = Clearing(self.compute, self.own_options)
        self._n_tiles = 0
        self._hosts: WeakValueDictionary[int, npt.NDArray[Any]] = WeakValueDictionary()
        self.waiter = Waiter()
        self.clock = Clock(clock_reading(self.transfer_lane.timed))
        _OPENED.add(self)

    def leave_memory(self) -> None:
        """Never free the tiles that kernels may be using as the process ends.

        What comes into freed memory may end a kernel that goes on for ever, and so the thread that
        waits for it, which aborts a process that has no interpreter any more.
        """
        if self.waiter.goes_on:
            for host in self._hosts.values():
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(host))

    @property
    def compute(self) -> cl.CommandQueue:
        """The queue that kernels go through now."""
        return self.compute_lane.queue

    @property
    def transfer(self) -> cl.CommandQueue:
        """The queue that transfers go through now."""
        return self.transfer_lane.queue

    def lane(self) -> Lane:
        """A new lane of this device."""
        return Lane(self.context, self.device.handle)

    @cached_property
    def retrieve_lane(self) -> Lane:
        """A lane for what leaves the device beside what is on its way to it."""
        self._lanes.append(self.lane())
        return self._lanes[-1]

    @cached_property
    def slot_memory(self) -> SlotMemory:
        """What chunks of calls pass through, whichever arrays these are of."""
        return SlotMemory(self.context, self.ledger)

    def tile(self, geometry: Geometry, dtype: np.dtype[Any]) -> Tile:
        """A new tile, zeroed."""
        self._n_tiles += 1
        if self.shares_host:
            stagger = STAGGER * self._n_tiles
            host = host_tile_memory(geometry.n_elements, dtype, self.ledger, stagger)
            self._hosts[id(host)] = host
            return Tile(geometry, dtype, host, self._in_place(host))
        nbytes = geometry.n_elements * dtype.itemsize
        buffer = device_memory(self.context, self.ledger, nbytes, "tiles")
        tile = Tile(geometry, dtype, None, buffer)
        self.clear(tile)
        return tile

    def tile_in_place(self, geometry: Geometry, host: npt.NDArray[Any]) -> Tile:
        """A tile of memory that the host has, a flat array, in which kernels compute."""
        assert self.shares_host, "a device that computes in the host's memory"
        return Tile(geometry, host.dtype, host, self._in_place(host))

    def _in_place(self, host: npt.NDArray[Any]) -> cl.Buffer:
        access = cl.mem_flags.READ_WRITE if host.flags.writeable else cl.mem_flags.READ_ONLY
        return cl.Buffer(self.context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=host)

    def staging(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Host memory for packed cells: pinned where that makes transfers faster."""
        return self._host_memory(n_elements, dtype, "host staging")

    def image(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Host memory, zeroed, for cells that also lie on the device, or for such of the host."""
        array = self._host_memory(n_elements, dtype, "host images")
        array[...] = 0
        return array

    def image_memory(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Host memory for cells that pass through the device, as it comes."""
        return self._host_memory(max(1, n_elements), dtype, "host images")

    def _host_memory(
        self, n_elements: int, dtype: np.dtype[Any], purpose: HostPurpose
    ) -> npt.NDArray[Any]:
        if not self.shares_host:
            return pinned_memory(self.transfer, self.ledger, n_elements, dtype, purpose)
        array = np.zeros(n_elements, dtype)
        self.ledger.hold(array, array.nbytes, purpose)
        return array

    def device_staging(self, n_elements: int, dtype: np.dtype[Any]) -> cl.Buffer:
        """Device memory for packed cells."""
        nbytes = whole_vectors(max(1, n_elements)) * dtype.itemsize
        return device_memory(self.context, self.ledger, nbytes, "device staging")

    def constants(self, array: npt.NDArray[Any]) -> cl.Buffer:
        """Device memory that holds `array`."""
        buffer = device_memory(self.context, self.ledger, array.nbytes, "constants")
        cl.enqueue_copy(self.compute, buffer, array)
        return buffer

    def words(self, n_words: int) -> tuple[cl.Buffer, npt.NDArray[np.int64] | None]:
        """Device memory of so many words, zeroed; and what the host sees of it, if it is shared."""
        if not self.shares_host:
            return self.constants(np.zeros(n_words, np.int64)), None
        host = aligned(n_words, np.dtype(np.int64))
        self._hosts[id(host)] = host
        self.ledger.hold(host, host.nbytes, "constants")
        return self._in_place(host), host

    def clear(self, tile: Tile, used: Shape | None = None) -> None:
        """All of `tile`, halo and padding too, or in host memory all that is `used`, becomes 0."""
        if tile.host is not None:
            tile.clear_host(used)
        else:
            assert tile.buffer is not None, "a tile has memory"
            self._clearing.run(tile.buffer, tile.nbytes)

    def download_command(
        self, source: Linear, cells: Strided, target: npt.NDArray[Any]
    ) -> Command:
        """Copy cells of a buffer, one after another, to `target`, contiguous host memory."""
        return run_command(self.transfer_lane, source, cells, target, to_device=False)

    def upload_command(
        self, source: npt.NDArray[Any], target: Linear, cells: Strided
    ) -> Command:
        """Copy `source`, contiguous host memory, to cells of a buffer, one after another."""
        return run_command(self.transfer_lane, target, cells, source, to_device=True)

    def bring_command(
        self, image: npt.NDArray[Any], slot: Linear, here: Strided, there: Strided
    ) -> Command:
        """Copy a box, which lies `here` in host memory and `there` in a buffer, to the buffer."""
        lane = self.transfer_lane
        return self._flushed(lane, between_command(lane, slot, image, there, here, to_device=True))

    def retrieve_command(
        self, image: npt.NDArray[Any], slot: Linear, here: Strided, there: Strided
    ) -> Command:
        """The same to host memory, in a lane of its own."""
        lane = self.retrieve_lane
        return self._flushed(lane, between_command(lane, slot, image, there, here, to_device=False))

    def _flushed(self, lane: Lane, command: Command) -> Command:
        """`command` with what it waits for, and itself, on its way as it is enqueued.

        Else a driver may tell of what it waits for with the end of what is enqueued after that.
        """

        def at_once(wait_for: Sequence[Event] | None = None) -> Event:
            if wait_for:
                self.compute.flush()
            event = command(wait_for)
            lane.queue.flush()
            return event

        return at_once

    def move_command(
        self, tile: Tile, image: npt.NDArray[Any], boxes: Sequence[Shape], *, to_device: bool
    ) -> Command:
        """Copy boxes of cells between a tile and its image, a flat array of the same geometry."""
        assert tile.buffer is not None, "an OpenCL tile"
        lane, buffer = self.transfer_lane, tile.buffer
        return in_order([
            box_command(lane, buffer, tile.strided(box), image, to_device=to_device)
            for box in boxes
        ])  # fmt: skip

    def move_to(self, tile: Tile, cells: Shape, values: npt.NDArray[Any]) -> None:
        """Host to device: `values` become the cells `cells` of `tile`; returns when they are.

        No kernel may be using the cells.
        """
        assert values.shape == cells.extent, "as many values as cells"
        if tile.host is not None:
            tile.view(cells)[...] = values
            return
        assert tile.buffer is not None
        source = np.ascontiguousarray(values, tile.dtype)
        copy_box(self.transfer, tile.buffer, tile.strided(cells), source, to_device=True)

    def move_from(self, tile: Tile, cells: Shape) -> npt.NDArray[Any]:
        """Device to host: the cells `cells` of `tile` as a new array; no kernel writes them."""
        target = np.empty(cells.extent, tile.dtype)
        self.ledger.hold(target, target.nbytes, "host images")
        if tile.host is not None:
            target[...] = tile.view(cells)
            return target
        assert tile.buffer is not None
        copy_box(self.transfer, tile.buffer, tile.strided(cells), target, to_device=False)
        return target

    def read_clock(self) -> None:
        """Compare the device's clock, which events are timed by, with the host's; some 0.5 ms."""
        self.clock.add(clock_reading(self.transfer_lane.timed))

    def time_commands(self, wanted: bool) -> None:
        """Whether the events of what is enqueued from now on have profiles; after `wait` they do.

        Untimed commands cost some drivers less to enqueue.
        """
        for lane in self._lanes:
            lane.time(wanted)

    def flush(self) -> None:
        """Let the device start on all that is enqueued."""
        for lane in self._lanes:
            lane.queue.flush()

    def wait(self, patience_s: float | None = None, keep: object = None) -> bool:
        """Block until the device has nothing left to do; False if it takes longer than that.

        Ctrl-C ends the wait.  `keep` is what commands use that may still be under way then.
        """

        def finish() -> object:
            compute, *others = self._lanes
            labelled(f"kernels are waited for on {where(self.device)}", compute.finish)()
            for lane in others:
                lane.finish()
            if self.results is not None:
                self.results.finish()
            return keep

        done = self.waiter.wait(finish, patience_s)
        if done:
            for lane in self._lanes:
                lane.restart()
        return done


@atexit.register
def _leave_memory() -> None:
    for opened in _OPENED:
        opened.leave_memory()
