# SPDX-License-Identifier: MIT
"""The strategy "rows", for CPUs: a work-item computes a band of rows, a few rows at a time.

    band of an item        u_new, one block of `rows` rows (here 4)
    +--------------+       |edge|  vector |  vector |  vector |edge|   row 0
    | block of     |       |edg|  vector |  vector |  vector |edges|   row 1
    | rows         |       |ed|  vector |  vector |  vector | edges|   row 2
    +--------------+       |edge |  vector |  vector |  vector |edg|   row 3

The vectors of a row start where its memory is aligned, each row at its own place, so that pitch and
first cell do not matter and stores may bypass the caches.  The two ends of a row are computed by
unaligned vectors, some cells twice with the same value; the loop over the vectors has no test.
A row is computed from its beginning to its end: touching the end first costs a third of the speed
where rows are short.  No store past the caches falls into a line that an edge has written.
In three and four dimensions a block may also hold several planes, which share what they read.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np

from controllers.expression import Read, reads
from controllers.kgt import frame
from controllers.kgt.emitter import (
    INDENT,
    OPENCL_TYPES,
    arithmetic_type,
    assignment,
    cell_index,
    element,
    statement,
    used_fields,
)
from controllers.kgt.kernel import GeneratedKernel, WorkSizes
from controllers.kgt.lanes import WIDE, Lanes
from controllers.program import Program, Stage

_BYTES = {"int": 4, "long": 8, "ulong": 8, "float": 4, "double": 8}


@dataclass(frozen=True)
class RowsConfiguration:
    """The parameters of "rows".

    lanes: cells of a vector, 2 to 16.  rows, planes: those of a block, along the last axis but one
    and but two.  band, depth, segment: cells of an item along the last axis but one, but two, and
    the last one.  streaming: stores bypass the caches (for fields that exceed them).
    """

    strategy: ClassVar[str] = "rows"

    lanes: int = 16
    rows: int = 4
    planes: int = 1
    band: int = 16
    depth: int = 1
    segment: int = 16384
    streaming: bool = False

    @classmethod
    def default(
        cls, program: Program, stage: Stage, streaming: bool = False
    ) -> RowsConfiguration:
        """What is good for `stage` on a CPU (docs/performance.md); 64 bytes to a vector."""
        lanes = 64 // _BYTES[arithmetic_type(stage, program.dtype)]
        if program.n_axes < 3:
            rows, band = (1, 1) if program.n_axes == 1 else (4 if streaming else 2, 16)
            return cls(lanes, rows, band=band, streaming=streaming)
        return cls(lanes, rows=1, planes=3, band=32, depth=48, streaming=streaming)

    def search_space(self, n_axes: int) -> Iterator[RowsConfiguration]:
        """What may be tried instead, with the same stores; the width of vectors is halved once."""
        rows = (1, 2, 4, 8) if n_axes > 1 else (1,)
        planes = (1, 2, 3, 4) if n_axes > 2 else (1,)
        bands = (8, 16, 32, 64, 128) if n_axes > 1 else (1,)
        depths = (1, 12, 48, 192) if n_axes > 2 else (1,)
        lanes = (self.lanes, self.lanes // 2)
        for values in product(lanes, rows, planes, bands, depths, (4096, 16384, 65536)):
            made = RowsConfiguration(*values, self.streaming)
            if made.rows * made.planes <= 8 and made.rows <= made.band:
                if made.planes <= max(1, made.depth):
                    yield made

    def within(self, extent: tuple[int, ...]) -> RowsConfiguration:
        """The same with blocks no higher than the box; all segments that hold a row are alike."""
        rows, planes = (extent[-2:-1] or (1,))[0], (extent[-3:-2] or (1,))[0]
        whole = max(extent[-1], RowsConfiguration.segment)
        return replace(
            self,
            segment=self.segment if self.segment < extent[-1] else whole,
            rows=self.rows if self.rows <= rows else 1,
            planes=self.planes if self.planes <= planes else 1,
        )


def rows_kernel(
    program: Program, stage: Stage, configuration: RowsConfiguration | None = None
) -> GeneratedKernel:
    """The kernel of `stage` that computes bands of rows."""
    made = configuration or RowsConfiguration.default(program, stage)
    lanes, n_axes = Lanes(made.lanes, clang=True), program.n_axes
    how = f"vectors of {made.lanes} cells"
    if made.rows * made.planes > 1:
        planes = f" of {made.planes} planes" if made.planes > 1 else ""
        how = f"{made.rows} rows{planes} at a time, in {how}"
    body, sizes = [*_item(made, n_axes), *_block(program, stage, made)], work_sizes(made, n_axes)
    least = (1, made.planes, made.rows, 2 * made.lanes)[-n_axes:]
    helpers = _value(program, stage, lanes)
    return frame.kernel(
        program, stage, how, body, sizes, helpers=helpers, lanes=lanes, least=least
    )


def work_sizes(made: RowsConfiguration, n_axes: int) -> WorkSizes:
    """One item per segment of a band; each is a work-group, so that cores share them out.

    >>> work_sizes(RowsConfiguration(), 2)((100, 20000), True)
    ((2, 7), (1, 1))
    """

    def sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
        x, y, z = (*extent[:-4:-1], 1, 1)[:3]
        shared = extent[0] if n_axes == 4 else 1
        counts = (-(-x // made.segment), -(-y // made.band), -(-z // made.depth) * shared)
        return counts[: min(3, n_axes)], (1,) * min(3, n_axes)

    return sizes


def _value(program: Program, stage: Stage, lanes: Lanes) -> list[str]:
    """C lines: the function `kgt_value`, a vector of cells."""

    def near(read: Read) -> str:
        return f"KGT_NEAR({read.field} + {element(read, cell_index(read.field, stage))})"

    cell, target = OPENCL_TYPES[program.dtype], stage.writes
    itemsize = np.dtype(program.dtype).itemsize
    sources, indices, pitches = _names(program, stage)
    shifted = [f"start_{field} + (at)" for field in sources]
    call = f"kgt_value({', '.join([*sources, *shifted, *pitches])})"
    parameters = [f"__global const {cell} *restrict {field}" for field in sources]
    parameters += [f"const long {name}" for name in (*indices.values(), *pitches)]
    return [
        WIDE,
        f"typedef {lanes.type(cell)} kgt_cells;",
        f"typedef kgt_cells kgt_unaligned __attribute__((aligned({itemsize})));",
        "#define KGT_NEAR(at) (*(__global const kgt_unaligned *)(at))",
        "",
        f"// {lanes.width} cells of a row",
        "static inline __attribute__((always_inline)) kgt_cells kgt_value(",
        *(f"{INDENT}{parameter}," for parameter in parameters[:-1]),
        f"{INDENT}{parameters[-1] if parameters else 'void'})",
        "{",
        *(
            INDENT + line
            for line in assignment("const kgt_cells item_value", stage, program.dtype, near, lanes)
        ),
        f"{INDENT}return item_value;",
        "}",
        "",
        "// a vector near the end of a row; it need not be aligned",
        "#define KGT_EDGE(at) \\",
        f"{INDENT}(*(__global kgt_unaligned *)({target}_new + start_{target} + (at)) = \\",
        f"{INDENT}{call})",
        "",
    ]


def _names(program: Program, stage: Stage) -> tuple[list[str], dict[str, str], list[str]]:
    """What `kgt_value` is called with: the fields read, their indices, and the pitches it needs."""
    found = reads(stage.expression)
    sources = list(stage.fields_read)
    indices = {field: cell_index(field, stage) for field in sources}
    steps = {(read.field, axis) for read in found for axis, n in enumerate(read.offset[:-1]) if n}
    pitches = [
        f"{field}_pitch_{axis}"
        for field in sources
        for axis in range(program.n_axes - 1)
        if (field, axis) in steps
    ]
    return sources, indices, pitches


def _item(made: RowsConfiguration, n_axes: int) -> list[str]:
    """C lines: per axis `start_A` and `last_A`, the cells of the work-item."""
    last = n_axes - 1
    lines = [
        "// the item's cells, at least two vectors of a row",
        *_part(last, 0, made.segment),
        f"const long start_{last} = "
        + frame.minimum(f"group_{last}", f"last_{last} - {2 * made.lanes}") + ";",
    ]
    if n_axes > 1:
        lines += _part(last - 1, 1, made.band)
    if n_axes == 3:
        lines += _part(0, 2, made.depth)
    if n_axes == 4:
        lines += [
            f"const long group_0 = (extent_1 + {made.depth - 1}) / {made.depth};"
            "  // axes 0 and 1",
            "const long start_0 = (long)get_group_id(2) / group_0;",
            f"const long start_1 = ((long)get_group_id(2) - start_0 * group_0) * {made.depth};",
            *_part(1, 2, made.depth)[1:],
        ]
    return lines


def _part(axis: int, dimension: int, cells: int) -> list[str]:
    start = f"start_{axis}" if dimension else f"group_{axis}"
    return [
        f"const long {start} = (long)get_group_id({dimension}) * {cells};",
        f"const long last_{axis} = {frame.minimum(f'{start} + {cells}', f'extent_{axis}')};",
    ]


def _block(program: Program, stage: Stage, made: RowsConfiguration) -> list[str]:
    """C lines: all blocks of the item."""
    n_axes, fields, target = program.n_axes, used_fields(stage), stage.writes
    last, lanes = n_axes - 1, made.lanes
    rows = f"for (int item = 0; item < {made.planes * made.rows}; ++item)"
    starts = [f"{INDENT}{line}" for field in fields for line in _row(field, made, last)]
    body = [
        f"long {', '.join(f'c_{field}[{made.planes * made.rows}]' for field in fields)};"
        "  // of each row, where the loop starts",
        "#pragma unroll",
        f"{rows} {{",
        *starts,
        f"{INDENT}const long item_skip = -(long)((ulong)({target}_new + start_{target}) "
        f"/ sizeof({OPENCL_TYPES[program.dtype]})) & {lanes - 1};",
        f"{INDENT}KGT_EDGE(0);",
        f"{INDENT}KGT_EDGE(item_skip);",
        *(f"{INDENT}c_{field}[item] = start_{field} + item_skip + {lanes};" for field in fields),
        "}",
        *_vectors(program, stage, made, rows),
        "#pragma unroll",
        f"{rows} {{",
        *starts,
        f"{INDENT}long item_at = c_{target}[item] - start_{target} + item_x;",
        f"{INDENT}for (; item_at <= item_cells - {lanes}; item_at += {lanes})",
        f"{INDENT * 2}KGT_EDGE(item_at);",
        f"{INDENT}KGT_EDGE(item_cells - {lanes});",
        "}",
    ]
    for axis, cells in sorted(_blocked(made, last).items(), reverse=True):
        body = _loop(axis, cells, body)
    return [f"const long item_cells = last_{last} - start_{last};", *body]


def _vectors(program: Program, stage: Stage, made: RowsConfiguration, rows: str) -> list[str]:
    """C lines: the loop over the vectors of a block; `rows` is the head of a loop over its rows."""
    sources, _, pitches = _names(program, stage)
    indices = [f"c_{field}[item] + item_x" for field in sources]
    return [
        "long item_x = 0;",
        f"for (; item_x <= item_cells - {4 * made.lanes}; item_x += {made.lanes}) {{",
        f"{INDENT}kgt_cells item_values[{made.planes * made.rows}];",
        f"{INDENT}#pragma unroll",
        f"{INDENT}{rows}",
        f"{INDENT * 2}item_values[item] = kgt_value({', '.join([*sources, *indices, *pitches])});",
        f"{INDENT}#pragma unroll",
        f"{INDENT}{rows}",
        f"{INDENT * 2}"
        + _store(f"{stage.writes}_new + c_{stage.writes}[item] + item_x", made.streaming),
        "}",
    ]


def _blocked(made: RowsConfiguration, last: int) -> dict[int, int]:
    """The cells of a block along the axes that have blocks."""
    cells = {last - 2: made.planes, last - 1: made.rows}
    return {axis: n for axis, n in cells.items() if axis >= 0}


def _row(field: str, made: RowsConfiguration, last: int) -> list[str]:
    """C lines: `start_FIELD`, the item's first element in row `item` of the block."""
    terms, blocked = [f"{field}_first"], _blocked(made, last)
    for axis in range(last):
        inside = {last - 1: f"item % {made.rows}", last - 2: f"item / {made.rows}"}.get(axis, "")
        first = f"group_{axis}" if axis in blocked else f"start_{axis}"
        if blocked.get(axis, 1) > 1:
            first = f"({first} + {inside if made.rows > 1 and made.planes > 1 else 'item'})"
        terms.append(f"{first} * {field}_pitch_{axis}")
    terms = [terms[0], *(f"+ {term}" for term in terms[1:]), f"+ start_{last}"]
    return statement(f"const long start_{field}", terms)


def _loop(axis: int, cells: int, body: list[str]) -> list[str]:
    """C lines: a loop over the blocks of an axis; the last one ends with the box, if need be."""
    limit = f"extent_{axis} - {cells}"
    group = frame.minimum(f"item_{axis}", limit) if cells > 1 else f"item_{axis}"
    return [
        f"for (long item_{axis} = start_{axis}; item_{axis} < last_{axis}; "
        f"item_{axis} += {cells}) {{",
        f"{INDENT}const long group_{axis} = {group};",
        *(INDENT + line for line in body),
        "}",
    ]


def _store(at: str, streaming: bool) -> str:
    if streaming:
        return f"__builtin_nontemporal_store(item_values[item], (__global kgt_cells *)({at}));"
    return f"*(__global kgt_cells *)({at}) = item_values[item];"
