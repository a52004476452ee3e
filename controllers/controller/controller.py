# SPDX-License-Identifier: MIT
"""A `Controller` runs any program on one device: tied tiles, kernels, host tasks.

Its verbs return at once with an event; what a command waits for follows from the roles of its
tiles and from the cells it touches.  After Moreton-Fernandez et al. 2018, "Controllers: an
abstraction to ease the use of hardware accelerators", doi:10.1177/1094342017702962.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from controllers.check import Check, device_for, open_executor, setting_of
from controllers.controller.access import Access, before, record
from controllers.controller.cells import box_of, cell_dtype, cell_values
from controllers.controller.checked_launch import launches_of, settle
from controllers.controller.later import Later, Worker, check_outside, enqueued, inside_task
from controllers.controller.tied_tile import DONE, Kind, Selection, Target, TiedTile, selection_of
from controllers.controller.user_launch import Argument, UserLaunch
from controllers.device import Device
from controllers.device.event import (
    COMPLETE,
    AllOf,
    Command,
    Enqueued,
    Event,
    HostEvent,
    settle_event,
    wait_for_all,
)
from controllers.device.selection import check_selector, check_selectors
from controllers.kernel.variant import Kernel
from controllers.memory.coherence import Side
from controllers.placement.placement import assigned_devices, one_device
from controllers.process.waiter import PATIENCE_S
from hitmap.argument import function as function_argument
from hitmap.argument import instance, one_of, sizes_of
from hitmap.comm import Communicator, SerialCommunicator
from hitmap.shape import Shape
from hitmap.strided import Geometry

FORGET_EVERY = 64   # commands between two looks at which events are over


class Controller:
    """One device: `launch`, `host_task`, `move_to`, `move_from`, `wait`.

    device: a selector such as "gpu", "cpu", "nvidia:1", which must fit one device, or a `Device`;
        by default the GPU if there is one, else the CPU.
    zero_copy: use host memory in place where the device shares it; False treats such a device
        like one with memory of its own.
    memory_cap: bytes of the device that its tiles may take, as a number or as text such as "4g";
        by default the environment's (docs/memory.md), else all of them.  `executor.ledger` says
        what is in use.

    A controller and its tiles are used by one thread, and not from within a host task.
    """

    def __init__(
        self,
        device: str | Device = "",
        *,
        zero_copy: bool = True,
        memory_cap: str | int | None = None,
        check: Check = None,
        rank: int = 0,
    ) -> None:
        setting = setting_of(check)
        if not isinstance(device, Device):
            check_selector(device, "device")
        self.device = device if isinstance(device, Device) else one_device(device)
        if self.device.kind == "reference":
            raise ValueError(
                "the reference device computes descriptions of stencils and runs no kernels; "
                "choose an OpenCL device"
            )
        self.device = device_for(self.device, setting)
        self.executor = open_executor(
            self.device, setting, zero_copy=zero_copy, memory_cap=memory_cap
        )
        self._checked = launches_of(self.executor, rank)
        self._tasks = Worker("host tasks")
        self._commands = Worker("commands after host tasks")
        self._launches: dict[object, UserLaunch] = {}
        self._tiles: list[TiedTile] = []
        self._n_commands = 0
        self._closed = False

    @classmethod
    def each(
        cls,
        selectors: str | Sequence[str] = (),
        comm: Communicator | None = None,
        *,
        zero_copy: bool = True,
        memory_cap: str | int | None = None,
        check: Check = None,
    ) -> list[Controller]:
        """A controller for each device that `selectors` name.

        With `comm`, collective: the ranks of a host share the devices in order, and this rank
        gets its part; a CPU is divided by cores among the ranks that share it.
        """
        check_selectors(selectors, "selectors")
        devices = assigned_devices(comm or SerialCommunicator(), selectors)
        rank = 0 if comm is None else comm.rank
        return [
            cls(device, zero_copy=zero_copy, memory_cap=memory_cap, check=check, rank=rank)
            for device in devices
        ]

    def __repr__(self) -> str:
        return f"<Controller {self.device.name!r}>"

    def tile(
        self,
        box: Shape | Sequence[int],
        dtype: npt.DTypeLike = "float32",
        kind: Kind = "tied",
    ) -> TiedTile:
        """A new tile, zeroed: `box` in global indices, or its extents from the origin.

        kind: "tied", "internal" (no image on the host) or "host" (none on the device).  It lives
        until it is freed or the controller is closed.  MemoryCapError where it does not fit.
        """
        self._check_open()
        shape = box if isinstance(box, Shape) else Shape.of_extent(sizes_of(box, "box"))
        if shape.empty or not shape.extent:
            raise ValueError(f"a tile needs at least one cell, got {shape}; use a larger box")
        one_of(kind, get_args(Kind), "the kind of a tile")
        geometry, element = Geometry.dense(shape), cell_dtype(dtype)
        memory = None if kind == "host" else self.executor.tile(geometry, element)
        host = memory.host if memory is not None and kind == "tied" else None
        if host is None and kind != "internal":
            host = self.executor.image(geometry.n_elements, element)
        tile = TiedTile(self, geometry, element, kind, memory, host)
        self._tiles.append(tile)
        return tile

    def free(self, tile: TiedTile) -> None:
        """Give the memory of `tile` back when all that uses it is done."""
        self._check(tile)
        for event in tile.coherence.pending():
            settle_event(event)
        self._tiles = [other for other in self._tiles if other is not tile]
        tile.memory = tile.host = None

    def swap(self, one: TiedTile, other: TiedTile) -> None:
        """Exchange the contents of two tiles of the same box, dtype and kind, without copying."""
        for tile in (one, other):
            self._check(tile)
        if (one.box, one.dtype, one.kind) != (other.box, other.dtype, other.kind):
            raise ValueError(f"only tiles of the same form can be swapped, got {one} and {other}")
        one.memory, other.memory = other.memory, one.memory
        one.host, other.host = other.host, one.host
        one.coherence, other.coherence = other.coherence, one.coherence

    def launch(
        self,
        kernel: Kernel,
        over: Shape | Target,
        /,
        *,
        group: Sequence[int] | None = None,
        **arguments: Argument,
    ) -> Event:
        """Run `kernel` for each cell of `over`; arguments by the names of its parameters.

        A tile or selection is read, written or both, as a whole, as the role of its parameter says:
        declared in `Kernel.roles`, else "in" for pointers to const and "inout" for others.  Give
        a selection where a kernel touches less.  "out" promises that the cells of `over` are all
        written and none is read.  Parameters that the accessors declare (docs/controllers.md) are
        set from the tiles and from `over`; a pointer to local memory takes its number of elements.
        ValueError where `over` leads HERE or NEAR out of a tile or selection, TypeError where the
        structs of a tile are laid out otherwise than the kernel's (docs/controllers.md).

        group: extents of a work-group, one per axis, for kernels that use local memory or group
            functions; the launch is then rounded up to whole groups, and `CELL` tests the bounds.
        """
        instance(kernel, Kernel, "kernel", "write Kernel.of(name, source)")
        cells = box_of(over)
        if cells.empty:
            return DONE
        launch = self._launch_of(kernel, cells.n_axes, group is not None)
        for argument in arguments.values():
            if isinstance(argument, (TiedTile, Selection)):
                self._check(selection_of(argument).tile, "device")
        accesses = launch.accesses(cells, arguments)
        if self._checked is None:   # which says which work-item it is
            launch.check_cells(cells, arguments)
        for access in accesses:
            if access.reads:
                self._refresh("device", access.selection)
        command = launch.command(cells, arguments, kernel.scalars, group)
        if self._checked is not None:
            settle(accesses)
            grouped = group is not None
            command = self._checked.command(command, kernel, cells, arguments, accesses, grouped)
        event = self._issue(command, before("device", accesses))
        record("device", accesses, event)
        return event

    def host_task(self, function: Callable[..., object], *accesses: Access) -> Event:
        """Call `function` with NumPy views of its tiles, when what they depend on is done.

        `accesses` are `reading(tile)`, `writing(tile)` or `updating(tile)`, of tiles or selections
        with an image on the host, of this controller or of others; the views come in this order,
        those that are only read read-only.  Tasks of one controller run one after another in a
        thread of their own.  What the function raises is raised by `wait`, and by all that depends
        on the task.
        """
        self._check_open()
        function_argument(function, "function")
        for access in accesses:
            instance(access, Access, "an access", "write reading(tile), writing or updating")
            owner = access.selection.tile.controller
            owner._check(access.selection.tile, "host")
        for access in accesses:
            if access.reads:
                access.selection.tile.controller._refresh("host", access.selection)
        views = [access.view() for access in accesses]
        after = before("host", accesses)

        def work() -> Event:
            for event in after:
                event.wait()
            start = time.perf_counter_ns()
            with inside_task():
                function(*views)
            return HostEvent(start, time.perf_counter_ns())

        task = self._tasks.submit(work)
        record("host", accesses, task)
        self._tidy()
        return task

    def move_to(self, target: Target) -> Event:
        """Host to device: the cells of `target` that are stale there.

        The event is complete when the device's image of `target` is up to date.
        """
        self._check(selection_of(target).tile, "device")
        return self._refresh("device", selection_of(target))

    def move_from(self, target: Target) -> Event:
        """Device to host: the cells of `target` that are stale there.

        The event is complete when the host's image of `target` is up to date.
        """
        self._check(selection_of(target).tile, "host")
        return self._refresh("host", selection_of(target))

    def wait(self) -> None:
        """Block until all commands and host tasks so far are done; raises the first error."""
        check_outside("a verb of a controller")
        errors = [self._tasks.finish(), self._commands.finish()]
        self.executor.wait()
        self._tidy(always=True)
        for error in errors:
            if error is not None:
                raise error

    def read(self, target: Target) -> npt.NDArray[Any]:
        """A copy of the cells of `target`; waits for all that writes them, moves the stale ones."""
        selection = selection_of(target)
        tile, cells = selection.tile, selection.cells
        self._check(tile)
        if tile.host is None:
            assert tile.memory is not None, "an internal tile that is not free"
            wait_for_all(tile.coherence.before_read("device", [cells]))
            return self.executor.move_from(tile.memory, cells)
        self._refresh("host", selection).wait()
        return np.array(tile.image(cells))

    def write(self, target: Target, values: npt.ArrayLike) -> None:
        """New values for the cells of `target`; waits for all that uses them."""
        selection = selection_of(target)
        tile, cells = selection.tile, selection.cells
        self._check(tile)
        array = cell_values(values, cells.extent, tile.dtype)
        side: Side = "device" if tile.host is None else "host"
        wait_for_all(tile.coherence.before_write(side, [cells]))
        if tile.host is None:
            assert tile.memory is not None, "an internal tile that is not free"
            self.executor.move_to(tile.memory, cells, array)
        else:
            tile.image(cells)[...] = array
        tile.coherence.wrote(side, [cells], DONE)

    def close(self) -> None:
        """Wait, free all tiles, end the threads; raises the first error of what it waited for."""
        check_outside("the end of a controller")
        try:
            self.wait()
        except BaseException:
            self._release(PATIENCE_S)
            raise
        self._release()

    def __enter__(self) -> Controller:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:   # which is the one to report
            self._release(PATIENCE_S)

    def _release(self, patience_s: float | None = None) -> None:
        """End the threads and free all tiles, but for what is not over after `patience_s`."""
        done = self._tasks.close(patience_s) and self._commands.close(patience_s)
        if done and self.executor.wait(patience_s, keep=self):
            for tile in list(self._tiles):
                self.free(tile)
        self._closed = True

    def _refresh(self, side: Side, selection: Selection) -> Event:
        """Copy the stale cells of one side; the event is that of all its cells."""
        tile, cells = selection.tile, [selection.cells]
        stale = tile.coherence.stale(side, cells)
        if stale:
            assert tile.memory is not None and tile.host is not None, "two images"
            other: Side = "host" if side == "device" else "device"
            after = tile.coherence.before_read(other, stale)
            after += tile.coherence.before_write(side, stale)
            to_device = side == "device"
            command = self.executor.move_command(tile.memory, tile.host, stale, to_device=to_device)
            tile.coherence.copied(side, stale, self._issue(command, after))
        return AllOf(tile.coherence.before_read(side, cells))

    def _issue(self, command: Command, after: Sequence[Event]) -> Event:
        """Enqueue `command`, at once or when the host tasks that it depends on are done."""
        self._tidy()
        if any(isinstance(event, Later) and event.pending for event in after):
            return self._commands.submit(lambda: self._enqueue(command, after))
        return self._enqueue(command, after)

    def _enqueue(self, command: Command, after: Sequence[Event]) -> Event:
        wait_for = [event.event for event in enqueued(after) if isinstance(event, Enqueued)]
        event = Enqueued(command(wait_for or None), self.executor.waiter)
        self.executor.flush()   # the other queue, or a host task, may wait for it
        return event

    def _launch_of(self, kernel: Kernel, n_axes: int, grouped: bool) -> UserLaunch:
        """`kernel` built for this device, once."""
        roles = tuple(sorted(kernel.roles.items()))
        key = (kernel.name, kernel.variants, roles, n_axes, grouped)
        if key not in self._launches:
            if self._checked is not None:
                self._launches[key] = self._checked.build(kernel, n_axes, grouped)
            else:
                self._launches[key] = UserLaunch(self.executor, kernel, n_axes, grouped=grouped)
        return self._launches[key]

    def _check(self, tile: TiedTile, image: Side | None = None) -> None:
        """ValueError where `tile` cannot be used here, or lacks an image."""
        check_outside("a verb of a controller")
        instance(tile, TiedTile, "a tile", "make one with controller.tile(...)")
        if tile.controller is not self:
            raise ValueError(f"{tile!r} belongs to {tile.controller!r}; use that one, or copy it")
        self._check_open()
        if tile.freed:
            raise ValueError(f"the tile {tile.box} has been freed; make a new one")
        if image is not None and (tile.memory if image == "device" else tile.host) is None:
            raise ValueError(f"{tile!r} has no image on the {image}; make it a tied tile")

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError(f"{self!r} is closed; make a new one")

    def _tidy(self, always: bool = False) -> None:
        """Forget events that are over, now and then: they would pile up in the histories."""
        self._n_commands += 1
        if always or self._n_commands % FORGET_EVERY == 0:
            for tile in self._tiles:
                tile.coherence.forget(lambda e: e.command_execution_status == COMPLETE)
