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

from controllers.kgt.text.c_lines import block
from controllers.kgt.text.emitter import INDENT, OPENCL_TYPES, assignment, divides, helpers
from controllers.kgt.text.integer import quotient
from controllers.kgt.text.lanes import SCALAR
from controllers.program.expression import Read
from controllers.program.extension import Extension, Line
from controllers.program.stage import Stage
from hitmap.shape import Shape
from hitmap.strided import Geometry

NAME = "make_outside"


@dataclass(frozen=True)
class OutsideKernel:
    """OpenCL C that makes cells of a field outside its domain.

    Arguments: the field's buffer, and a table of `table`.  `divides` as of a `StageKernel`.
    """

    source: str
    divides: bool


def outside_kernel(extension: Extension, dtype: str) -> OutsideKernel:
    """The kernel for all cells outside that `extension` has."""
    cell, n_axes = OPENCL_TYPES[dtype], extension.domain.n_axes
    functions = [line for axis in range(n_axes) for line in _over(extension, axis, dtype)]
    every = Stage(
        "outside",
        {
            f"{extension.field}_{axis}_{at}": extension.lines[axis].stage(at).expression
            for axis in range(n_axes)
            for at in extension.distant(axis)
        },
        ((-(2**30), 2**30),) * n_axes,
    )
    lines = [
        "// The cells outside the domain, each made of cells inside.",
        "// where: per axis the elements per step; per axis the cells of the domain; the element",
        "// of its first cell; how many cells are made; then boxes of them: per box how many, and",
        "// per axis its first one and its extent.",
        "#pragma OPENCL FP_CONTRACT OFF",
        *(["#pragma OPENCL EXTENSION cl_khr_fp64 : enable"] if dtype == "float64" else []),
        "",
        *([*quotient(SCALAR), ""] if any("kgt_quotient(" in line for line in functions) else []),
        *helpers(every, dtype),
        *functions,
        f"__kernel void {NAME}(__global {cell} *u, __global const long *where)",
        "{",
        *((INDENT + line).rstrip() for line in _body(n_axes)),
        "}",
        "",
    ]
    return OutsideKernel("\n".join(lines), divides(every, dtype))


def table(geometry: Geometry, domain: Shape, boxes: Sequence[Shape]) -> npt.NDArray[np.int64]:
    """What the kernel must know of a tile and of the cells to make.

    >>> tile = Geometry.dense(Shape((-1, -1), (3, 4)))
    >>> table(tile, Shape((0, 0), (3, 4)), [Shape((-1, -1), (0, 4))]).tolist()
    [5, 1, 3, 4, 6, 5, 5, -1, -1, 1, 5]
    """
    n_cells = sum(box.n_cells for box in boxes)
    found = [*geometry.pitches, *domain.extent, geometry.element(domain.lower), n_cells]
    for box in boxes:
        lower = (at - first for at, first in zip(box.lower, domain.lower))
        found += [box.n_cells, *lower, *box.extent]
    return np.array(found, np.int64)


def _over(extension: Extension, axis: int, dtype: str) -> list[str]:
    """C lines: the function of one axis."""
    line, distant = extension.lines[axis], extension.distant(axis)
    body = [f"return {_call(axis - 1, 'c')};"]
    if distant:
        body = block("""
            const long length = where[$length];
            if (i$axis >= 0 && i$axis < length) {
                return $here;
            }
            $cell value = 0;
            switch (i$axis < 0 ? i$axis : i$axis - length + 1) {
            $cases
            }
            return value;
        """, axis=axis, length=extension.domain.n_axes + axis, here=_call(axis - 1, "c"),
            cell=OPENCL_TYPES[dtype],
            cases=[one for at in distant for one in _case(line, at, dtype)])  # fmt: skip
    return block("""
        $cell over_$axis(
            __global const $cell *u, __global const long *where, const long c, $indices)
        {
            $body
        }

    """, cell=OPENCL_TYPES[dtype], axis=axis, body=body,
        indices=", ".join(f"const long i{a}" for a in range(axis + 1))) + [""]  # fmt: skip


def _call(axis: int, cell: str) -> str:
    """C text: the value of a cell, which may be outside on `axis` and those before it."""
    if axis < 0:
        return f"u[{cell}]"
    return f"over_{axis}(u, where, {cell}, {', '.join(f'i{a}' for a in range(axis + 1))})"


def _case(line: Line, at: int, dtype: str) -> list[str]:
    """C lines: the value of the cells at one place of the axis, outside."""
    distance = at if at < 0 else at - line.length + 1
    names = (f"beyond_{number}" for number in count())
    return block("""
        case $distance: {
            $value
            break;
        }
    """, distance=distance, value=_value("value", line, at, 0, dtype, names))


def _value(
    target: str, line: Line, at: int, shift: int, dtype: str, names: Iterator[str]
) -> list[str]:
    """C lines that give `target` the cell at one place outside, `shift` cells from the kernel's.

    What its rule reads beyond the other end is made first.
    """
    stage, before = line.stage(at), list[str]()
    texts: dict[Read, str] = {}
    for read in stage.reads:
        step = read.offset[line.axis]
        if line.is_inside(at + step):
            texts[read] = _call(line.axis - 1, f"c + ({shift + step}) * where[{line.axis}]")
            continue
        texts[read] = name = next(names)
        nested = _value(name, line, at + step, shift + step, dtype, names)
        before += block("""
            $cell $name;
            {
                $nested
            }
        """, cell=OPENCL_TYPES[dtype], name=name, nested=nested)
    return before + assignment(target, stage, dtype, texts.__getitem__)


def _body(n_axes: int) -> list[str]:
    """C lines: which cell it is, and its value."""
    indices = []
    for axis in reversed(range(n_axes)):
        first, extent = f"box[{1 + axis}]", f"box[{1 + n_axes + axis}]"
        indices += [f"const long i{axis} = {first} + left % {extent};", f"left /= {extent};"]
    cell = "".join(f" + i{axis} * where[{axis}]" for axis in range(n_axes))
    return block("""
        long left = get_global_id(0);
        if (left >= where[$n_cells]) {
            return;
        }
        __global const long *box = where + $boxes;
        while (left >= box[0]) {
            left -= box[0];
            box += $row;
        }
        $indices
        const long c = where[$origin]$cell;
        u[c] = $value;
    """, n_cells=2 * n_axes + 1, boxes=2 * n_axes + 2, row=2 * n_axes + 1, indices=indices,
        origin=2 * n_axes, cell=cell, value=_call(n_axes - 1, "c"))  # fmt: skip
