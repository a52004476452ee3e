# SPDX-License-Identifier: MIT
"""The kernel that makes the cells outside a domain, of any shape, in one launch.

A function per axis gives a cell that may be outside on this axis and those before it: one that is
inside is what the function of the axis before says, any other what its rule says of such cells.  So
each cell outside is made of cells inside alone, and none waits for another.  All values are rounded
to the field's type, as if each axis had been extended in memory.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

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
from controllers.program.extension import Extension, Line
from controllers.program.stage import Stage
from hitmap.shape import Shape
from hitmap.strided import Geometry

NAME = "make_outside"


@dataclass(frozen=True)
class OutsideKernel:
    """OpenCL C that makes cells of a field outside its domain.

    stage: all that its rules compute.  parameters: the field's buffer `u`, `layout`, which is what
    `table` gives, and what the stage is given, whose boxes are whole tiles.  `divides` as of a
    `StageKernel`.
    """

    source: str
    stage: Stage
    parameters: tuple[Parameter, ...]
    divides: bool


def outside_kernel(extension: Extension, dtype: str) -> OutsideKernel:
    """The kernel for all cells outside that `extension` has."""
    cell, n_axes = OPENCL_TYPES[dtype], extension.domain.n_axes
    every = Stage(
        "outside",
        {
            f"{extension.field}_{axis}_{at}": extension.lines[axis].stage(at).expression
            for axis in range(n_axes)
            for at in extension.distant(axis)
        },
        ((-(2**30), 2**30),) * n_axes,
    )
    real = OPENCL_TYPES[given_dtype(every, dtype)]
    own = given.parameters(every, real)
    text = _Text(extension, dtype, given.declarations(every, real), [p.name for p in own])
    functions = [line for axis in range(n_axes) for line in text.over(axis)]
    doubles = "float64" in used_dtypes(every, dtype)
    lines = [
        "// The cells outside the domain, each made of cells inside.",
        "// layout: per axis the elements per step; per axis the cells of the domain; the element",
        "// of its first cell; how many cells are made; per axis the tile's first cell; then boxes",
        "// of cells: per box how many, and per axis its first one and its extent.",
        "#pragma OPENCL FP_CONTRACT OFF",
        *(["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if doubles else []),
        "",
        *quotient_for(functions, SCALAR),
        *helpers(every, dtype),
        *functions,
        f"__kernel void {NAME}(",
        *(INDENT + line for line in given.declarations(every, real)),
        f"{INDENT}__global {cell} *u, __global const long *layout)",
        "{",
        *((INDENT + line).rstrip() for line in text.body()),
        "}",
        "",
    ]
    parameters = (*own, Parameter("u", f"{cell}*", "inout"), Parameter("layout", "long*", "in"))
    return OutsideKernel("\n".join(lines), every, parameters, divides(every, dtype))


def table(geometry: Geometry, domain: Shape, boxes: Sequence[Shape]) -> npt.NDArray[np.int64]:
    """What the kernel must know of a tile and of the cells to make.

    >>> tile = Geometry.dense(Shape((-1, -1), (3, 4)))
    >>> table(tile, Shape((0, 0), (3, 4)), [Shape((-1, -1), (0, 4))]).tolist()
    [5, 1, 3, 4, 6, 5, -1, -1, 5, -1, -1, 1, 5]
    """
    n_cells = sum(box.n_cells for box in boxes)
    found = [*geometry.pitches, *domain.extent, geometry.element(domain.lower), n_cells]
    found += (at - first for at, first in zip(geometry.box.lower, domain.lower))
    for box in boxes:
        lower = (at - first for at, first in zip(box.lower, domain.lower))
        found += [box.n_cells, *lower, *box.extent]
    return np.array(found, np.int64)


class _Text:
    """The functions of the axes, which pass on all that the rules are given."""

    def __init__(
        self, extension: Extension, dtype: str, declared: Sequence[str], names: Sequence[str]
    ) -> None:
        self._extension, self._dtype, self._cell = extension, dtype, OPENCL_TYPES[dtype]
        self._n_axes = extension.domain.n_axes
        self._declared = declared
        self._indices = [f"i{axis}" for axis in range(self._n_axes)]
        self._passed = [*names, "u", "layout"]

    def over(self, axis: int) -> list[str]:
        """C lines: the function of one axis."""
        extension, n_axes = self._extension, self._n_axes
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
            """, axis=axis, length=n_axes + axis, here=body, cell=self._cell,
                items=[
                    f"const long item_{a} = i{a} - layout[{2 * n_axes + 2 + a}];" for a in items
                ],
                cases=[one for at in distant for one in self._case(line, at)])  # fmt: skip
        return block("""
            $cell over_$axis(
                $declared
                __global const $cell *u, __global const long *layout, const long c,
                $indices)
            {
                $body
            }
        """, cell=self._cell, axis=axis, body=body, declared=self._declared,
            indices=", ".join(f"const long {index}" for index in self._indices)) + [""]  # fmt: skip

    def body(self) -> list[str]:
        """C lines of the kernel: which cell it is, and its value."""
        n_axes, indices = self._n_axes, list[str]()
        for axis in reversed(range(n_axes)):
            first, extent = f"box[{1 + axis}]", f"box[{1 + n_axes + axis}]"
            indices += [    # of / and % clang makes what Oclgrind does not know
                f"const long rows_{axis} = left / {extent};",
                f"const long i{axis} = {first} + left - rows_{axis} * {extent};",
                f"left = rows_{axis};",
            ]
        cell = "".join(f" + i{axis} * layout[{axis}]" for axis in range(n_axes))
        return block("""
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
            u[c] = $value;
        """, n_cells=2 * n_axes + 1, boxes=3 * n_axes + 2, row=2 * n_axes + 1, indices=indices,
            origin=2 * n_axes, cell=cell,
            value=self._call(n_axes - 1, "c", self._indices))  # fmt: skip

    def _call(self, axis: int, cell: str, indices: Sequence[str]) -> str:
        """C text: the value of a cell, which may be outside on `axis` and those before it."""
        if axis < 0:
            return f"u[{cell}]"
        return f"over_{axis}({', '.join([*self._passed, cell, *indices])})"

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
                f"layout[{2 * self._n_axes + 2 + a}];"
                for a in given.axes_of(line.stage(at + step))
            ]
            before += block("""
                $cell $name;
                {
                    $items
                    $nested
                }
            """, cell=self._cell, name=name, items=items, nested=nested)
        return before + assignment(target, stage, self._dtype, texts.__getitem__)
