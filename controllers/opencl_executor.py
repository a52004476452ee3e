# SPDX-License-Identifier: MIT
"""An executor owns one OpenCL device: its context, its queues, its kernels, its memory.

Commands are bound once and called often: a `*_command` method returns a function that
enqueues the command, with all arguments set, and returns its event at once.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.clock import Clock, Reading
from controllers.configuration import Configuration, Launch
from controllers.device import Device
from controllers.event import Command, Event
from controllers.kernel import Built, build, fixed_source, parameters
from controllers.kgt.cell import work_sizes
from controllers.parameter import bind
from controllers.program import Program
from controllers.rect_copy import rectangles
from controllers.registry import SPECIALISED, KernelChoice
from controllers.stage_kernel import StageKernel, box_values, stage_kernel, tile_values
from controllers.tile import Linear, Tile, aligned
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

CLOCK_TRIALS = 4
STAGGER = 5     # cache-line pairs between the starts of successive tiles, modulo a page
CELL_TYPES = {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}

# PyOpenCL's functions, with events of any kind
_enqueue_kernel: Callable[..., Event] = cl.enqueue_nd_range_kernel
_enqueue_copy: Callable[..., Event] = cl.enqueue_copy


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
        self._copies: dict[int, cl.Program] = {}
        self._n_tiles = 0
        self.clock = Clock(self._clock_reading())

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
        return cl.Buffer(self.context, cl.mem_flags.READ_WRITE, max(1, n_elements) * dtype.itemsize)

    def launch_command(
        self, program: Program, stage: int, reads: Mapping[str, Tile], written: Tile, over: Shape
    ) -> Command:
        """Compute the cells `over` of `written` by stage number `stage`; `over` is not empty."""
        source, built = self.build(program, stage)
        target = program.stages[stage].writes
        values: dict[str, object] = {**box_values(over), f"{target}_new": written.buffer}
        for field, tile in {target: written, **reads}.items():
            values |= tile_values(field, tile.strided(over))
        values |= {field: tile.buffer for field, tile in reads.items()}
        if source.tables is not None:
            tables = source.tables(written.strided(over).pitches)
            values |= {name: self._constants(array) for name, array in tables.items()}
        kernel = cl.Kernel(built.program, built.name)
        title = source.title or source.name
        arguments = bind(title, built.parameters, values, source.scalars)
        kernel.set_args(*arguments)  # type: ignore[arg-type]
        sizes = source.work_sizes(over.extent, self.device.kind == "cpu")
        return self._kernel_command(kernel, *sizes, keep=arguments)

    def copy_command(
        self, source: Linear, target: Linear, itemsize: int, move: tuple[Strided, Strided]
    ) -> Command:
        """Copy one box of cells between two buffers of this controller."""
        if itemsize not in self._copies:
            options = [f"-DCELL={CELL_TYPES[itemsize]}"]
            text = fixed_source("copy_box")
            self._copies[itemsize] = build(self.context, "copy_box", text, options)
        kernel = cl.Kernel(self._copies[itemsize], "copy_box")
        four = [_four_axes(end) for end in move]
        extent = four[0].extent
        scalars = [value for end in four for value in (end.first, *end.pitches)]
        kernel.set_args(source, target, *map(np.int64, (*scalars, *extent)))
        sizes = work_sizes((extent[0] * extent[1], *extent[2:]), self.device.kind == "cpu")
        return self._kernel_command(kernel, *sizes, keep=[source, target])

    def build(self, program: Program, stage: int) -> tuple[StageKernel, Built]:
        """The kernel of a stage, compiled once.

        ValueError where the device lacks what strict arithmetic needs or the kernel does not
        suit the stage, BuildError where the driver does not compile.
        """
        source = stage_kernel(self.kernel, program, program.stages[stage], self.device)
        key = (source.name, source.source)
        if key not in self._kernels:
            title = source.title or source.name
            built = build(self.context, title, source.source, source.options, source.file)
            known = source.parameters or parameters(cl.Kernel(built, source.name), source.roles)
            self._kernels[key] = Built(source.name, built, known)
        return source, self._kernels[key]

    def configuration(
        self, program: Program, stage: int, boxes: Iterable[Shape]
    ) -> Configuration:
        """How the kernel of a stage is built, and how it is launched on `boxes`."""
        source, built = self.build(program, stage)
        is_cpu = self.device.kind == "cpu"
        return Configuration(
            self.device.name,
            program.stages[stage].name,
            built.name,
            source.origin,
            source.options,
            Launch.of_boxes(boxes, source.work_sizes, is_cpu),
        )

    def _constants(self, array: npt.NDArray[Any]) -> cl.Buffer:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=array)

    def _kernel_command(
        self,
        kernel: cl.Kernel,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...],
        keep: Sequence[object],
    ) -> Command:
        queue, enqueue = self.compute, _enqueue_kernel

        def command(wait_for: Sequence[Event] | None = None, keep: object = tuple(keep)) -> Event:
            # `keep`: a kernel does not hold the buffers that are its arguments
            return enqueue(queue, kernel, global_size, local_size, None, wait_for)

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

    def read_clock(self) -> None:
        """Compare the device's clock, which events are timed by, with the host's; some 0.5 ms."""
        self.clock.add(self._clock_reading())

    def _clock_reading(self) -> Reading:
        readings = []
        for _ in range(CLOCK_TRIALS):
            called = time.perf_counter_ns()
            marker = cl.enqueue_marker(self.transfer)
            returned = time.perf_counter_ns()
            marker.wait()
            done = time.perf_counter_ns()
            times = marker.profile
            readings.append(
                Reading.of_command(times.queued, times.start, times.end, called, returned, done)
            )
        return min(readings, key=lambda reading: reading.error_ns)

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
