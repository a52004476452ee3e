# SPDX-License-Identifier: MIT
"""Checks that a user's kernel keeps to what its stencil declares: one cell written, no other read.

Halos, messages and dependencies follow from the declaration alone, so a kernel that reads
beyond it would give results that depend on how the field is divided.  The kernel is run on
small fields of random numbers, on the device itself, and what it must not read is changed.
"""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import pyopencl as cl

from controllers.device.event import Command
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.variant import Kernel
from controllers.memory.tile import Tile
from controllers.program.program import INTEGERS, Program
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Geometry, dense_pitches

Array = npt.NDArray[Any]
MARGIN = 3              # cells beyond the declared reads, on each side
BOX = 3                 # cells per axis of a box in which the cell must come out the same
GUARD = 4096            # elements before and behind, for what is read further away
PADDING = 61            # elements at the end of each row: what lies there has no offset
MAX_ELEMENTS = 1 << 24
MAX_FIELDS = 16         # fewer where the scratch is large
MAX_LISTED = 9          # offsets in a message
SEED = 2024


class KernelError(ValueError):
    """A kernel that does other than its stencil declares; says kernel, device and offset."""


def check_kernel(controller: OpenCLExecutor, program: Program, kernel: Kernel) -> None:
    """Raise `KernelError` where `kernel`, which `controller` runs, breaks what `program` declares.

    A sample, not a proof: some random fields, one cell, and one box of cells.
    """
    n_elements = _geometry(program, Shape.of_extent((BOX,) * program.n_axes)).n_elements
    if n_elements > MAX_ELEMENTS:
        warnings.warn(
            f"kernel {kernel.name!r} is not checked: its stencil reads too far away", stacklevel=2
        )
        return
    scratch = _Scratch(controller, program, kernel)
    for old in scratch.fields():
        value = _check_writes(scratch, old)
        _check_reads(scratch, old, value)
        _check_box(scratch, old, value)


