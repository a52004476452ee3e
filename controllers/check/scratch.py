# SPDX-License-Identifier: MIT
"""The memory that a user's kernel is tried on: small tiles with guards, padding and a margin."""
from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from controllers.check.inspection import TileUse
from controllers.check.memory import TileMemory
from controllers.device.event import Command
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.variant import Kernel, Variant
from controllers.memory.tile import Tile
from controllers.program.program import Program
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap.shape import Shape
from hitmap.strided import Geometry, dense_pitches

MARGIN = 3              # cells beyond the declared reads, on each side
BOX = 3                 # cells per axis of a box in which the cell must come out the same
LIKE = (300, 40, 20, 6)     # ... of a kernel that is launched like a generated one, by axes
GUARD = 4096            # elements before and behind, for what is read further away
PADDING = 61            # elements, at least, at the end of each row: what lies there has no offset
WIDEST = 16             # cells of a vector: rows start at multiples of it


class Scratch:
    """Tiles for a variant of the kernel of a sweep, which `executor` has no other of.

    cell: the smallest box that it computes.  box: one with several work-groups.  geometry: that of
    all tiles.  All start near the first cell of the fields.
    """

    def __init__(
        self, executor: OpenCLExecutor, program: Program, sweep: Sweep, variant: Variant
    ) -> None:
        assert isinstance(executor.kernel, Kernel)
        self.executor, self.program, self.kernel = executor, program, executor.kernel
        self.stage, self.variant = sweep.stage, variant
        self.cell, self.box = _boxes(executor, program, sweep, variant)
        self.geometry = _geometry(program, self.box, variant)
        self.n_elements = self.geometry.n_elements
        self._commands: dict[Shape, Command] = {}
        self._uses: dict[Shape, list[TileUse]] = {}

    @cached_property
    def _tiles(self) -> tuple[dict[str, Tile], dict[str, Tile]]:
        """Those that are read, by field, and those that are written."""
        old, new = (
            {field: self._tile(field) for field in fields}
            for fields in (self.stage.fields_read, self.stage.updates)
        )
        return old, new

    def _tile(self, field: str) -> Tile:
        dtype = np.dtype(self.program.dtypes[field])
        room = self.executor.device_staging(self.n_elements, dtype)
        return Tile(self.geometry, dtype, None, room)

    def uses(self, over: Shape) -> list[TileUse]:
        """What a launch over `over` may touch: the fields that are read, then those written."""
        if over not in self._uses:
            old, new = self._tiles
            read = [self._source(field, tile, over) for field, tile in old.items()]
            written = [self._target(field, tile, over) for field, tile in new.items()]
            self._uses[over] = [*read, *written]
        return self._uses[over]

    def _target(self, field: str, tile: Tile, over: Shape) -> TileUse:
        memory = TileMemory(self.executor, tile)
        return TileUse(f"{field}_new", field, memory, memory.mask([]), memory.mask([over]))

    def _source(self, field: str, tile: Tile, over: Shape) -> TileUse:
        memory = TileMemory(self.executor, tile)
        boxes = [over.shift(offset) for offset in self.kernel.offsets(self.stage, field)]
        sweep = self._sweep(over)
        if sweep.count > 1:
            boxes = [sweep.read(use, over) for use in sweep.uses if use.version.field == field]
        return TileUse(field, field, memory, memory.mask(boxes), memory.mask([]))

    def _sweep(self, over: Shape) -> Sweep:
        count = self.variant.form.steps_per_launch
        ends = zip(*self.program.reach)
        cells = over.grow(*(tuple((count - 1) * n for n in end) for end in ends))
        return Sweep.of(self.stage, cells, count)

    def command(self, over: Shape) -> Command:
        """The launch over `over`."""
        if over not in self._commands:
            old, new = self._tiles
            self._commands[over] = self.executor.launch_command(
                self.program, self._sweep(over), old, new, over,
                Surroundings.usual(self.program, over),
            )  # fmt: skip
        return self._commands[over]

    def element(self, cell: tuple[int, ...]) -> int:
        """Where a cell lies."""
        return self.geometry.strided(Shape(cell, tuple(n + 1 for n in cell))).first

    def place(self, element: int, seen_from: tuple[int, ...]) -> str:
        """Where an element lies, seen from a cell."""
        rest, at = element, []
        for pitch, origin in zip(self.geometry.pitches, self.geometry.box.lower):
            step, rest = divmod(rest, pitch)
            at.append(step + origin)
        if Shape(tuple(at), tuple(n + 1 for n in at)) in self.geometry.box:
            return offset_of(tuple(at), seen_from)
        distance = element - self.element(seen_from)
        return f"{abs(distance)} elements {'before' if distance < 0 else 'behind'} its cell"


def offset_of(cell: Sequence[int], seen_from: Sequence[int]) -> str:
    """The offset of a cell from another one, in words."""
    return f"at the offset {tuple(a - b for a, b in zip(cell, seen_from))}"


def _boxes(
    executor: OpenCLExecutor, program: Program, sweep: Sweep, variant: Variant
) -> tuple[Shape, Shape]:
    """The smallest box that the variant computes, and one with several work-groups.

    Near the field's first cell.
    """
    n_axes, form = program.n_axes, variant.form
    if form.like is not None:
        least = form.like.least(n_axes)
        more = tuple(max(n, LIKE[n_axes - 1]) for n in least)
    else:
        built = executor.build(program, sweep)[1]
        least, group = (1,) * n_axes, built.group[::-1]
        compiled = (1,) * (n_axes - len(group)) + group[-n_axes:] if any(group) else least
        chosen = form.work_group or compiled
        cells = form.cells_per_item or least
        more = tuple(BOX if n * c == 1 else BOX + n * c for n, c in zip(chosen, cells))
    first = tuple(low for low, _ in program.reach)
    ends = (tuple(a + n for a, n in zip(first, extent)) for extent in (least, more))
    cell, box = (Shape(first, end) for end in ends)
    return cell, box


def _geometry(program: Program, box: Shape, variant: Variant) -> Geometry:
    """A tile around `box`: what is declared, a margin, padded rows, guards before and behind."""
    count = variant.form.steps_per_launch
    low, high = zip(*program.reach)
    near = box.grow(tuple(count * n + MARGIN for n in low), tuple(count * n + MARGIN for n in high))
    *outer, row = near.extent
    pitches: tuple[int, ...] = (1,)
    if outer:
        pitches = dense_pitches((*outer, -(-(row + PADDING) // WIDEST) * WIDEST))
    guards = -(-GUARD // pitches[0])
    zeros = (0,) * (program.n_axes - 1)
    return Geometry(near.grow((guards, *zeros), (guards, *zeros)), pitches)


