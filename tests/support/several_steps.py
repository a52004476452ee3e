# SPDX-License-Identifier: MIT
"""Cases for kernels of several steps: a box, the cells that are computed, and what must come out.

The fields lie in memory that holds no element more than such a kernel may read, with NaN between
the rows; what it writes is compared as a whole, so that a cell too many is seen as well.
"""
from __future__ import annotations

import ctypes
import mmap
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from random_trees import random_tree

from controllers.program.expression import Read, reads
from controllers.program.following import leader, leading
from controllers.program.mirrors import Mirrors
from controllers.program.program import Field, Program, Stage
from controllers.program.reference import values_of
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

Array = npt.NDArray[Any]
FAR = 10**6


@dataclass(frozen=True)
class Case:
    """`box` is written after `steps` steps; only the cells of `computed` change at all."""

    program: Program
    steps: int
    box: Shape
    computed: Shape
    geometry: dict[str, Geometry]
    cells: dict[str, Array]     # the memory of each field

    @property
    def stage(self) -> Stage:
        return self.program.stages[0]

    def where(self, field: str) -> Strided:
        """Where the cells of the box lie, or would lie, in a field."""
        geometry = self.geometry[field]
        return Strided(geometry.element(self.box.lower), geometry.pitches, self.box.extent)

    def expected(self, before: Array, field: str = "") -> Array:
        """The memory of a field that is written, by default that which leads; it held `before`."""
        field = field or leader(self.stage)
        own, earlier = self._stepped()
        found = own if field == leader(self.stage) else earlier
        result = before.copy()
        self.geometry[field].strided(self.box).view(result)[...] = found
        return result

    def _stepped(self) -> tuple[Array, Array]:
        """The box of the leading field after the steps, and before the last one."""
        stage, steps, reach = leading(self.stage), self.steps, own_reach(self.stage)
        own = self._view(stage.writes, self.geometry[stage.writes].box).copy()
        origin = self.geometry[stage.writes].box.lower
        old = own
        for step in range(steps):
            rest = steps - step - 1
            changed = self.computed & _grown(self.box, reach, rest)
            earlier, old = old if step else None, own.copy()

            def read(
                node: Read, old: Array = old, changed: Shape = changed,
                earlier: Array | None = earlier,
            ) -> Array:  # fmt: skip
                at = changed.shift(node.offset)
                if node.field == stage.writes:
                    return old[at.slices(origin)]
                if earlier is not None and node.field in self.stage.follows:
                    return earlier[at.slices(origin)]
                return self._view(node.field, at)

            own[changed.slices(origin)] = values_of(stage.expression, read, self.program.dtype)
            around = _grown(self.computed, reach, 1) & self.geometry[stage.writes].box
            boundary = self.program.field(stage.writes).boundary
            mirrors = Mirrors.of(boundary, self.program.n_axes)
            mirrors.renew(own[around.slices(origin)], around, self.computed)
        here = self.box.slices(origin)
        return own[here], old[here]

    def _view(self, field: str, box: Shape) -> Array:
        return self.geometry[field].strided(box).view(self.cells[field])


