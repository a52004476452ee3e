# SPDX-License-Identifier: MIT
"""The kernel that makes the cells outside a domain, of any shape, of several fields in one launch.

Fields that lie alike and hold one dtype are made together; those of the same rules share functions.
A function per axis gives a cell that may be outside on this axis and those before it: one that is
inside is what the function of the axis before says, any other what its rule says of such cells.  So
each cell outside is made of cells inside alone, and none waits for another.  All values are rounded
to the field's type, as if each axis had been extended in memory.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, count

import numpy as np
import numpy.typing as npt

from controllers.kgt.parameter import Parameter
from controllers.kgt.text import given
from controllers.kgt.text.analysis import divides, helpers, used_dtypes
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.emitter import INDENT, OPENCL_TYPES, assignment
from controllers.kgt.text.integer import quotient_for
from controllers.kgt.text.lanes import SCALAR
from controllers.program.dtypes import given_dtype
from controllers.program.expression import Read
from controllers.program.extension import Extension, Fill, Line
from controllers.program.stage import Stage
from hitmap.shape import Shape
from hitmap.strided import Geometry

NAME = "make_outside"
MOST_FIELDS = 16    # of a launch, whose arguments have limits


@dataclass(frozen=True)
class OutsideKernel:
    """OpenCL C that makes cells of some fields outside their domains; items have a field's number.

    stage: all that their rules compute.  parameters: the fields' buffers `u_0` and so on, `layout`,
    which is what `tables` gives, and what the stage is given, whose boxes are whole tiles.
    `divides` as of a `StageKernel`.
    """

    source: str
    stage: Stage
    parameters: tuple[Parameter, ...]
    divides: bool


def outside_kernel(extensions: Sequence[Extension], dtype: str) -> OutsideKernel:
    """The kernel for all cells outside that `extensions` have, of fields in this order."""
    cell = OPENCL_TYPES[dtype]
    alike = [replace(extension, field="u") for extension in extensions]
    forms = [*dict.fromkeys(alike)]
    every = _every(forms)
    real = OPENCL_TYPES[given_dtype(every, dtype)]
    own, declared = given.parameters(every, real), given.declarations(every, real)
    texts = [_Text(form, n, dtype, declared, [p.name for p in own]) for n, form in enumerate(forms)]
    n_axes = forms[0].domain.n_axes
    functions = [line for text in texts for axis in range(n_axes) for line in text.over(axis)]
    doubles = "float64" in used_dtypes(every, dtype)
    buffers = [f"u_{number}" for number in range(len(alike))]
    lines = [
        "// The cells outside the domain, each made of cells inside.",
        "// layout: per field where its part begins, which is: per axis the elements per step; per",
        "// axis the cells of the domain; the element of its first cell; how many cells are made;",
        "// per axis the tile's first cell; then boxes of cells: per box how many, and per axis",
        "// its first one and its extent.",
        "#pragma OPENCL FP_CONTRACT OFF",
        *(["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if doubles else []),
        "",
        *quotient_for(functions, SCALAR),
        *helpers(every, dtype),
        *functions,
        f"__kernel void {NAME}(",
        *(INDENT + line for line in declared),
        *(f"{INDENT}__global {cell} *{buffer}," for buffer in buffers),
        f"{INDENT}__global const long *layout)",
        "{",
        *((INDENT + line).rstrip() for line in _body(texts, [forms.index(one) for one in alike])),
        "}",
        "",
    ]
    parameters = (
        *own, *(Parameter(buffer, f"{cell}*", "inout") for buffer in buffers),
        Parameter("layout", "long*", "in"),
    )  # fmt: skip
    return OutsideKernel("\n".join(lines), every, parameters, divides(every, dtype))


def _every(forms: Sequence[Extension]) -> Stage:
    """All that the rules of some extensions compute."""
    n_axes = forms[0].domain.n_axes
    updates = {
        f"u_{number}_{axis}_{at}": form.lines[axis].stage(at).expression
        for number, form in enumerate(forms)
        for axis in range(n_axes)
        for at in form.distant(axis)
    }
    return Stage("outside", updates, ((-(2**30), 2**30),) * n_axes)


def _body(texts: Sequence[_Text], forms: Sequence[int]) -> list[str]:
    """C lines of the kernel: which cell of which field it is, and its value.

    texts: of each form.  forms: which one each field has.
    """
    n_axes, indices = texts[0].n_axes, list[str]()
    for axis in reversed(range(n_axes)):
        first, extent = f"box[{1 + axis}]", f"box[{1 + n_axes + axis}]"
        indices += [    # of / and % clang makes what Oclgrind does not know
            f"const long rows_{axis} = left / {extent};",
            f"const long i{axis} = {first} + left - rows_{axis} * {extent};",
            f"left = rows_{axis};",
        ]
    cell = "".join(f" + i{axis} * layout[{axis}]" for axis in range(n_axes))
    others = [f"case {number}: u = u_{number}; break;" for number in range(1, len(forms))]
    values = [f"u[c] = {text.value()};" for text in texts]
    if len(values) > 1:
        values = [
            f"{' '.join(f'case {n}:' for n, one in enumerate(forms) if one == form)} {line} break;"
            for form, line in enumerate(values)
        ]
        values = ["switch (field) {", *values, "}"]
    return block("""
        const int field = get_global_id(1);
        layout += layout[field];
        long left = get_global_id(0);
        if (left >= layout[$n_cells]) {
            return;
        }
        __global const long *box = layout + $boxes;
        while (left >= box[0]) {
            left -= box[0];
            box += $row;
        }
        $indices
        const long c = layout[$origin]$cell;
        __global $type *u = u_0;
        $others
        $values
    """, n_cells=2 * n_axes + 1, boxes=3 * n_axes + 2, row=2 * n_axes + 1, indices=indices,
        origin=2 * n_axes, cell=cell, type=texts[0].cell,
        others=["switch (field) {", *others, "}"] if others else [], values=values)  # fmt: skip


def together(fills: Sequence[Fill]) -> list[list[int]]:
    """Which of some fills are made by one kernel, by number: those of tiles that lie alike."""
    groups: dict[object, list[int]] = {}
    for number, fill in enumerate(fills):
        groups.setdefault((fill.dtype, fill.geometry), []).append(number)
    return [
        group[first : first + MOST_FIELDS]
        for group in groups.values()
        for first in range(0, len(group), MOST_FIELDS)
    ]


def tables(fills: Sequence[Fill]) -> npt.NDArray[np.int64]:
    """What the kernel must know of tiles and of the cells to make.

    >>> from controllers.program.boundary import Boundary
    >>> both = Extension("u", Boundary.of("mirror", 2), Shape((0, 0), (3, 4)))
    >>> tile = Geometry.dense(Shape((-1, -1), (3, 4)))
    >>> tables([Fill(both, "float32", tile, (Shape((-1, -1), (0, 4)),))]).tolist()
    [1, 5, 1, 3, 4, 6, 5, -1, -1, 5, -1, -1, 1, 5]
    """
    parts = [_table(fill.geometry, fill.extension.domain, fill.boxes) for fill in fills]
    starts = accumulate(map(len, parts[:-1]), initial=len(parts))
    return np.array([*starts, *chain.from_iterable(parts)], np.int64)


def _table(geometry: Geometry, domain: Shape, boxes: Sequence[Shape]) -> list[int]:
    n_cells = sum(box.n_cells for box in boxes)
    found = [*geometry.pitches, *domain.extent, geometry.element(domain.lower), n_cells]
    found += (at - first for at, first in zip(geometry.box.lower, domain.lower))
    for box in boxes:
        lower = (at - first for at, first in zip(box.lower, domain.lower))
        found += [box.n_cells, *lower, *box.extent]
    return found


class _Text:
    """The functions of the axes, named by `number`, which pass on all that rules are given."""

    def __init__(
        self, extension: Extension, number: int, dtype: str, declared: Sequence[str],
        names: Sequence[str],
    ) -> None:  # fmt: skip
        self._extension, self._dtype, self.cell = extension, dtype, OPENCL_TYPES[dtype]
        self._number, self.n_axes = number, extension.domain.n_axes
        self._declared, self._names = declared, names
        self._indices = [f"i{axis}" for axis in range(self.n_axes)]

    def over(self, axis: int) -> list[str]:
        """C lines: the function of one axis."""
        extension, n_axes = self._extension, self.n_axes
        line, distant = extension.lines[axis], extension.distant(axis)
        body = [f"return {self._call(axis - 1, 'c', self._indices)};"]
        if distant:
            stages = [line.stage(at) for at in distant]
            items = sorted({a for stage in stages for a in given.axes_of(stage)})
            body = block("""
                const long length = layout[$length];
                if (i$axis >= 0 && i$axis < length) {
                    $here
                }
                $items
                $cell value = 0;
                switch (i$axis < 0 ? i$axis : i$axis - length + 1) {
                $cases
                }
                return value;
            """, axis=axis, length=n_axes + axis, here=body, cell=self.cell,
                items=[
                    f"const long item_{a} = i{a} - layout[{2 * n_axes + 2 + a}];" for a in items
                ],
                cases=[one for at in distant for one in self._case(line, at)])  # fmt: skip
        return block("""
            $cell over_${number}_$axis(
                $declared
                __global const $cell *u, __global const long *layout, const long c,
                $indices)
            {
                $body
            }
        """, cell=self.cell, number=self._number, axis=axis, body=body,
            declared=self._declared,
            indices=", ".join(f"const long {index}" for index in self._indices)) + [""]  # fmt: skip

    def value(self) -> str:
        """C text: the value of the kernel's cell."""
        return self._call(self.n_axes - 1, "c", self._indices)

    def _call(self, axis: int, cell: str, indices: Sequence[str]) -> str:
        """C text: the value of a cell, which may be outside on `axis` and those before it."""
        if axis < 0:
            return f"u[{cell}]"
        passed = [*self._names, "u", "layout", cell, *indices]
        return f"over_{self._number}_{axis}({', '.join(passed)})"

    def _case(self, line: Line, at: int) -> list[str]:
        """C lines: the value of the cells at one place of the axis, outside."""
        distance = at if at < 0 else at - line.length + 1
        names = (f"beyond_{number}" for number in count())
        return block("""
            case $distance: {
                $value
                break;
            }
        """, distance=distance, value=self._value("value", line, at, 0, names))

    def _value(
        self, target: str, line: Line, at: int, shift: int, names: Iterator[str]
    ) -> list[str]:
        """C lines that give `target` the cell at one place outside, `shift` from the kernel's.

        What its rule reads beyond the other end is made first.
        """
        stage, axis, before = line.stage(at), line.axis, list[str]()
        texts: dict[Read, str] = {}
        for read in stage.reads:
            step = read.offset[axis]
            if line.is_inside(at + step):
                indices = [*self._indices]
                indices[axis] += f" + ({shift + step})"
                cell = f"c + ({shift + step}) * layout[{axis}]"
                texts[read] = self._call(axis - 1, cell, indices)
                continue
            texts[read] = name = next(names)
            nested = self._value(name, line, at + step, shift + step, names)
            items = [
                f"const long item_{a} = i{a} + ({(shift + step) * (a == axis)}) - "
                f"layout[{2 * self.n_axes + 2 + a}];"
                for a in given.axes_of(line.stage(at + step))
            ]
            before += block("""
                $cell $name;
                {
                    $items
                    $nested
                }
            """, cell=self.cell, name=name, items=items, nested=nested)
        return before + assignment(target, stage, self._dtype, texts.__getitem__)
