# SPDX-License-Identifier: MIT
"""Loops in PyOpenCL without the library: one cell per work-item, and the device's own copy.

All of a device share two buffers.  Kernels have strict arithmetic.
"""
from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.bench.comparator import Comparator
from controllers.bench.problem import Problem
from controllers.device import Device
from controllers.kernel.build import build
from controllers.kernel.stage_kernel import box_values, tile_values
from controllers.kgt import Launch, choose, generate
from controllers.kgt.kernel import StageKernel
from controllers.kgt.parameter import bind
from controllers.kgt.text.emitter import OPENCL_TYPES, assignment, divides
from controllers.language.weights import Stencil
from controllers.memory.tile import aligned
from controllers.program.program import Program
from hitmap.shape import Shape
from hitmap.strided import Geometry

GROUP = (64, 4, 1)      # work-items of a hand-written GPU kernel's work-group


class Buffers:
    """The old and the new level of a problem's field on a device, dense."""

    def __init__(self, device: Device, problem: Problem) -> None:
        assert device.handle is not None, "an OpenCL device"
        self.device, self.problem = device, problem
        self.context = cl.Context([device.handle])
        self.queue = cl.CommandQueue(self.context, device.handle)
        self.geometry = Geometry.dense(problem.domain)

    @cached_property
    def levels(self) -> list[cl.Buffer]:
        """Allocated at the first use."""
        writable, in_place = cl.mem_flags.READ_WRITE, cl.mem_flags.USE_HOST_PTR
        if not self.device.shares_host:
            return [cl.Buffer(self.context, writable, self.problem.nbytes) for _ in range(2)]
        count, dtype = self.geometry.n_elements, np.dtype(self.problem.dtype)
        arrays = [aligned(count, dtype, 5 * number) for number in (1, 2)]   # staggered, as tiles
        return [cl.Buffer(self.context, writable | in_place, hostbuf=array) for array in arrays]

    def load(self) -> None:
        """Both levels hold the initial field."""
        for level in self.levels:
            cl.enqueue_copy(self.queue, level, self.problem.initial)

    def result(self, level: int) -> npt.NDArray[Any]:
        """The field as it is in a level."""
        field = np.empty(self.problem.extent, self.problem.dtype)
        cl.enqueue_copy(self.queue, field, self.levels[level])
        return field

    def generated(self, kernel: StageKernel, over: Shape) -> list[cl.Kernel]:
        """The kernel over a box, from level 0 to 1 and from 1 to 0, its arguments set."""
        options = self.device.strict_options(self.problem.dtype, kernel.divides)
        program = build(self.context, kernel.name, kernel.source, options)
        where = {**box_values(over), **tile_values("u", self.geometry.strided(over))}
        both = [cl.Kernel(program, kernel.name) for _ in range(2)]
        for number, one in enumerate(both):
            values = {"u": self.levels[number], "u_new": self.levels[1 - number], **where}
            arguments = bind(kernel.name, kernel.parameters, values, kernel.scalars)
            one.set_args(*arguments)  # type: ignore[arg-type]
        return both


class Loop(Comparator):
    """Steps that swap the two levels."""

    exact = True

    def __init__(self, buffers: Buffers) -> None:
        self._buffers = buffers
        self._level = 0     # that holds the field

    def prepare(self, problem: Problem) -> None:
        assert problem == self._buffers.problem, "the problem of its buffers"
        self._buffers.load()
        self._level = 0
        self._build()

    def _build(self) -> None:
        raise NotImplementedError

    def result(self) -> npt.NDArray[Any]:
        return self._buffers.result(self._level)


class OneCell(Loop):
    """The generated kernel of one cell per work-item, launched with its arguments set."""

    name = "one-cell kernel"
    configuration = "strategy 'cell'"

    def _build(self) -> None:
        program = self._buffers.problem.program
        box = self._buffers.problem.box
        kernel = generate(program, program.stages[0])
        self._kernels = self._buffers.generated(kernel, box)
        self._sizes = kernel.work_sizes(box.extent, self._buffers.device.kind == "cpu")

    def run(self, n_steps: int) -> None:
        queue, sizes = self._buffers.queue, self._sizes
        for _ in range(n_steps):
            cl.enqueue_nd_range_kernel(queue, self._kernels[self._level], *sizes)
            self._level = 1 - self._level
        queue.finish()


