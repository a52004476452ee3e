# SPDX-License-Identifier: MIT
"""An executor owns one OpenCL device: its context, its queues, its kernels, its memory.

Commands are bound once and called often: a `*_command` method returns a function that
enqueues the command, with all arguments set, and returns its event at once.
"""
from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.device import Device
from controllers.event import Command, Event, in_order
from controllers.kernel import Built, build, compiled, fixed_source, parameters
from controllers.kgt import Launch
from controllers.kgt.cell import work_sizes
from controllers.parameter import bind
from controllers.program import Program
from controllers.rect_copy import rectangles
from controllers.registry import SPECIALISED, KernelChoice
from controllers.stage_kernel import StageKernel, box_values, stage_kernel, tile_values
from controllers.tile import Linear, Tile, aligned
from hitmap.shape import Shape
from hitmap.strided import PITCH_MULTIPLE, Geometry, Strided

STAGGER = 5     # cache-line pairs between the starts of successive tiles, modulo a page
CELL_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}

# PyOpenCL's functions, with events of any kind
_enqueue_kernel: Callable[..., Event] = cl.enqueue_nd_range_kernel
_enqueue_copy: Callable[..., Event] = cl.enqueue_copy


class SharedKernel:
    """A kernel that is launched with other arguments each time, perhaps by several threads."""

    def __init__(self, built: Built) -> None:
        self.kernel = cl.Kernel(built.program, built.name)
        self.lock = threading.Lock()    # from the arguments to the launch


