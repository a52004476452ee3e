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

from controllers.check.finding import Complaint, Index, KernelError
from controllers.check.inspection import Inspection, Run, prepared
from controllers.check.memory import differ
from controllers.check.scratch import Scratch, offset_of
from controllers.executor.opencl import OpenCLExecutor
from controllers.kernel.variant import Kernel, Variant
from controllers.program.program import INTEGERS, Program
from controllers.program.schedule import sweeps_of
from controllers.program.sweep import Sweep
from hitmap.shape import Shape

Array = npt.NDArray[Any]
MAX_ELEMENTS = 1 << 24
MAX_FIELDS = 16         # fewer where the scratch is large
MAX_LISTED = 9          # offsets in a message
SEED = 2024
KINDS = (0, 2, 3)       # of junk (`Run`): NaN, and two kinds of random numbers
FEW_KINDS = (0, 2)      # ... where a cell is computed again


def check_kernel(executor: OpenCLExecutor, program: Program, kernel: Kernel) -> None:
    """Raise `KernelError` where `kernel`, which `executor` runs, breaks what it declares.

    A sample, not a proof: some random fields, one cell, and one box of cells.
    """
    sweep = next(one for one in sweeps_of(program) if kernel.computes(program, one.stage))
    executor.kernel = kernel
    for variant in _usable(kernel, executor):
        check_variant(executor, program, sweep, variant)


def check_variant(
    executor: OpenCLExecutor, program: Program, sweep: Sweep, variant: Variant
) -> None:
    """The same for one variant of the kernel that `executor` runs."""
    kernel = executor.kernel
    assert isinstance(kernel, Kernel), "it has variants"
    try:
        executor.kernel = replace(kernel, variants=(variant,))
        _try(executor, program, sweep, variant)
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


def _try(executor: OpenCLExecutor, program: Program, sweep: Sweep, variant: Variant) -> None:
    scratch = Scratch(executor, program, sweep, variant)
    if scratch.n_elements > MAX_ELEMENTS:
        warnings.warn(
            f"kernel {scratch.kernel.name!r} is not checked: its stencil reads too far away",
            stacklevel=4,
        )
        return
    trial = _Trial(scratch)
    for values in trial.fields():
        trial.inspect(values)


