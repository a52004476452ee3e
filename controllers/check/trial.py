# SPDX-License-Identifier: MIT
"""The trial of a user's kernel before a run: does it keep to what it declares?

Halos, messages and dependencies follow from the declaration alone, so a kernel that reads
beyond it would give results that depend on how the field is divided.  Each variant that the device
may use is inspected on small fields of random numbers, and the fault is named by its offset.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from controllers.check.finding import Complaint, Index
from controllers.check.inspection import Inspection, Run, Use, prepared
from controllers.check.memory import TileMemory, differ
from controllers.device.event import Command
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.variant import Kernel, Variant
from controllers.memory.tile import Tile
from controllers.program.program import INTEGERS, Program
from controllers.program.steps import Steps
from hitmap.shape import Shape
from hitmap.strided import Geometry, dense_pitches

Array = npt.NDArray[Any]
MARGIN = 3              # cells beyond the declared reads, on each side
BOX = 3                 # cells per axis of a box in which the cell must come out the same
LIKE = (300, 40, 20, 6)     # ... of a kernel that is launched like a generated one, by axes
GUARD = 4096            # elements before and behind, for what is read further away
PADDING = 61            # elements, at least, at the end of each row: what lies there has no offset
WIDEST = 16             # cells of a vector: rows start at multiples of it
MAX_ELEMENTS = 1 << 24
MAX_FIELDS = 16         # fewer where the scratch is large
MAX_LISTED = 9          # offsets in a message
SEED = 2024
KINDS = (0, 2, 3)       # of junk (`Run`): NaN, and two kinds of random numbers
FEW_KINDS = (0, 2)      # ... where a cell is computed again


class KernelError(ValueError):
    """A kernel that does other than its stencil declares; says kernel, device and offset."""


def check_kernel(executor: OpenCLExecutor, program: Program, kernel: Kernel) -> None:
    """Raise `KernelError` where `kernel`, which `executor` runs, breaks what it declares.

    A sample, not a proof: some random fields, one cell, and one box of cells.
    """
    number = next(n for n, stage in enumerate(program.stages) if kernel.computes(program, stage))
    try:
        for variant in _usable(kernel, executor):
            executor.kernel = replace(kernel, variants=(variant,))
            _try(executor, program, number, variant)
    finally:
        executor.kernel = kernel


def _usable(kernel: Kernel, executor: OpenCLExecutor) -> Iterator[Variant]:
    """The variants that the device may use: of each number of steps, until one takes any box."""
    for n_steps in kernel.steps:
        variants = [v for v in kernel.fitting(executor.device)
                    if v.form.steps_per_launch == n_steps]  # fmt: skip
        for variant in variants:
            yield variant
            if variant.form.takes_any_box:
                break


def _try(executor: OpenCLExecutor, program: Program, number: int, variant: Variant) -> None:
    if _Trial.n_elements(executor, program, number, variant) > MAX_ELEMENTS:
        assert isinstance(executor.kernel, Kernel)
        warnings.warn(
            f"kernel {executor.kernel.name!r} is not checked: its stencil reads too far away",
            stacklevel=4,
        )
        return
    trial = _Trial(executor, program, number, variant)
    for values in trial.fields():
        trial.inspect(values)


class _Trial:
    """The memory to run one variant on, and its launches there."""

    def __init__(
        self, executor: OpenCLExecutor, program: Program, number: int, variant: Variant
    ) -> None:
        assert isinstance(executor.kernel, Kernel)
        self._executor, self._program, self._number = executor, program, number
        self._kernel, self._variant = executor.kernel, variant
        self._stage = stage = program.stages[number]
        self._dtype = np.dtype(program.dtype)
        self._rng = np.random.default_rng(SEED)
        self._cell, self._box = _boxes(executor, program, number, variant)
        self._geometry = _geometry(program, self._box, variant)
        fields = [*stage.fields_read, stage.writes]
        n = self._geometry.n_elements
        *read, self._new = (
            Tile(self._geometry, self._dtype, None, executor.device_staging(n, self._dtype))
            for _ in fields
        )
        self._read = dict(zip(stage.fields_read, read))
        self._commands: dict[Shape, Command] = {}
        self._uses: dict[Shape, list[Use]] = {}

    @staticmethod
    def n_elements(
        executor: OpenCLExecutor, program: Program, number: int, variant: Variant
    ) -> int:
        """Elements of a tile."""
        return _geometry(program, _boxes(executor, program, number, variant)[1], variant).n_elements

    def fields(self) -> Iterator[list[Array]]:
        """Random old levels: small numbers and large ones in turn, to take both ways of an `if`."""
        n, count = self._geometry.n_elements, len(self._read)
        n_fields = min(MAX_FIELDS, MAX_FIELDS * 2**16 // n)
        if not self._variant.form.takes_any_box:    # each launch is one of many cells
            n_fields = 2
        for _ in range(max(1, n_fields // 2)):
            yield [self._small() for _ in range(count)]
            yield [self._large() for _ in range(count)]

    def inspect(self, values: Sequence[Array]) -> None:
        """One cell, the box, and whether cells come out the same in both."""
        alone = self._inspected(self._cell, values, KINDS)
        together = self._inspected(self._box, values)
        upper = self._box.upper
        lower = tuple(n - each for n, each in zip(upper, self._cell.extent))
        last = self._inspected(Shape(lower, upper), values)
        for cells, result in ((self._cell, alone), (Shape(lower, upper), last)):
            one, other = (self._geometry.strided(cells).view(a) for a in (result, together))
            if differ(one, other).any():
                self._refuse(
                    "computes a cell differently in a box of its own and in a larger one",
                    "let it depend on nothing but the cell's neighbours and coordinates",
                )

    def _inspected(
        self, over: Shape, values: Sequence[Array], kinds: Sequence[int] = FEW_KINDS
    ) -> Array:
        """The new level after the kernel has computed `over`."""
        uses, command = self._uses_of(over), self._command(over)
        for use, its in zip(uses, values):
            use.memory.write(its)
        runs = [Run(kind, lambda: command(None)) for kind in kinds]
        inspection = Inspection(self._kernel.name, uses, runs)
        _, complaint = inspection.run([None for _ in uses])
        if complaint is not None:
            self._tell(complaint, over, values)
        return inspection.after[-1]

    def _uses_of(self, over: Shape) -> list[Use]:
        if over not in self._uses:
            read = [self._source(field, tile, over) for field, tile in self._read.items()]
            memory, field = TileMemory(self._executor, self._new), self._stage.writes
            new = Use(f"{field}_new", field, memory, memory.mask([]), memory.mask([over]))
            self._uses[over] = [*read, new]
        return self._uses[over]

    def _source(self, field: str, tile: Tile, over: Shape) -> Use:
        memory = TileMemory(self._executor, tile)
        boxes = [over.shift(offset) for offset in self._kernel.offsets(self._stage, field)]
        steps = self._steps(over)
        if steps.count > 1:
            boxes = [steps.read(self._stage, field, over)]
        return Use(field, field, memory, memory.mask(boxes), memory.mask([]))

    def _steps(self, over: Shape) -> Steps:
        count = self._variant.form.steps_per_launch
        ends = zip(*self._program.reach)
        return Steps(count, over.grow(*(tuple((count - 1) * n for n in end) for end in ends)))

    def _command(self, over: Shape) -> Command:
        if over not in self._commands:
            self._commands[over] = self._executor.launch_command(
                self._program, self._number, self._read, self._new, over, self._steps(over)
            )
        return self._commands[over]

    def _small(self) -> Array:
        small = self._rng.integers(0, 100, self._geometry.n_elements)
        return (small if self._program.dtype in INTEGERS else small / 100).astype(self._dtype)

    def _large(self) -> Array:
        n = self._geometry.n_elements
        if self._program.dtype in INTEGERS:
            info = np.iinfo(self._dtype)
            return self._rng.integers(info.min, info.max, n, self._dtype, endpoint=True)
        return (self._rng.standard_normal(n) * 1e3).astype(self._dtype)

    def _tell(self, complaint: Complaint, over: Shape, values: Sequence[Array]) -> NoReturn:
        """Raise the error that a complaint of a launch over `over` means."""
        field, single = self._stage.writes, over.n_cells == 1
        what = complaint.what.removeprefix(f"kernel {self._kernel.name!r} ")
        if complaint.kind == "undeclared":
            self._blame(over, values, complaint.index)
        if complaint.kind != "unset":
            if single and complaint.index is not None:
                what = f"writes {field}_new {self._offset(complaint.index, over.lower)}"
            self._refuse(what, f"a work-item sets its own cells only, as NEW({field}) does")
        if single:
            self._refuse("does not set its cell", f"write NEW({field})")
        if over == self._box and self._variant.form.takes_any_box:
            assert complaint.index is not None, "it is not set"
            self._inspected(Shape(complaint.index, tuple(n + 1 for n in complaint.index)), values)
            what = (
                f"computes a cell differently in a box of its own and in a larger one: of "
                f"{over}, it {what}"
            )
        self._refuse(what, "set each cell, and declare the cells_per_item that it computes")

    def _blame(self, over: Shape, values: Sequence[Array], index: Index) -> NoReturn:
        """Raise the error that names what the value of the cell `index` depends on."""
        assert index is not None, "a cell has another value"
        uses, at = self._uses_of(over), self._element(index)
        starts = [[prepared(use, its, None, kind) for use, its in zip(uses, [*values, values[0]])]
                  for kind in KINDS]  # fmt: skip

        def value(given: list[Array]) -> bytes:
            for use, its in zip(uses, given):
                use.memory.write(its)
            self._command(over)(None).wait()
            result: bytes = uses[-1].memory.read()[at].tobytes()
            return result

        for number, use in enumerate(uses[:-1]):
            for one, other in zip(starts, [*starts[1:], starts[0]]):
                element = _culprit(value, number, one, other)
                if element is not None:
                    self._refuse_read(use.field, element, index)
        self._refuse(
            f"gives a result that depends on what {self._stage.writes}_new held before",
            "set the cell in every case, and do not read it",
        )

    def _refuse_read(self, field: str, element: int, index: tuple[int, ...]) -> NoReturn:
        declared = self._kernel.offsets(self._stage, field)
        offsets = ", ".join(map(str, declared[:MAX_LISTED]))
        more = ", ..." if len(declared) > MAX_LISTED else ""
        self._refuse(
            f"reads {field} {self._place(element, index)}, which the pattern does not declare (it "
            f"has {offsets}{more})",
            "give the pattern a weight there, or do not read it",
        )

    def _element(self, cell: tuple[int, ...]) -> int:
        return self._geometry.strided(Shape(cell, tuple(n + 1 for n in cell))).first

    def _place(self, element: int, seen_from: tuple[int, ...]) -> str:
        """Where an element lies, seen from a cell."""
        rest, at = element, []
        for pitch, origin in zip(self._geometry.pitches, self._geometry.box.lower):
            step, rest = divmod(rest, pitch)
            at.append(step + origin)
        if Shape(tuple(at), tuple(n + 1 for n in at)) in self._geometry.box:
            return self._offset(tuple(at), seen_from)
        distance = element - self._element(seen_from)
        return f"{abs(distance)} elements {'before' if distance < 0 else 'behind'} its cell"

    @staticmethod
    def _offset(cell: Sequence[int], seen_from: Sequence[int]) -> str:
        return f"at the offset {tuple(a - b for a, b in zip(cell, seen_from))}"

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        """Raise the error."""
        file = self._variant.source.file
        where = f" ({file})" if file else ""
        raise KernelError(
            f"kernel {self._kernel.name!r}{where} on {self._executor.device.name!r} {what}; "
            f"{remedy}"
        )


def _culprit(
    value: Callable[[list[Array]], bytes], number: int, one: list[Array], other: list[Array]
) -> int | None:
    """The first element of array `number` that changes a value, as it is in `one` or in `other`."""

    def mixed(count: int) -> bytes:
        array = np.concatenate([other[number][:count], one[number][count:]])
        return value([*one[:number], array, *one[number + 1 :]])

    harmless, harmful = 0, one[number].size
    base = mixed(harmless)
    if mixed(harmful) == base:
        return None
    while harmful - harmless > 1:
        middle = (harmless + harmful) // 2
        if mixed(middle) == base:
            harmless = middle
        else:
            harmful = middle
    return harmless


def _boxes(
    executor: OpenCLExecutor, program: Program, number: int, variant: Variant
) -> tuple[Shape, Shape]:
    """The smallest box that the variant computes, and one with several work-groups.

    Near the field's first cell.
    """
    n_axes, form = program.n_axes, variant.form
    pattern = form.pattern(program, program.stages[number])
    if pattern is not None:
        least = pattern.least
        more = tuple(max(n, LIKE[n_axes - 1]) for n in least)
    else:
        source, built = executor.build(program, number)
        least, group = (1,) * n_axes, built.group[::-1]
        fixed = source.form.work_group if source.form and source.form.work_group else None
        chosen = fixed or ((1,) * (n_axes - len(group)) + group[-n_axes:] if any(group) else least)
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


