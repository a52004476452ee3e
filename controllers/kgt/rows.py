# SPDX-License-Identifier: MIT
"""The strategy "rows", for CPUs: a work-item computes a band of rows, a few rows at a time.

    band of an item        u_new, one block of `rows` rows (here 4)
    +--------------+       |edge|  vector |  vector |  vector |edge|   row 0
    | block of     |       |edg|  vector |  vector |  vector | edge|   row 1
    | rows         |       |ed|  vector |  vector |  vector |  edge|   row 2
    +--------------+       |edge |  vector |  vector |  vector |edg|   row 3

The vectors of a row start where its memory is aligned, each row at its own place, so that pitch and
first cell do not matter and stores may bypass the caches; the loop over them has no test.  At each
end of a row, a whole vector is computed and a part of it stored: into the one line that the row
shares with others, so that no line is written both ways.  These lines are asked for in advance:
waiting for them costs a sixth of the speed where rows are short.  For the same reason a row is
computed from its beginning to its end.
In three and four dimensions a block may also hold several planes, which share what they read.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

from controllers.kgt import frame
from controllers.kgt.emitter import (
    INDENT,
    OPENCL_TYPES,
    arithmetic_type,
    element,
    statement,
    used_fields,
)
from controllers.kgt.kernel import GeneratedKernel, WorkSizes
from controllers.kgt.lanes import PREFETCH, Lanes
from controllers.kgt.row_value import row_value, value_arguments
from controllers.program.expression import Read, reads
from controllers.program.program import Program, Stage

_FEW = 4    # cells read for one; with more, the values of four rows do not stay in registers
_SEGMENTS = (4096, 16384, 65536)
_BYTES = {"int": 4, "long": 8, "ulong": 8, "float": 4, "double": 8}


@dataclass(frozen=True)
class RowsConfiguration:
    """The parameters of "rows".

    lanes: cells of a vector, 2 to 16.  rows, planes: those of a block, along the last axis but one
    and but two.  band, depth, segment: cells of an item along the last axis but one, but two, and
    the last one.  ahead: rows that many past its block are asked for meanwhile, of the highest
    planes it reads; 0: none.  streaming: stores bypass the caches (for fields that exceed them).
    """

    strategy: ClassVar[str] = "rows"

    lanes: int = 16
    rows: int = 2
    planes: int = 1
    band: int = 16
    depth: int = 1
    segment: int = 16384
    ahead: int = 0
    streaming: bool = False

    @classmethod
    def default(
        cls, program: Program, stage: Stage, streaming: bool = False
    ) -> RowsConfiguration:
        """What is good for `stage` on a CPU (docs/performance.md); 64 bytes to a vector."""
        lanes = 64 // _BYTES[arithmetic_type(stage, program.dtype)]
        if program.n_axes == 1:
            return cls(lanes, 1, band=1, streaming=streaming)
        ahead = 4 if streaming else 0
        if program.n_axes == 2:
            rows = 4 if streaming and len(set(reads(stage.expression))) <= _FEW else 2
            return cls(lanes, rows, ahead=ahead, streaming=streaming)
        return cls(lanes, 1, 3, band=64, depth=48, streaming=streaming, ahead=ahead)

    def search_space(self, n_axes: int) -> Iterator[RowsConfiguration]:
        """What may be tried instead, with the same stores; the width of vectors is halved once."""
        rows = ((1,), (1, 2, 4, 8), (1, 2, 4))[min(n_axes, 3) - 1]
        planes = (1, 2, 3) if n_axes > 2 else (1,)
        bands = ((1,), (8, 16, 32, 64, 128), (16, 64, 256))[min(n_axes, 3) - 1]
        depths = (12, 48, 192) if n_axes > 2 else (1,)
        lanes = (self.lanes, self.lanes // 2)
        aheads = (0, 4, 8) if n_axes > 1 and self.streaming else (0,)
        for values in product(lanes, rows, planes, bands, depths, _SEGMENTS, aheads):
            made = RowsConfiguration(*values, self.streaming)
            if made.rows * made.planes <= 8:
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
    least = (1, made.planes, made.rows, made.lanes)[-n_axes:]
    helpers = row_value(program, stage, lanes, made.streaming)
    helpers += [*PREFETCH, ""] if made.ahead else []
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


def _item(made: RowsConfiguration, n_axes: int) -> list[str]:
    """C lines: per axis `start_A` and `last_A`, the cells of the work-item."""
    last = n_axes - 1
    lines = [
        "// the item's cells, at least a vector of a row",
        *_part(last, 0, made.segment),
        f"const long start_{last} = "
        + frame.minimum(f"group_{last}", f"last_{last} - {made.lanes}") + ";",
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
        f"{INDENT}if (item_skip) {{",
        *_ahead_of_edge(program, stage, made, ""),
        f"{INDENT * 2}kgt_first({target}_new + start_{target}, KGT_AT(0), item_skip);",
        f"{INDENT}}}",
        *(f"{INDENT}c_{field}[item] = start_{field} + item_skip;" for field in fields),
        "}",
        *_vectors(program, stage, made, rows),
        "#pragma unroll",
        f"{rows} {{",
        *starts,
        f"{INDENT}long item_at = c_{target}[item] - start_{target} + item_x;",
        f"{INDENT}if (item_at <= item_cells - {lanes}) {{",
        f"{INDENT * 2}KGT_STORE(KGT_AT(item_at), {target}_new + start_{target} + item_at);",
        f"{INDENT * 2}item_at += {lanes};",
        f"{INDENT}}}",
        f"{INDENT}if (item_at < item_cells) {{",
        *_ahead_of_edge(program, stage, made, "item_cells - 1"),
        f"{INDENT * 2}kgt_last({target}_new + start_{target} + item_cells,",
        f"{INDENT * 3}KGT_AT(item_cells - {lanes}), item_cells - item_at);",
        f"{INDENT}}}",
        "}",
    ]
    for axis, cells in sorted(_blocked(made, last).items(), reverse=True):
        body = _loop(axis, cells, body)
    return [f"const long item_cells = last_{last} - start_{last};", *body]


def _vectors(program: Program, stage: Stage, made: RowsConfiguration, rows: str) -> list[str]:
    """C lines: the loop over the vectors of a block; `rows` is the head of a loop over its rows."""
    sources, _, pitches = value_arguments(program, stage)
    indices = [f"c_{field}[item] + item_x" for field in sources]
    return [
        "long item_x = 0;",
        f"for (; item_x <= item_cells - {2 * made.lanes - 1}; item_x += {made.lanes}) {{",
        f"{INDENT}kgt_cells item_values[{made.planes * made.rows}];",
        f"{INDENT}#pragma unroll",
        f"{INDENT}{rows}",
        f"{INDENT * 2}item_values[item] = kgt_value({', '.join([*sources, *indices, *pitches])});",
        *(_ahead(stage, made, rows) if made.ahead else []),
        f"{INDENT}#pragma unroll",
        f"{INDENT}{rows}",
        f"{INDENT * 2}KGT_STORE(item_values[item], "
        f"{stage.writes}_new + c_{stage.writes}[item] + item_x);",
        "}",
    ]


def _ahead(stage: Stage, made: RowsConfiguration, rows: str) -> list[str]:
    """C lines: ask for what later blocks read first; `rows` is as for `_vectors`."""
    lines = [
        f"{INDENT}// what later blocks read; the processor foresees too little of it",
        f"{INDENT}#pragma unroll",
        f"{INDENT}{rows} {{",
    ]
    for field in stage.fields_read:
        offsets = [read.offset for read in reads(stage.expression) if read.field == field]
        newest = [max(axis) for axis in zip(*offsets)][-3:-2]   # of the planes; none in 2-D
        away = (*newest, made.rows + made.ahead - 1, 0)
        step = Read(field, (0,) * (len(stage.offsets) - len(away)) + away)
        at = element(step, f"c_{field}[item] + item_x")
        lines.append(f"{INDENT * 2}KGT_PREFETCH({field} + {at});")
    return [*lines, f"{INDENT}}}"]


def _ahead_of_edge(
    program: Program, stage: Stage, made: RowsConfiguration, cell: str
) -> list[str]:
    """C lines: ask for the line that holds a cell, in C, of the same row in the next block."""
    if not made.ahead:
        return []
    target = stage.writes
    next_row = Read(target, (0,) * (program.n_axes - 2) + (made.rows, 0))
    start = f"start_{target}" + (f" + {cell}" if cell else "")
    return [f"{INDENT * 2}KGT_PREFETCH({target}_new + {element(next_row, start)});"]


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
