# SPDX-License-Identifier: MIT
"""The body of a "rows" kernel: the item's band, block by block, each block vector by vector."""
from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kgt import frame
from controllers.kgt.emitter import INDENT, OPENCL_TYPES, element, statement, used_fields
from controllers.kgt.strategies.rows.row_value import value_arguments
from controllers.program.expression import Read, reads
from controllers.program.program import Program, Stage

if TYPE_CHECKING:
    from controllers.kgt.strategies.rows.config import RowsConfig


def rows_body(program: Program, stage: Stage, config: RowsConfig) -> list[str]:
    """C lines: the body of the kernel."""
    return [*_item(config, program.n_axes), *_block(program, stage, config)]


def _item(config: RowsConfig, n_axes: int) -> list[str]:
    """C lines: per axis `start_A` and `last_A`, the cells of the work-item."""
    last = n_axes - 1
    lines = [
        "// the item's cells, at least a vector of a row",
        *_part(last, 0, config.segment),
        f"const long start_{last} = "
        + frame.minimum(f"group_{last}", f"last_{last} - {config.lanes}") + ";",
    ]
    if n_axes > 1:
        lines += _part(last - 1, 1, config.band)
    if n_axes == 3:
        lines += _part(0, 2, config.depth)
    if n_axes == 4:
        lines += [
            f"const long group_0 = (extent_1 + {config.depth - 1}) / {config.depth};"
            "  // axes 0 and 1",
            "const long start_0 = (long)get_group_id(2) / group_0;",
            f"const long start_1 = ((long)get_group_id(2) - start_0 * group_0) * {config.depth};",
            *_part(1, 2, config.depth)[1:],
        ]
    return lines


def _part(axis: int, dimension: int, cells: int) -> list[str]:
    start = f"start_{axis}" if dimension else f"group_{axis}"
    return [
        f"const long {start} = (long)get_group_id({dimension}) * {cells};",
        f"const long last_{axis} = {frame.minimum(f'{start} + {cells}', f'extent_{axis}')};",
    ]


def _block(program: Program, stage: Stage, config: RowsConfig) -> list[str]:
    """C lines: all blocks of the item."""
    n_axes, fields, target = program.n_axes, used_fields(stage), stage.writes
    last, lanes = n_axes - 1, config.lanes
    rows = f"for (int item = 0; item < {config.planes * config.rows}; ++item)"
    starts = [f"{INDENT}{line}" for field in fields for line in _row(field, config, last)]
    body = [
        f"long {', '.join(f'c_{field}[{config.planes * config.rows}]' for field in fields)};"
        "  // of each row, where the loop starts",
        "#pragma unroll",
        f"{rows} {{",
        *starts,
        f"{INDENT}const long item_skip = -(long)((ulong)({target}_new + start_{target}) "
        f"/ sizeof({OPENCL_TYPES[program.dtype]})) & {lanes - 1};",
        f"{INDENT}if (item_skip) {{",
        *_ahead_of_edge(program, stage, config, ""),
        f"{INDENT * 2}kgt_first({target}_new + start_{target}, KGT_AT(0), item_skip);",
        f"{INDENT}}}",
        *(f"{INDENT}c_{field}[item] = start_{field} + item_skip;" for field in fields),
        "}",
        *_vectors(program, stage, config, rows),
        "#pragma unroll",
        f"{rows} {{",
        *starts,
        f"{INDENT}long item_at = c_{target}[item] - start_{target} + item_x;",
        f"{INDENT}if (item_at <= item_cells - {lanes}) {{",
        f"{INDENT * 2}KGT_STORE(KGT_AT(item_at), {target}_new + start_{target} + item_at);",
        f"{INDENT * 2}item_at += {lanes};",
        f"{INDENT}}}",
        f"{INDENT}if (item_at < item_cells) {{",
        *_ahead_of_edge(program, stage, config, "item_cells - 1"),
        f"{INDENT * 2}kgt_last({target}_new + start_{target} + item_cells,",
        f"{INDENT * 3}KGT_AT(item_cells - {lanes}), item_cells - item_at);",
        f"{INDENT}}}",
        "}",
    ]
    for axis, cells in sorted(_blocked(config, last).items(), reverse=True):
        body = _loop(axis, cells, body)
    return [f"const long item_cells = last_{last} - start_{last};", *body]


def _vectors(program: Program, stage: Stage, config: RowsConfig, rows: str) -> list[str]:
    """C lines: the loop over the vectors of a block; `rows` is the head of a loop over its rows."""
    sources, _, pitches = value_arguments(program, stage)
    indices = [f"c_{field}[item] + item_x" for field in sources]
    return [
        "long item_x = 0;",
        f"for (; item_x <= item_cells - {2 * config.lanes - 1}; item_x += {config.lanes}) {{",
        f"{INDENT}kgt_cells item_values[{config.planes * config.rows}];",
        f"{INDENT}#pragma unroll",
        f"{INDENT}{rows}",
        f"{INDENT * 2}item_values[item] = kgt_value({', '.join([*sources, *indices, *pitches])});",
        *(_ahead(stage, config, rows) if config.ahead else []),
        f"{INDENT}#pragma unroll",
        f"{INDENT}{rows}",
        f"{INDENT * 2}KGT_STORE(item_values[item], "
        f"{stage.writes}_new + c_{stage.writes}[item] + item_x);",
        "}",
    ]


def _ahead(stage: Stage, config: RowsConfig, rows: str) -> list[str]:
    """C lines: ask for what later blocks read first; `rows` is as for `_vectors`."""
    lines = [
        f"{INDENT}// what later blocks read; the processor foresees too little of it",
        f"{INDENT}#pragma unroll",
        f"{INDENT}{rows} {{",
    ]
    for field in stage.fields_read:
        offsets = [read.offset for read in reads(stage.expression) if read.field == field]
        newest = [max(axis) for axis in zip(*offsets)][-3:-2]   # of the planes; none in 2-D
        away = (*newest, config.rows + config.ahead - 1, 0)
        step = Read(field, (0,) * (len(stage.shape) - len(away)) + away)
        at = element(step, f"c_{field}[item] + item_x")
        lines.append(f"{INDENT * 2}KGT_PREFETCH({field} + {at});")
    return [*lines, f"{INDENT}}}"]


def _ahead_of_edge(
    program: Program, stage: Stage, config: RowsConfig, cell: str
) -> list[str]:
    """C lines: ask for the line that holds a cell, in C, of the same row in the next block."""
    if not config.ahead:
        return []
    target = stage.writes
    next_row = Read(target, (0,) * (program.n_axes - 2) + (config.rows, 0))
    start = f"start_{target}" + (f" + {cell}" if cell else "")
    return [f"{INDENT * 2}KGT_PREFETCH({target}_new + {element(next_row, start)});"]


def _blocked(config: RowsConfig, last: int) -> dict[int, int]:
    """The cells of a block along the axes that have blocks."""
    cells = {last - 2: config.planes, last - 1: config.rows}
    return {axis: n for axis, n in cells.items() if axis >= 0}


def _row(field: str, config: RowsConfig, last: int) -> list[str]:
    """C lines: `start_FIELD`, the item's first element in row `item` of the block."""
    terms, blocked = [f"{field}_first"], _blocked(config, last)
    for axis in range(last):
        inside = f"item {'%' if axis == last - 1 else '/'} {config.rows}"
        first = f"group_{axis}" if axis in blocked else f"start_{axis}"
        if blocked.get(axis, 1) > 1:
            first = f"({first} + {inside if config.rows > 1 and config.planes > 1 else 'item'})"
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
