# SPDX-License-Identifier: MIT
"""A `Controller` runs any program on one device: tied tiles, kernels, host tasks.

Its verbs return at once with an event; what a command waits for follows from the roles of its
tiles and from the cells it touches.  After Moreton-Fernandez et al. 2018, "Controllers: an
abstraction to ease the use of hardware accelerators", doi:10.1177/1094342017702962.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from controllers.check import Check, device_for, open_executor, setting_of
from controllers.controller.access import Access, before, record
from controllers.controller.cells import box_of_tile, cell_dtype, cell_values
from controllers.controller.commands import Commands
from controllers.controller.later import check_outside, inside_task
from controllers.controller.launches import Given, Launches, arguments_of
from controllers.controller.tied_tile import DONE, Cells, TiedTile, TileKind, box_of, cells_of
from controllers.device import Device
from controllers.device.event import COMPLETE, Event, HostEvent, settle_event, wait_for_all
from controllers.device.selection import check_selector, check_selectors
from controllers.kernel.variant import Kernel
from controllers.memory.coherence import Side
from controllers.placement.placement import assigned_devices, one_device
from controllers.process.waiter import PATIENCE_S
from hitmap.argument import function as function_argument
from hitmap.argument import instance, one_of
from hitmap.comm import Communicator, SerialCommunicator
from hitmap.shape import Shape

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
        if not self.device.uses_opencl:
            raise ValueError(
                f"the {self.device.kind} device computes descriptions of stencils and runs no "
                f"kernels; choose an OpenCL device"
            )
        self.device = device_for(self.device, setting)
        self.executor = open_executor(
            self.device, setting, zero_copy=zero_copy, memory_cap=memory_cap
        )
        self._commands = Commands(self.executor)
        self._launches = Launches(self._commands, rank)
        self._tiles: list[TiedTile] = []
        self._n_verbs = 0

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
        cells: Shape | Sequence[int] | npt.NDArray[Any],
        dtype: npt.DTypeLike | None = None,
        kind: TileKind = "tied",
    ) -> TiedTile:
        """A new tile: of a box in global indices, of extents from the origin, or like an array.

        A tile of an array takes over its shape, its values and, unless `dtype` is another, its
        dtype.  Others are zeroed, and of "float32" by default.
        kind: "tied", "internal" (no image on the host) or "host" (none on the device).  It lives
        until it is freed or the controller is closed.  MemoryCapError where it does not fit.
        """
        self._commands.check()
        array, box = cells if isinstance(cells, np.ndarray) else None, box_of_tile(cells)
        one_of(kind, get_args(TileKind), "the kind of a tile")
        if dtype is None:
            dtype = "float32" if array is None else array.dtype
        element = cell_dtype(dtype)
        values = None if array is None else cell_values(array, box.extent, element)
        tile = TiedTile.zeroed(self._commands, box, element, kind)
        self._tiles.append(tile)
        if values is not None:
            tile.write(values)
        return tile

    def free(self, tile: TiedTile) -> None:
        """Give the memory of `tile` back when all that uses it is done."""
        self._own(tile)
        for event in tile.coherence.pending():
            settle_event(event)
        self._tiles = [other for other in self._tiles if other is not tile]
        tile.memory = tile.host = None

    def swap(self, one: TiedTile, other: TiedTile) -> None:
        """Exchange the contents of two tiles of the same box, dtype and kind, without copying."""
        for tile in (one, other):
            self._own(tile)
        if (one.box, one.dtype, one.kind) != (other.box, other.dtype, other.kind):
            raise ValueError(f"only tiles of the same form can be swapped, got {one} and {other}")
        one.memory, other.memory = other.memory, one.memory
        one.host, other.host = other.host, one.host
        one.coherence, other.coherence = other.coherence, one.coherence

    def launch(
        self,
        kernel: Kernel,
        over: Shape | Cells,
        arguments: Mapping[str, Given] = MappingProxyType({}),
        /,
        *,
        group: Sequence[int] | None = None,
        **named: Given,
    ) -> Event:
        """Run `kernel` for each cell of `over`; arguments by the names of its parameters.

        A name that Python or this call keeps for itself, such as "group", goes into the dict
        `arguments`.
        A tile or selection is read, written or both, as a whole, as `reading(tile)`,
        `writing(tile)` or `updating(tile)` say, or else the role that `Kernel.roles` declares, or
        else "reading" for pointers to const and "updating" for others.  Give a selection where a
        kernel touches less.  "writing" promises that the cells of `over` are all written and none
        is read.  Parameters that the accessors declare (docs/controllers.md) are set from the
        tiles and from `over`; a pointer to local memory takes its number of elements.
        ValueError where `over` leads HERE or NEAR out of a tile or selection, TypeError where the
        structs of a tile are laid out otherwise than the kernel's (docs/controllers.md).

        group: extents of a work-group, one per axis, for kernels that use local memory or group
            functions; the launch is then rounded up to whole groups, and `CELL` tests the bounds.
        """
        self._commands.check()
        instance(kernel, Kernel, "kernel", "write Kernel.of(name, source)")
        box, given = box_of(over), arguments_of(kernel, arguments, named)
        if box.empty:
            return DONE
        command, accesses = self._launches.prepared(kernel, box, given, group)
        event = self._commands.issue(command, before("device", accesses))
        record("device", accesses, event)
        self._tidy()
        return event

    def host_task(self, function: Callable[..., object], *accesses: Access) -> Event:
        """Call `function` with NumPy views of its tiles, when what they depend on is done.

        `accesses` are `reading(tile)`, `writing(tile)` or `updating(tile)`, of tiles or selections
        with an image on the host, of this controller or of others; the views come in this order,
        those that are only read read-only.  Tasks of one controller run one after another in a
        thread of their own.  What the function raises is raised by `wait`, and by all that depends
        on the task.
        """
        self._commands.check()
        function_argument(function, "function")
        for access in accesses:
            instance(access, Access, "an access", "write reading(tile), writing or updating")
            access.cells.tile.check(image="host")
        for access in accesses:
            if access.reads:
                access.cells.refresh("host")
        views = [access.view() for access in accesses]
        after = before("host", accesses)

        def work() -> Event:
            for event in after:
                event.wait()
            start = time.perf_counter_ns()
            with inside_task():
                function(*views)
            return HostEvent(start, time.perf_counter_ns())

        task = self._commands.task(work)
        record("host", accesses, task)
        self._tidy()
        return task

    def move_to(self, target: Cells) -> Event:
        """Host to device: the cells of `target` that are stale there.

        The event is complete when the device's image of `target` is up to date.
        """
        return self._moved("device", target)

    def move_from(self, target: Cells) -> Event:
        """Device to host: the cells of `target` that are stale there.

        The event is complete when the host's image of `target` is up to date.
        """
        return self._moved("host", target)

    def wait(self, *targets: Cells) -> None:
        """Block until all commands and host tasks so far are done; raises the first error.

        targets: tiles or selections; wait just for what uses them, and for what that needs.
        """
        check_outside("a verb of a controller")
        if targets:
            for target in targets:
                self._own(cells_of(target).tile)
                wait_for_all(target.users())
            return
        error = self._commands.finish()
        self._tidy(always=True)
        if error is not None:
            raise error

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
        if self._commands.close(patience_s, keep=self):
            for tile in list(self._tiles):
                self.free(tile)
        self._commands.closed = True

    def _moved(self, side: Side, target: Cells) -> Event:
        """The event of the image of `target` on one side, up to date."""
        self._own(cells_of(target).tile, side)
        event = target.refresh(side)
        self._tidy()
        return event

    def _own(self, tile: TiedTile, image: Side | None = None) -> None:
        """ValueError where `tile` cannot be used here, or lacks an image."""
        instance(tile, TiedTile, "a tile", "make one with controller.tile(...)")
        tile.check(self._commands, image)

    def _tidy(self, always: bool = False) -> None:
        """Forget events that are over, now and then: they would pile up in the histories."""
        self._n_verbs += 1
        if always or self._n_verbs % FORGET_EVERY == 0:
            for tile in self._tiles:
                tile.coherence.forget(lambda e: e.command_execution_status == COMPLETE)