def random_case(
    rng: random.Random, program: Program, steps: int, extent: tuple[int, ...], multiple: int
) -> Case:
    """A case with limits near, far away or at the box, per side; pitches are multiples."""
    box = Shape.of_extent(extent).shift(tuple(rng.randint(-9, 9) for _ in extent))
    margins = [0, 0, 1, 2, rng.randint(0, 12), FAR, FAR]
    low, high = (tuple(rng.choice(margins) for _ in extent) for _ in "lh")
    computed = box.grow(low, high)
    geometry, cells = {}, {}
    np_rng = np.random.default_rng(rng.randrange(2**32))
    names = [leader(program.stages[0])]
    names += [field.name for field in program.fields if field.name not in names]
    for name in names:
        needed = _needed(program, name, box, computed, steps)
        pitches = [1]
        for axis in range(program.n_axes - 1, 0, -1):
            pitch = needed.extent[axis] * pitches[0] + rng.randint(0, 9)
            pitches.insert(0, -(-(pitch + multiple) // multiple) * multiple)
        tight = Geometry(needed, tuple(pitches))
        if name != names[0]:    # first elements equal modulo it in all fields
            wanted = geometry[names[0]].element(box.lower) - tight.element(box.lower)
            first = needed.lower[-1] - wanted % multiple
            tight = Geometry(Shape((*needed.lower[:-1], first), needed.upper), tight.pitches)
        geometry[name] = tight
        cells[name] = _memory(np_rng, tight, needed, program.dtype)
    return Case(program, steps, box, computed, geometry, cells)


def _memory(
    rng: np.random.Generator, geometry: Geometry, needed: Shape, dtype: str
) -> Array:
    """Memory that ends with the last cell that is needed; NaN where none is needed."""
    last = geometry.element(tuple(n - 1 for n in needed.upper))
    memory = np.full(last + 1, np.nan, dtype)
    view = geometry.strided(needed).view(memory)
    view[...] = rng.standard_normal(needed.extent).astype(dtype)
    view.flat[::7] = np.finfo(dtype).tiny / 3
    view.flat[::11] = -0.0
    return memory


def _needed(program: Program, field: str, box: Shape, computed: Shape, steps: int) -> Shape:
    """The cells of `field` that the cells computed in the steps read."""
    stage = leading(program.stages[0])
    first = computed & _grown(box, own_reach(stage), steps - 1)
    offsets = [read.offset for read in reads(stage.expression) if read.field == field]
    boxes = [first.shift(offset) for offset in offsets]
    return reduce(Shape.hull, boxes, first if field == stage.writes or not boxes else boxes[0])


def own_reach(stage: Stage) -> list[tuple[int, int]]:
    """How far the stage reads into the field that it writes, per axis."""
    stage = leading(stage)
    own = [read.offset for read in reads(stage.expression) if read.field == stage.writes]
    return [(max([0, *(-o for o in at)]), max([0, *at])) for at in zip(*own)]


def _grown(box: Shape, reach: Sequence[tuple[int, int]], times: int) -> Shape:
    low, high = zip(*reach)
    return box.grow(tuple(times * n for n in low), tuple(times * n for n in high))


def differing(result: Array, expected: Array) -> int:
    """How many elements have other bits; NaN have any."""
    word = f"u{result.itemsize}"
    wrong = result.view(word) != expected.view(word)
    return int((wrong & ~(np.isnan(result) & np.isnan(expected))).sum())


def random_floats(rng: random.Random) -> Program:
    """One stage that reads the field it writes, up to 2 others, 1 to 4 axes, any reach."""
    n_axes, dtype = rng.randint(1, 4), rng.choice(["float32", "float32", "float64"])
    names = rng.sample(["u", "v", "w"], rng.randint(1, 3))
    most = (4, 3, 2, 1)[n_axes - 1]
    shape = tuple((-rng.randint(0, most), rng.randint(0, most)) for _ in range(n_axes))
    fields = [names[0], *(rng.choice(names) for _ in range(rng.randint(0, 7)))]
    every = [Read(field, tuple(rng.randint(*ends) for ends in shape)) for field in fields]
    stage = Stage("random", {names[0]: random_tree(rng, every, dtype)}, shape)
    return Program("random", tuple(Field(name, dtype) for name in names), (stage,))


def guarded(cells: Array, at_end: bool, align: int = 16) -> Array:
    """The cells in memory of which the pages before and after must not be touched.

    They start with a page, or end with one, to the multiple of `align` bytes that vectors need.
    """
    page = mmap.PAGESIZE
    room = -(-cells.nbytes // page) * page
    memory = mmap.mmap(-1, room + 2 * page)
    address = np.frombuffer(memory, np.uint8).ctypes.data
    libc = ctypes.CDLL(None, use_errno=True)
    for edge in (address, address + page + room):
        if libc.mprotect(ctypes.c_void_p(edge), page, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    start = page + ((room - cells.nbytes) // align * align if at_end else 0)
    result: Array = np.frombuffer(memory, cells.dtype, cells.size, start)
    result[...] = cells
    return result