class OpenCLExecutor:
    """One device: an in-order queue for kernels, another one for transfers.

    Where the device shares the host's memory, tiles are host arrays that kernels use in
    place; elsewhere they are internal, and `staging` is pinned.
    """

    def __init__(
        self, device: Device, *, zero_copy: bool = True, kernel: KernelChoice = SPECIALISED
    ) -> None:
        assert device.handle is not None, "an OpenCL device"
        self.device = device
        self.kernel = kernel    # how stages are computed
        self.shares_host = device.shares_host and zero_copy
        self.context = cl.Context([device.handle])
        profiling = cl.command_queue_properties.PROFILING_ENABLE
        self.compute = cl.CommandQueue(self.context, properties=profiling)
        self.transfer = cl.CommandQueue(self.context, properties=profiling)
        self._kernels: dict[tuple[str, str], Built] = {}
        self._copies: dict[int, Built] = {}
        self._n_tiles = 0
        self._cache_nbytes = device.handle.global_mem_cache_size

    def __repr__(self) -> str:
        return f"<OpenCLExecutor {self.device.name!r}>"

    def tile(self, geometry: Geometry, dtype: np.dtype[Any]) -> Tile:
        """A new tile, zeroed."""
        self._n_tiles += 1
        if self.shares_host:
            host = aligned(geometry.n_elements, dtype, STAGGER * self._n_tiles)
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
            return Tile(geometry, dtype, host, cl.Buffer(self.context, flags, hostbuf=host))
        tile = Tile(geometry, dtype, None, self.device_staging(geometry.n_elements, dtype))
        assert tile.buffer is not None
        zero = np.zeros(1, np.uint8)
        cl.enqueue_fill_buffer(self.compute, tile.buffer, zero, 0, tile.nbytes).wait()
        return tile

    def staging(self, n_elements: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """Host memory for packed cells: pinned where that makes transfers faster."""
        if self.shares_host:
            return aligned(n_elements, dtype)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        pinned = cl.Buffer(self.context, flags, n_elements * dtype.itemsize)
        access: Any = cl.map_flags.READ | cl.map_flags.WRITE
        array: npt.NDArray[Any]
        array, _ = cl.enqueue_map_buffer(self.transfer, pinned, access, 0, (n_elements,), dtype)
        return array

    def device_staging(self, n_elements: int, dtype: np.dtype[Any]) -> cl.Buffer:
        """Device memory for packed cells."""
        whole = -(-max(1, n_elements) // PITCH_MULTIPLE) * PITCH_MULTIPLE     # for the last vector
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, whole * dtype.itemsize)

    def launch_command(
        self, program: Program, stage: int, reads: Mapping[str, Tile], written: Tile, over: Shape
    ) -> Command:
        """Compute the cells `over` of `written` by stage number `stage`; `over` is not empty."""
        target = program.stages[stage].writes
        where = {field: t.strided(over) for field, t in {target: written, **reads}.items()}
        nbytes = written.nbytes + sum(tile.nbytes for tile in reads.values())
        launch = Launch(where, exceeds_cache=nbytes > self._cache_nbytes)
        source, built = self.build(program, stage, launch)
        values: dict[str, object] = {**box_values(over), f"{target}_new": written.buffer}
        for field, cells in where.items():
            values |= tile_values(field, cells)
        values |= {field: tile.buffer for field, tile in reads.items()}
        if source.tables is not None:
            tables = source.tables(written.strided(over).pitches)
            values |= {name: self._constants(array) for name, array in tables.items()}
        title = source.title or source.name
        arguments = bind(title, built.parameters, values, source.scalars)
        sizes = source.work_sizes(over.extent, self.device.kind == "cpu")
        return self.kernel_command(built, arguments, sizes)

    def copy_command(
        self, source: Linear, target: Linear, itemsize: int, move: tuple[Strided, Strided]
    ) -> Command:
        """Copy one box of cells between two buffers of this controller."""
        if itemsize not in self._copies:
            options = [f"-DCELL={CELL_TYPES[itemsize]}"]
            text = fixed_source("copy_box")
            built = build(self.context, "copy_box", text, options)
            self._copies[itemsize] = Built("copy_box", built, ())
        four = [_four_axes(end) for end in move]
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
        source = stage_kernel(
            self.kernel, program, program.stages[stage], self.device, launch
        )
        key = (source.name, source.source)
        if key not in self._kernels:
            title = source.title or source.name
            built = build(self.context, title, source.source, source.options, source.file)
            known = source.parameters or parameters(compiled(built, source.name), source.roles)
            self._kernels[key] = Built(source.name, built, known)
        return source, self._kernels[key]

    def _constants(self, array: npt.NDArray[Any]) -> cl.Buffer:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=array)

    def kernel_command(
        self,
        built: Built,
        arguments: Sequence[object],
        sizes: tuple[tuple[int, ...], tuple[int, ...]],
    ) -> Command:
        """Launch `built` with these arguments, over global and local sizes in OpenCL's order."""
        kernel = cl.Kernel(built.program, built.name)
        kernel.set_args(*arguments)  # type: ignore[arg-type]
        queue, enqueue, (global_size, local_size) = self.compute, _enqueue_kernel, sizes

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
        queue, enqueue, (global_size, local_size) = self.compute, _enqueue_kernel, sizes

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            with kernel.lock:
                kernel.kernel.set_args(*arguments)  # type: ignore[arg-type]
                return enqueue(queue, kernel.kernel, global_size, local_size, None, wait_for)

        return command

    def download_command(
        self, source: Linear, cells: Strided, target: npt.NDArray[Any]
    ) -> Command:
        """Copy contiguous cells of a buffer to `target`, contiguous host memory of that size."""
        offset = cells.first * target.itemsize

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            return _enqueue_copy(
                self.transfer, target, source,
                src_offset=offset, is_blocking=False, wait_for=wait_for,
            )

        return command

    def upload_command(
        self, source: npt.NDArray[Any], target: Linear, cells: Strided
    ) -> Command:
        """Copy `source`, contiguous host memory, to contiguous cells of a buffer."""
        offset = cells.first * source.itemsize

        def command(wait_for: Sequence[Event] | None = None) -> Event:
            return _enqueue_copy(
                self.transfer, target, source,
                dst_offset=offset, is_blocking=False, wait_for=wait_for,
            )

        return command

    def move_command(
        self, tile: Tile, image: npt.NDArray[Any], boxes: Sequence[Shape], *, to_device: bool
    ) -> Command:
        """Copy boxes of cells between a tile and its image, a flat array of the same geometry."""
        parts = [self._box_command(tile, image, tile.strided(box), to_device) for box in boxes]
        return in_order(parts)

    def _box_command(
        self, tile: Tile, image: npt.NDArray[Any], cells: Strided, to_device: bool
    ) -> Command:
        assert tile.buffer is not None, "an OpenCL tile"
        if cells.contiguous:
            part = image[cells.first : cells.first + cells.n_cells]
            if to_device:
                return self.upload_command(part, tile.buffer, cells)
            return self.download_command(tile.buffer, cells, part)
        target, source = (tile.buffer, image) if to_device else (image, tile.buffer)
        copies = rectangles(cells, cells, image.itemsize)

        def rectangle(copy: dict[str, object]) -> Command:
            def command(wait_for: Sequence[Event] | None = None) -> Event:
                return _enqueue_copy(
                    self.transfer, target, source, is_blocking=False, wait_for=wait_for, **copy
                )

            return command

        return in_order([rectangle(copy) for copy in copies])

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
        dense = Geometry.dense(cells).strided(cells)
        for copy in rectangles(tile.strided(cells), dense, source.itemsize):
            _enqueue_copy(self.transfer, tile.buffer, source, **copy)

    def move_from(self, tile: Tile, cells: Shape) -> npt.NDArray[Any]:
        """Device to host: the cells `cells` of `tile` as a new array; no kernel writes them."""
        target = np.empty(cells.extent, tile.dtype)
        if tile.host is not None:
            target[...] = tile.view(cells)
            return target
        assert tile.buffer is not None
        dense = Geometry.dense(cells).strided(cells)
        for copy in rectangles(tile.strided(cells), dense, target.itemsize):
            _enqueue_copy(self.transfer, target, tile.buffer, **copy)
        return target

    def flush(self) -> None:
        """Let the device start on all that is enqueued."""
        self.compute.flush()
        self.transfer.flush()

    def wait(self) -> None:
        """Block until the device has nothing left to do."""
        self.compute.finish()
        self.transfer.finish()


def _four_axes(where: Strided) -> Strided:
    missing = 4 - len(where.extent)
    return Strided(where.first, (0,) * missing + where.pitches, (1,) * missing + where.extent)
