# SPDX-License-Identifier: MIT
"""An executor owns one OpenCL device: its context, its queues, its kernels, its memory.

Commands are bound once and called often: a `*_command` method returns a function that
enqueues the command, with all arguments set, and returns its event at once.
"""
from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.device import Device
from controllers.device.event import Command, Event, in_order
from controllers.executor.clearing import Clearing
from controllers.executor.clock import Clock
from controllers.executor.rect_copy import four_axes
from controllers.executor.transfer import box_command, clock_reading, copy_box, run_command
from controllers.kernel.build import (
    Built,
    build,
    compiled,
    parameters,
    where,
)
from controllers.kernel.choices import Choices
from controllers.kernel.configuration import Configuration, Placed, launch_of, with_launches
from controllers.kernel.crash import labelled
from controllers.kernel.registry import SPECIALISED, KernelChoice
from controllers.kernel.stage_kernel import StageKernel, box_values, stage_kernel, tile_values
from controllers.kgt import Launch
from controllers.kgt.kernel import WorkSizes
from controllers.kgt.parameter import bind
from controllers.kgt.strategies.cell.config import work_sizes
from controllers.kgt.text.fixed import accessors, fixed_source
from controllers.memory.allocation import device_memory, pinned_memory
from controllers.memory.ledger import HostPurpose, Ledger, cap_for
from controllers.memory.tile import Linear, Tile, host_tile_memory
from controllers.process.waiter import Waiter
from controllers.program.program import Program
from controllers.program.steps import Steps
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided, whole_vectors

STAGGER = 5     # cache-line pairs between the starts of successive tiles, modulo a page
CELL_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}



class SharedKernel:
    """A kernel that is launched with other arguments each time, perhaps by several threads."""

    def __init__(self, built: Built) -> None:
        self.kernel = compiled(built.program, built.name)
        self.enqueue = built.enqueue
        self.lock = threading.Lock()    # from the arguments to the launch


