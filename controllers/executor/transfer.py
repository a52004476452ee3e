# SPDX-License-Identifier: MIT
"""Copies between host arrays and device memory, as OpenCL commands of one lane or queue."""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy.typing as npt
import pyopencl as cl

from controllers.device.event import Command, Event, in_order
from controllers.executor.clock import Reading
from controllers.executor.lane import Lane
from controllers.executor.rect_copy import rectangles
from controllers.memory.tile import Linear
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

CLOCK_TRIALS = 4

# PyOpenCL's function, with events of any kind
_enqueue_copy: Callable[..., Event] = cl.enqueue_copy


def run_command(
    lane: Lane, buffer: Linear, cells: Strided, array: npt.NDArray[Any],
    *, to_device: bool,
) -> Command:  # fmt: skip
    """Copy between cells of a buffer and a contiguous host array of that size."""
    if not cells.contiguous:
        dense = Geometry.dense(Shape.of_extent(cells.extent)).strided(Shape.of_extent(cells.extent))
        return _rectangles(lane, buffer, array, cells, dense, to_device=to_device)
    offset = {"dst_offset" if to_device else "src_offset": cells.first * array.itemsize}
    target, source = (buffer, array) if to_device else (array, buffer)

    def command(wait_for: Sequence[Event] | None = None) -> Event:
        return _enqueue_copy(
            lane.queue, target, source, is_blocking=False, wait_for=wait_for, **offset
        )

    return command


def run_on_device(
    lane: Lane, source: Linear, target: Linear, here: int, there: int, nbytes: int
) -> Command:  # fmt: skip
    """Copy so many bytes between two buffers, or within one, where they must not overlap."""

    def command(wait_for: Sequence[Event] | None = None) -> Event:
        return _enqueue_copy(
            lane.queue, target, source, src_offset=here, dst_offset=there, byte_count=nbytes,
            wait_for=wait_for,
        )  # fmt: skip

    return command


def box_command(
    lane: Lane, buffer: cl.Buffer, cells: Strided, image: npt.NDArray[Any],
    *, to_device: bool,
) -> Command:  # fmt: skip
    """Copy a box between a buffer and `image`, a flat host array in which it lies alike."""
    if cells.contiguous:
        part = image[cells.first : cells.first + cells.n_cells]
        return run_command(lane, buffer, cells, part, to_device=to_device)
    return _rectangles(lane, buffer, image, cells, cells, to_device=to_device)


def between_command(
    lane: Lane, buffer: Linear, array: npt.NDArray[Any], there: Strided, here: Strided,
    *, to_device: bool,
) -> Command:  # fmt: skip
    """Copy a box between a buffer, where it lies `there`, and a flat array, where `here`."""
    if here.contiguous:
        part = array[here.first : here.first + here.n_cells]
        return run_command(lane, buffer, there, part, to_device=to_device)
    return _rectangles(lane, buffer, array, there, here, to_device=to_device)


def _rectangles(
    lane: Lane, buffer: Linear, array: npt.NDArray[Any], there: Strided, here: Strided,
    *, to_device: bool,
) -> Command:  # fmt: skip
    """Copy a box between a buffer, where it lies `there`, and a flat host array."""
    target, source = (buffer, array) if to_device else (array, buffer)

    def rectangle(copy: dict[str, object]) -> Command:
        def command(wait_for: Sequence[Event] | None = None) -> Event:
            return _enqueue_copy(
                lane.queue, target, source, is_blocking=False, wait_for=wait_for, **copy
            )

        return command

    return in_order([rectangle(copy) for copy in rectangles(there, here, array.itemsize)])


def copy_box(
    queue: cl.CommandQueue, buffer: cl.Buffer, cells: Strided, array: npt.NDArray[Any],
    *, to_device: bool,
) -> None:  # fmt: skip
    """Copy a box between a buffer and a dense host array of its extent; returns when it is."""
    box = Shape.of_extent(cells.extent)
    dense = Geometry.dense(box).strided(box)
    target, source = (buffer, array) if to_device else (array, buffer)
    for copy in rectangles(cells, dense, array.itemsize):
        _enqueue_copy(queue, target, source, **copy)


def clock_reading(queue: cl.CommandQueue) -> Reading:
    """What the device's clock, which events are timed by, and the host's say; some 0.5 ms."""
    readings = []
    for _ in range(CLOCK_TRIALS):
        called = time.perf_counter_ns()
        marker = cl.enqueue_marker(queue)
        returned = time.perf_counter_ns()
        marker.wait()
        done = time.perf_counter_ns()
        times = marker.profile
        readings.append(
            Reading.of_command(times.queued, times.start, times.end, called, returned, done)
        )
    return min(readings, key=lambda reading: reading.error_ns)