class _Scratch:
    """The memory to run on; arrays stand for all of a tile's elements, guards and padding too."""

    def __init__(self, controller: OpenCLExecutor, program: Program, kernel: Kernel) -> None:
        (field,) = program.fields
        self.kernel, self.controller, self.program = kernel, controller, program
        self.field = field.name
        self.dtype = np.dtype(program.dtype)
        self.rng = np.random.default_rng(SEED)
        first = tuple(low for low, _ in program.reach)  # near the field's first cell
        self.cell = Shape(first, tuple(at + 1 for at in first))
        self.box = self.cell.grow((0,) * program.n_axes, (BOX - 1,) * program.n_axes)
        self.geometry = _geometry(program, self.box)
        n = self.geometry.n_elements
        self._old, self._new = (
            Tile(self.geometry, self.dtype, None, controller.device_staging(n, self.dtype))
            for _ in range(2)
        )
        self._commands: dict[Shape, Command] = {}

    def element(self, cell: Shape) -> int:
        """The element of a box's first cell."""
        return self.geometry.strided(cell).first

    def declared(self) -> list[int]:
        """The elements that the cell may read."""
        cells = (self.cell.shift(offset) for offset in self.program.offsets(self.field))
        return [self.element(cell) for cell in cells]

    def offset(self, element: int) -> str:
        """Where an element lies, seen from the cell."""
        rest, at = element, []
        for pitch, origin in zip(self.geometry.pitches, self.geometry.box.lower):
            step, rest = divmod(rest, pitch)
            at.append(step + origin)
        found = Shape(tuple(at), tuple(n + 1 for n in at))
        if found not in self.geometry.box:
            distance = element - self.element(self.cell)
            return f"{abs(distance)} elements {'before' if distance < 0 else 'behind'} its cell"
        return f"at the offset {tuple(a - b for a, b in zip(at, self.cell.lower))}"

    def fields(self) -> Iterator[Array]:
        """Random old levels: small numbers and large ones in turn, to take both ways of an `if`."""
        n = self.geometry.n_elements
        for _ in range(max(1, min(MAX_FIELDS, MAX_FIELDS * 2**18 // n) // 2)):
            small = self.rng.integers(0, 100, n)
            yield (small if self.program.dtype in INTEGERS else small / 100).astype(self.dtype)
            yield self.other()

    def other(self) -> Array:
        """Other numbers, to see whether they matter."""
        n = self.geometry.n_elements
        if self.program.dtype in INTEGERS:
            info = np.iinfo(self.dtype)
            return self.rng.integers(info.min, info.max, n, self.dtype, endpoint=True)
        return (self.rng.standard_normal(n) * 1e3).astype(self.dtype)

    def run(self, old: Array, new: Array, over: Shape) -> Array:
        """The new level after the kernel has computed `over`; it held `new` before."""
        if over not in self._commands:
            launch = self.controller.launch_command
            sweep = Sweep.of(self.program.stages[0], over)
            self._commands[over] = launch(
                self.program, sweep, {self.field: self._old}, {self.field: self._new}, over
            )
        assert self._old.buffer is not None and self._new.buffer is not None
        queue, result = self.controller.compute, np.empty_like(new)
        cl.enqueue_copy(queue, self._old.buffer, old)
        cl.enqueue_copy(queue, self._new.buffer, new)
        self._commands[over](None)
        cl.enqueue_copy(queue, result, self._new.buffer)
        return result

    def refuse(self, what: str, remedy: str) -> NoReturn:
        """Raise the error."""
        device = self.controller.device
        file = self.kernel.variant(device).source.file
        where = f" ({file})" if file else ""
        raise KernelError(
            f"kernel {self.kernel.name!r}{where} on {device.name!r} {what}; {remedy}"
        )


def _geometry(program: Program, box: Shape) -> Geometry:
    """A tile around `box`: what is declared, a margin, padded rows, guards before and behind."""
    low, high = zip(*program.reach)
    near = box.grow(tuple(n + MARGIN for n in low), tuple(n + MARGIN for n in high))
    *outer, row = near.extent
    pitches = dense_pitches((*outer, row + PADDING)) if outer else (1,)
    guards = -(-GUARD // pitches[0])
    zeros = (0,) * (program.n_axes - 1)
    return Geometry(near.grow((guards, *zeros), (guards, *zeros)), pitches)


def _check_writes(scratch: _Scratch, old: Array) -> np.generic:
    """The value of the cell; the kernel sets it, and no other, whatever was there before."""
    at = scratch.element(scratch.cell)
    before = scratch.other()
    after = before + before.dtype.type(1)   # differs everywhere
    results = [scratch.run(old, new, scratch.cell) for new in (before, after)]
    kept = [_bits(result) == _bits(new) for result, new in zip(results, (before, after))]
    _only_written(scratch, kept[0] & kept[1], [at])
    first, second = (result[at] for result in results)
    if kept[0][at] and kept[1][at]:
        scratch.refuse("does not set its cell", f"write NEW({scratch.field})")
    if first.tobytes() != second.tobytes():
        scratch.refuse(
            f"gives a result that depends on what {scratch.field}_new held before",
            "set the cell in every case, and do not read it",
        )
    value: np.generic = first
    return value


def _check_reads(scratch: _Scratch, old: Array, value: np.generic) -> None:
    """The value does not change with any element that is not declared."""
    at, new = scratch.element(scratch.cell), scratch.other()
    free = np.delete(np.arange(old.size), scratch.declared())

    def differs(other: Array, count: int) -> bool:
        changed = old.copy()
        changed[free[:count]] = other[free[:count]]
        return bool(scratch.run(changed, new, scratch.cell)[at].tobytes() != value.tobytes())

    others = [scratch.other()]
    if scratch.dtype.kind == "f":
        others.append(np.full_like(old, np.nan))    # shows reads that are multiplied by 0, too
    for other in others:
        if differs(other, free.size):
            harmless, harmful = 0, free.size
            while harmful - harmless > 1:
                middle = (harmless + harmful) // 2
                if differs(other, middle):
                    harmful = middle
                else:
                    harmless = middle
            declared = scratch.program.offsets(scratch.field)
            offsets = ", ".join(map(str, declared[:MAX_LISTED]))
            more = ", ..." if len(declared) > MAX_LISTED else ""
            scratch.refuse(
                f"reads {scratch.field} {scratch.offset(int(free[harmless]))}, which the pattern "
                f"does not declare (it has {offsets}{more})",
                "give the pattern a weight there, or do not read it",
            )


def _check_box(scratch: _Scratch, old: Array, value: np.generic) -> None:
    """The cell comes out the same in a larger box, and all cells of that are set."""
    new = scratch.other()
    result = scratch.run(old, new, scratch.box)
    where = scratch.geometry.strided(scratch.box)
    elements = where.view(np.arange(new.size)).ravel()
    _only_written(scratch, _bits(result) == _bits(new), elements)
    last = Shape(tuple(n - 1 for n in scratch.box.upper), scratch.box.upper)
    alone = scratch.run(old, new, last)
    for cell, expected in ((scratch.cell, value), (last, alone[scratch.element(last)])):
        if result[scratch.element(cell)].tobytes() != expected.tobytes():
            scratch.refuse(
                "computes a cell differently in a box of its own and in a larger one",
                "let it depend on nothing but the cell's neighbours and coordinates",
            )


def _only_written(scratch: _Scratch, kept: npt.NDArray[np.bool_], allowed: Any) -> None:
    kept = kept.copy()
    kept[allowed] = True
    if not kept.all():
        offset = scratch.offset(int(np.argmin(kept)))
        scratch.refuse(
            f"writes {scratch.field}_new {offset}",
            f"a work-item sets its own cell only, NEW({scratch.field})",
        )


def _bits(array: Array) -> Array:
    return array.view(f"u{array.itemsize}")