class HandWritten(Loop):
    """The loop that one would write: arguments set at each step, one cell per work-item.

    On a GPU with work-groups of 64 x 4 and a test of bounds; on a CPU, where a test would stop the
    vectoriser, with the driver's own work-groups.
    """

    name = "hand-written PyOpenCL"
    configuration = "one cell per work-item"

    def _build(self) -> None:
        buffers, program = self._buffers, self._buffers.problem.program
        source = handwritten_source(buffers.problem, tests_bounds=buffers.device.kind != "cpu")
        options = buffers.device.strict_options(
            program.dtype, divides(program.stages[0], program.dtype)
        )
        self._kernel = cl.Kernel(build(buffers.context, "sweep", source, options), "sweep")

    def run(self, n_steps: int) -> None:
        queue, kernel = self._buffers.queue, self._kernel
        pitches = [np.int64(pitch) for pitch in self._buffers.geometry.pitches[:-1]]
        sizes = self._sizes()
        for _ in range(n_steps):
            old, new = self._level, 1 - self._level
            kernel.set_args(self._buffers.levels[old], self._buffers.levels[new], *pitches)
            cl.enqueue_nd_range_kernel(queue, kernel, *sizes)
            self._level = new
        queue.finish()

    def _sizes(self) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
        over = self._buffers.problem.box.extent[::-1]
        if self._buffers.device.kind == "cpu":
            return over, None
        group = GROUP[: len(over)]
        return tuple(-(-n // size) * size for n, size in zip(over, group)), group


def handwritten_source(problem: Problem, tests_bounds: bool) -> str:
    """One cell per work-item, the global id counted from the first cell that is computed."""
    program, cell = problem.program, OPENCL_TYPES[problem.dtype]
    n_axes = program.n_axes
    pitches = "".join(f", const long u_pitch_{axis}" for axis in range(n_axes - 1))
    terms = [
        f"(get_global_id({n_axes - 1 - axis}) + {first})"
        + (f" * u_pitch_{axis}" if axis < n_axes - 1 else "")
        for axis, first in enumerate(problem.box.lower)
    ]
    outside = " || ".join(
        f"get_global_id({n_axes - 1 - axis}) >= {n}" for axis, n in enumerate(problem.box.extent)
    )
    return "\n".join([
        "#pragma OPENCL FP_CONTRACT OFF",
        f"__kernel void sweep(__global const {cell} *restrict u, "
        f"__global {cell} *restrict u_new{pitches})",
        "{",
        *([f"    if ({outside}) return;"] if tests_bounds else []),
        f"    const long c = {' + '.join(terms)};",
        *(f"    {line}" for line in assignment("u_new[c]", program.stages[0], problem.dtype)),
        "}",
        "",
    ])  # fmt: skip


class BufferCopy(Loop):
    """The driver's copy of one level to the other."""

    name = "copy by the driver"

    def _build(self) -> None:
        pass

    def run(self, n_steps: int) -> None:
        old, new = self._buffers.levels
        for _ in range(n_steps):
            cl.enqueue_copy(self._buffers.queue, new, old)
        self._buffers.queue.finish()


class KernelCopy(Loop):
    """A generated kernel that copies: on CPUs its stores go past the caches, where that pays."""

    name = "copy by a kernel"

    def _build(self) -> None:
        device, geometry = self._buffers.device, self._buffers.geometry
        problem, n_axes = self._buffers.problem, len(self._buffers.problem.extent)
        program: Program = Stencil.of("copy", [(0, 0)] * n_axes, [1], 1).program(problem.dtype)
        cells = geometry.strided(problem.domain)
        launch = Launch({"u": cells}, 2 * problem.nbytes > device.cache_bytes)
        kernel = generate(
            program, program.stages[0], choose(program, program.stages[0], device.kind, launch)
        )
        self._kernel = self._buffers.generated(kernel, problem.domain)[0]
        self._sizes = kernel.work_sizes(cells.extent, device.kind == "cpu")

    def run(self, n_steps: int) -> None:
        for _ in range(n_steps):
            cl.enqueue_nd_range_kernel(self._buffers.queue, self._kernel, *self._sizes)
        self._buffers.queue.finish()
