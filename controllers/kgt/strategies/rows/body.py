# SPDX-License-Identifier: MIT
"""The body of a "rows" kernel: the item's band, block by block, each block vector by vector."""
from __future__ import annotations

from typing import TYPE_CHECKING

from controllers.kgt.strategies.rows.row_value import value_arguments
from controllers.kgt.text import frame
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.emitter import OPENCL_TYPES, element, statement, used_fields
from controllers.program.expression import Read, reads
from controllers.program.program import Program, Stage

if TYPE_CHECKING:
    from controllers.kgt.strategies.rows.config import RowsConfig


def rows_body(program: Program, stage: Stage, config: RowsConfig) -> list[str]:
    """C lines: the body of the kernel."""
    last, blocks = program.n_axes - 1, _block(program, stage, config)
    for axis, cells in sorted(_blocked(config, last).items(), reverse=True):
        blocks = _loop(axis, cells, blocks)
    item_cells = f"const long item_cells = last_{last} - start_{last};"
    return [*_item(config, program.n_axes), item_cells, *blocks]


def _item(config: RowsConfig, n_axes: int) -> list[str]:
    """C lines: per axis `start_A` and `last_A`, the cells of the work-item."""
    last = n_axes - 1
    lines = block("""
        // the item's cells, at least a vector of a row
        const long group_$x = (long)get_group_id(0) * $segment;
        const long last_$x = $last;
        const long start_$x = group_$x < last_$x - $lanes ? group_$x : last_$x - $lanes;
    """, x=last, segment=config.segment, lanes=config.lanes,
        last=frame.minimum(f"group_{last} + {config.segment}", f"extent_{last}"))
    if n_axes > 1:
        lines += [f"const long start_{last - 1} = (long)get_group_id(1) * {config.band};"]
        lines += _end(last - 1, config.band)
    if n_axes == 3:
        lines += [f"const long start_0 = (long)get_group_id(2) * {config.depth};"]
        lines += _end(0, config.depth)
    if n_axes == 4:
        lines += block("""
            const long group_0 = (extent_1 + $more) / $depth;  // axes 0 and 1
            const long start_0 = (long)get_group_id(2) / group_0;
            const long start_1 = ((long)get_group_id(2) - start_0 * group_0) * $depth;
        """, depth=config.depth, more=config.depth - 1)
        lines += _end(1, config.depth)
    return lines


def _end(axis: int, cells: int) -> list[str]:
    """A C line: the end of the item's cells along an axis."""
    end = frame.minimum(f"start_{axis} + {cells}", f"extent_{axis}")
    return [f"const long last_{axis} = {end};"]


def _block(program: Program, stage: Stage, config: RowsConfig) -> list[str]:
    """C lines: one block of the item."""
    fields, last = used_fields(stage), program.n_axes - 1
    n_rows = config.planes * config.rows
    return block("""
        long $starts;  // of each row, where the loop starts
        #pragma unroll
        for (int item = 0; item < $n_rows; ++item) {
            $rows
            const long item_skip = -(long)((ulong)(${u}_new + start_$u) / sizeof($cell)) & $most;
            if (item_skip) {
                $ahead_of_first
                kgt_first(${u}_new + start_$u, KGT_AT(0), item_skip);
            }
            $first
        }
        $vectors
        #pragma unroll
        for (int item = 0; item < $n_rows; ++item) {
            $rows
            long item_at = c_$u[item] - start_$u + item_x;
            if (item_at <= item_cells - $lanes) {
                KGT_STORE(KGT_AT(item_at), ${u}_new + start_$u + item_at);
                item_at += $lanes;
            }
            if (item_at < item_cells) {
                $ahead_of_last
                kgt_last(${u}_new + start_$u + item_cells,
                    KGT_AT(item_cells - $lanes), item_cells - item_at);
            }
        }
    """,
        u=stage.writes, cell=OPENCL_TYPES[program.dtype],
        lanes=config.lanes, most=config.lanes - 1, n_rows=n_rows,
        starts=", ".join(f"c_{field}[{n_rows}]" for field in fields),
        rows=[line for field in fields for line in _row(field, config, last)],
        first=[f"c_{field}[item] = start_{field} + item_skip;" for field in fields],
        vectors=_vectors(program, stage, config),
        ahead_of_first=_ahead_of_edge(program, stage, config, ""),
        ahead_of_last=_ahead_of_edge(program, stage, config, "item_cells - 1"),
    )


def _vectors(program: Program, stage: Stage, config: RowsConfig) -> list[str]:
    """C lines: the loop over the vectors of a block."""
    sources, _, others = value_arguments(program, stage)
    indices = [f"c_{field}[item] + item_x" for field in sources]
    return block("""
        long item_x = 0;
        for (; item_x <= item_cells - $two; item_x += $lanes) {
            kgt_cells item_values[$n_rows];
            #pragma unroll
            for (int item = 0; item < $n_rows; ++item)
                item_values[item] = kgt_value($arguments);
            $ahead
            #pragma unroll
            for (int item = 0; item < $n_rows; ++item)
                KGT_STORE(item_values[item], ${u}_new + c_$u[item] + item_x);
        }
    """,
        u=stage.writes, lanes=config.lanes, two=2 * config.lanes - 1,
        n_rows=config.planes * config.rows, arguments=", ".join([*sources, *indices, *others]),
        ahead=_ahead(stage, config),
    )


def _ahead(stage: Stage, config: RowsConfig) -> list[str]:
    """C lines: ask for what later blocks read first."""
    if not config.ahead:
        return []
    asked = []
    for field in stage.fields_read:
        offsets = [read.offset for read in reads(stage.expression) if read.field == field]
        newest = [max(axis) for axis in zip(*offsets)][-3:-2]   # of the planes; none in 2-D
        away = (*newest, config.rows + config.ahead - 1, 0)
        step = Read(field, (0,) * (len(offsets[0]) - len(away)) + away)
        asked.append(f"KGT_PREFETCH({field} + {element(step, f'c_{field}[item] + item_x')});")
    return block("""
        // what later blocks read; the processor foresees too little of it
        #pragma unroll
        for (int item = 0; item < $n_rows; ++item) {
            $asked
        }
    """, n_rows=config.planes * config.rows, asked=asked)


def _ahead_of_edge(
    program: Program, stage: Stage, config: RowsConfig, cell: str
) -> list[str]:
    """C lines: ask for the line that holds a cell, in C, of the same row in the next block."""
    if not config.ahead:
        return []
    target = stage.writes
    next_row = Read(target, (0,) * (program.n_axes - 2) + (config.rows, 0))
    start = f"start_{target}" + (f" + {cell}" if cell else "")
    return [f"KGT_PREFETCH({target}_new + {element(next_row, start)});"]


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
    return block("""
        for (long item_$axis = start_$axis; item_$axis < last_$axis; item_$axis += $cells) {
            const long group_$axis = $group;
            $body
        }
    """, axis=axis, cells=cells, group=group, body=body)