class _Trial:
    """The launches of one variant."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch, self._kernel = scratch, scratch.kernel
        self._n_read = len(scratch.stage.fields_read)
        self._dtypes = scratch.program.dtypes
        self._rng = np.random.default_rng(SEED)

    def fields(self) -> Iterator[list[Array]]:
        """Random old levels: small numbers and large ones in turn, to take both ways of an `if`."""
        n, read = self._scratch.n_elements, self._scratch.stage.fields_read
        n_fields = min(MAX_FIELDS, MAX_FIELDS * 2**16 // n)
        if not self._scratch.variant.form.takes_any_box:    # each launch is one of many cells
            n_fields = 2
        for _ in range(max(1, n_fields // 2)):
            yield [self._small(field) for field in read]
            yield [self._large(field) for field in read]

    def inspect(self, values: Sequence[Array]) -> None:
        """One cell, the box, and whether cells come out the same in both."""
        alone = self._inspected(self._scratch.cell, values, KINDS)
        together = self._inspected(self._scratch.box, values)
        upper = self._scratch.box.upper
        lower = tuple(n - each for n, each in zip(upper, self._scratch.cell.extent))
        last = self._inspected(Shape(lower, upper), values)
        for cells, results in ((self._scratch.cell, alone), (Shape(lower, upper), last)):
            where = self._scratch.geometry.strided(cells)
            pairs = zip(map(where.view, results), map(where.view, together))
            if any(differ(one, other).any() for one, other in pairs):
                self._refuse(
                    "computes a cell differently in a box of its own and in a larger one",
                    "let it depend on nothing but the cell's neighbours and coordinates",
                )

    def _inspected(
        self, over: Shape, values: Sequence[Array], kinds: Sequence[int] = FEW_KINDS
    ) -> list[Array]:
        """The new levels after the kernel has computed `over`."""
        uses, command = self._scratch.uses(over), self._scratch.command(over)
        for use, its in zip(uses, values):
            use.memory.write(its)
        runs = [Run(kind, lambda: command(None)) for kind in kinds]
        inspection = Inspection(self._kernel.name, uses, runs)
        _, complaint = inspection.run([None for _ in uses])
        if complaint is not None:
            self._tell(complaint, over, values)
        return inspection.after[self._n_read :]

    def _small(self, field: str) -> Array:
        small = self._rng.integers(0, 100, self._scratch.n_elements)
        dtype = self._dtypes[field]
        return (small if dtype in INTEGERS else small / 100).astype(dtype)

    def _large(self, field: str) -> Array:
        n, dtype = self._scratch.n_elements, np.dtype(self._dtypes[field])
        if dtype.name in INTEGERS:
            info = np.iinfo(dtype)
            return self._rng.integers(info.min, info.max, n, dtype, endpoint=True)
        return (self._rng.standard_normal(n) * 1e3).astype(dtype)

    def _tell(self, complaint: Complaint, over: Shape, values: Sequence[Array]) -> NoReturn:
        """Raise the error that a complaint of a launch over `over` means."""
        field, updates = complaint.field, self._scratch.stage.updates
        single = over.n_cells == 1
        what = complaint.what.removeprefix(f"kernel {self._kernel.name!r} ")
        if complaint.kind == "undeclared":
            self._blame(over, values, field, complaint.index)
        if complaint.kind != "unset":
            if single and complaint.index is not None:
                tile = field if complaint.kind == "read-only" else f"{field}_new"
                what = f"writes {tile} {offset_of(complaint.index, over.lower)}"
            new = field if field in updates else next(iter(updates))
            self._refuse(what, f"a work-item sets its own cells only, as NEW({new}) does")
        if single:
            self._refuse("does not set its cell", f"write NEW({field})")
        if over == self._scratch.box and self._scratch.variant.form.takes_any_box:
            assert complaint.index is not None, "it is not set"
            self._inspected(Shape(complaint.index, tuple(n + 1 for n in complaint.index)), values)
            what = (
                f"computes a cell differently in a box of its own and in a larger one: of "
                f"{over}, it {what}"
            )
        self._refuse(what, "set each cell, and declare the cells_per_item that it computes")

    def _blame(
        self, over: Shape, values: Sequence[Array], field: str, index: Index
    ) -> NoReturn:
        """Raise the error that names what `field` at the cell `index` depends on."""
        assert index is not None, "a cell has another value"
        uses, at = self._scratch.uses(over), self._scratch.element(index)
        read, written = uses[: self._n_read], uses[self._n_read :]
        (blamed,) = (use for use in written if use.field == field)
        before = [*values, *(self._large(use.field) for use in written)]
        starts = [
            [prepared(use, its, None, kind) for use, its in zip(uses, before)] for kind in KINDS
        ]

        def value(given: list[Array]) -> bytes:
            for use, its in zip(uses, given):
                use.memory.write(its)
            self._scratch.command(over)(None).wait()
            result: bytes = blamed.memory.read()[at].tobytes()
            return result

        for number, use in enumerate(read):
            for one, other in zip(starts, [*starts[1:], starts[0]]):
                element = _culprit(value, number, one, other)
                if element is not None:
                    self._refuse_read(use.field, element, index)
        self._refuse(
            f"gives a result that depends on what {field}_new held before",
            "set the cell in every case, and do not read it",
        )

    def _refuse_read(self, field: str, element: int, index: tuple[int, ...]) -> NoReturn:
        declared = self._kernel.offsets(self._scratch.stage, field)
        offsets = ", ".join(map(str, declared[:MAX_LISTED]))
        more = ", ..." if len(declared) > MAX_LISTED else ""
        self._refuse(
            f"reads {field} {self._scratch.place(element, index)}, which the pattern does not "
            f"declare (it has {offsets}{more})",
            "give the pattern a weight there, or do not read it",
        )

    def _refuse(self, what: str, remedy: str) -> NoReturn:
        """Raise the error."""
        file = self._scratch.variant.source.file
        where = f" ({file})" if file else ""
        device = self._scratch.executor.device.name
        raise KernelError(f"kernel {self._kernel.name!r}{where} on {device!r} {what}; {remedy}")


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