class OpenCLExecutor:
    """One device: an in-order queue for kernels, another one for transfers.

    Where the device shares the host's memory, tiles are host arrays that kernels use in
    place; elsewhere they are internal, and `staging` is pinned.  All that is allocated is in
    the account of `ledger`, whose cap is `memory_cap` (see `controllers.memory.ledger.cap_for`).
    """

    def __init__(
        self,
        device: Device,
        *,
        zero_copy: bool = True,
        kernel: KernelChoice = SPECIALISED,
        memory_cap: str | int | None = None,
    ) -> None:
        assert device.handle is not None, "an OpenCL device"
        self.device = device
        self.kernel = kernel    # how stages are computed
        self.choices = Choices(device)      # and how these kernels are configured
        self.shares_host = device.shares_host and zero_copy
        cap_bytes = cap_for(device.capacity_bytes, memory_cap)
        self.ledger = Ledger(device.name, cap_bytes, device.max_allocation_bytes)
        self.context = cl.Context([device.handle])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.compute = cl.CommandQueue(self.context, properties=profiling)
        self.transfer = cl.CommandQueue(self.context, properties=profiling)
        self._kernels: dict[tuple[str, str], Built] = {}
        self._copies: dict[int, Built] = {}
        self._clearing = Clearing(self.compute)
        self._n_tiles = 0
        self.waiter = Waiter()
        self.clock = Clock(clock_reading(self.transfer))

    def __repr__(self) -> str:
        return f"<OpenCLExecutor {self.device.name!r}>"

    def tile(self, geometry: Geometry, dtype: np.dtype[Any]) -> Tile:
        """A new tile, zeroed."""
        self._n_tiles += 1
        if self.shares_host:
            stagger = STAGGER * self._n_tiles
            host = host_tile_memory(geometry.n_elements, dtype, self.ledger, stagger)
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
            return Tile(geometry, dtype, host, cl.Buffer(self.context, flags, hostbuf=host))
        nbytes = geometry.n_elements * dtype.itemsize
        buffer = device_memory(self.context, self.ledger, nbytes, "tiles")
        tile = Tile(geometry, dtype, None, buffer)
        self.clear(tile)
        return tile

    def staging(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Host memory for packed cells: pinned where that makes transfers faster."""
        return self._host_memory(n_elements, dtype, "host staging")

    def image(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Host memory, zeroed, for cells that also lie on the device, or for such of the host."""
        array = self._host_memory(n_elements, dtype, "host images")
        array[...] = 0
        return array

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

    def launch_command(
        self,
        program: Program,
        stage: int,
        reads: Mapping[str, Tile],
        written: Tile,
        over: Shape,
        steps: Steps,
    ) -> Command:
        """Compute the cells `over` of `written` by so many steps of stage number `stage`.

        `over` is not empty.
        """
        target = program.stages[stage].writes
        tiles = {target: written, **reads}
        geometries = {field: tile.geometry for field, tile in tiles.items()}
        launch = self.launch_of(program, stage, (over, geometries), steps.count)
        source, built = self.build(program, stage, launch)
        values = {**box_values(over, steps.computed), f"{target}_new": written.buffer}
        for field, tile in tiles.items():
            reachable = tile.geometry.box.shift(tuple(-first for first in over.lower))
            values |= self.tile_arguments(field, launch.fields[field], reachable)
        values |= {field: tile.buffer for field, tile in reads.items()}
        if source.tables is not None:
            tables = source.tables(written.strided(over).pitches)
            values |= {name: self._constants(array) for name, array in tables.items()}
        title = source.title or source.name
        arguments = bind(title, built.parameters, values, source.scalars)
        sizes = source.work_sizes(over.extent, self.device.kind == "cpu")
        return self.kernel_command(built, arguments, sizes)

    def accessors(self, n_axes: int, macros: Mapping[str, str]) -> str:
        """The macros that a user's kernel sees."""
        return accessors(n_axes, macros)

    def tile_arguments(self, name: str, where: Strided, cells: Shape) -> dict[str, object]:
        """The values of the parameters TILE(name), for the box that lies at `where`.

        `cells` may be touched, counted from the first cell of the box.
        """
        return {**tile_values(name, where)}

    def copy_command(
        self, source: Linear, target: Linear, itemsize: int, move: tuple[Strided, Strided]
    ) -> Command:
        """Copy one box of cells between two buffers of this controller."""
        if itemsize not in self._copies:
            options = [f"-DCELL={CELL_TYPES[itemsize]}"]
            text = fixed_source("copy_box")
            built = build(self.context, "copy_box", text, options)
            self._copies[itemsize] = Built("copy_box", built, ())
        four = [four_axes(end) for end in move]
        extent = four[0].extent
        scalars = [value for end in four for value in (end.first, *end.pitches)]
        sizes = work_sizes((extent[0] * extent[1], *extent[2:]), self.device.kind == "cpu")
        arguments = [source, target, *map(np.int64, (*scalars, *extent))]
        return self.kernel_command(self._copies[itemsize], arguments, sizes)

    def build(
        self, program: Program, stage: int, launch: Launch | None = None
    ) -> tuple[StageKernel, Built]:
        """The kernel of a stage for a launch, or else for a large box; compiled once.

        ValueError where the device lacks what strict arithmetic needs or the kernel does not
        suit the stage, BuildError where the driver does not compile.
        """
        described = program.stages[stage]
        source = stage_kernel(
            self.kernel, program, described, self.device, self.choices, launch, self.accessors
        )
        key = (source.name, source.source)
        if key not in self._kernels:
            title = source.title or source.name
            built = build(
                self.context, title, source.source, source.options, source.file, source.math
            )
            known = source.parameters or parameters(compiled(built, source.name), source.roles)
            self._kernels[key] = Built(source.name, built, known)
        return source, self._kernels[key]

    def configurations(
        self, program: Program, stage: int, boxes: Iterable[Placed], n_steps: int
    ) -> list[Configuration]:
        """How the kernels of `n_steps` steps of a stage are built, and launched on `boxes`."""
        device, name = self.device.name, program.stages[stage].name

        def kernel_of(placed: Placed) -> tuple[Configuration, WorkSizes]:
            launch = self.launch_of(program, stage, placed, n_steps)
            source, built = self.build(program, stage, launch)
            made = Configuration(device, name, built.name, source.origin, source.options)
            return made, source.work_sizes

        return with_launches(boxes, kernel_of, is_cpu=self.device.kind == "cpu")

    def usual_steps(self, program: Program, placed: Placed) -> int:
        """How many steps of a box of the first stage are best computed at once."""
        launch = self.launch_of(program, 0, placed, 1)
        return self.choices.usual_steps(program, program.stages[0], launch)

    def launch_of(
        self, program: Program, stage: int, placed: Placed, n_steps: int
    ) -> Launch:
        """What is known of a launch of `n_steps` time steps on this device."""
        device = self.device
        return launch_of(
            program, program.stages[stage], placed, n_steps,
            cache_bytes=device.cache_bytes, local_bytes=device.local_bytes,
            max_items=device.max_items, units=device.compute_units,
            nvidia="nvidia" in device.vendor.lower(),
        )  # fmt: skip

    def _constants(self, array: npt.NDArray[Any]) -> cl.Buffer:
        buffer = device_memory(self.context, self.ledger, array.nbytes, "constants")
        cl.enqueue_copy(self.compute, buffer, array)
        return buffer

    def constants_nbytes(self, program: Program, stage: int) -> int:
        """Bytes of tables that each launch of stage number `stage` takes."""
        tables = self.build(program, stage)[0].tables
        if tables is None:
            return 0
        return sum(array.nbytes for array in tables((1,) * program.n_axes).values())

    def clear(self, tile: Tile) -> None:
        """All of `tile` becomes 0, halo and padding too; no kernel may be using it."""
        if tile.host is not None:
            tile.host[...] = 0
            return
        assert tile.buffer is not None
        self._clearing.run(tile.buffer, tile.nbytes)

    def kernel_command(
        self,
        built: Built,
        arguments: Sequence[object],
        sizes: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> Command:
        """Launch `built` with these arguments, over global and local sizes in OpenCL's order."""
        kernel = compiled(built.program, built.name)
        kernel.set_args(*arguments)  # type: ignore[arg-type]
        queue, enqueue, (global_size, local_size) = self.compute, built.enqueue, sizes

        def command(
            wait_for: Sequence[Event] | None = None, keep: object = tuple(arguments)
        ) -> Event:
            # `keep`: a kernel does not hold the buffers that are its arguments
            return enqueue(queue, kernel, global_size, local_size, None, wait_for)

        return command

    def launch_once_command(
        self,
        kernel: SharedKernel,
        arguments: Sequence[object],
        sizes: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> Command:
        """The same with a kernel whose arguments are set at each call: cheaper to make."""
        queue, enqueue, (global_size, local_size) = self.compute, kernel.enqueue, sizes

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            with kernel.lock:
                kernel.kernel.set_args(*arguments)  # type: ignore[arg-type]
                return enqueue(queue, kernel.kernel, global_size, local_size, None, wait_for)

        return command

    def download_command(
        self, source: Linear, cells: Strided, target: npt.NDArray[Any]
    ) -> Command:
        """Copy contiguous cells of a buffer to `target`, contiguous host memory of that size."""
        return run_command(self.transfer, source, cells, target, to_device=False)

    def upload_command(
        self, source: npt.NDArray[Any], target: Linear, cells: Strided
    ) -> Command:
        """Copy `source`, contiguous host memory, to contiguous cells of a buffer."""
        return run_command(self.transfer, target, cells, source, to_device=True)

    def move_command(
        self, tile: Tile, image: npt.NDArray[Any], boxes: Sequence[Shape], *, to_device: bool
    ) -> Command:
        """Copy boxes of cells between a tile and its image, a flat array of the same geometry."""
        assert tile.buffer is not None, "an OpenCL tile"
        return in_order([
            box_command(self.transfer, tile.buffer, tile.strided(box), image, to_device=to_device)
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
        self.clock.add(clock_reading(self.transfer))

    def flush(self) -> None:
        """Let the device start on all that is enqueued."""
        self.compute.flush()
        self.transfer.flush()

    def wait(self, patience_s: float | None = None, keep: object = None) -> bool:
        """Block until the device has nothing left to do; False if it takes longer than that.

        Ctrl-C ends the wait.  `keep` is what commands use that may still be under way then.
        """

        def finish() -> object:
            labelled(f"kernels are waited for on {where(self.device)}", self.compute.finish)()
            self.transfer.finish()
            return keep

        return self.waiter.wait(finish, patience_s)
