# SPDX-License-Identifier: MIT
"""The body of a "rows" kernel: the item's band, block by block, each block vector by vector."""
from __future__ import annotations

from collections.abc import Callable

from controllers.kgt.strategies.rows.item import (
    blocked_axes,
    cells_of_item,
    each_once,
    last_early,
)
from controllers.kgt.strategies.rows.parameters import RowsParameters, shares_rows
from controllers.kgt.strategies.rows.row_value import PLACE, places_of, typed, value_arguments
from controllers.kgt.text.c_lines import block, indented
from controllers.kgt.text.emitter import OPENCL_TYPES, element, statement, used_fields
from controllers.kgt.text.fold_blocks import (
    blocks_noted,
    is_noted,
    is_watched,
    lanes_take_blocks,
    noted,
    tested,
)
from controllers.kgt.text.fold_lanes import lanes_end, lanes_start, lanes_take
from controllers.kgt.text.fold_values import values_of
from controllers.kgt.text.given import axes_of
from controllers.program.expression import Read
from controllers.program.program import Program, Stage

# For a unit of `ahead` where rows share nothing: bytes to what comes into the second-level cache,
# and from there to the first one.
_DISTANCES = {"KGT_PREFETCH": 1024, "KGT_PREFETCH_NEAR": 256}


def rows_body(program: Program, stage: Stage, config: RowsParameters) -> list[str]:
    """C lines: the body of the kernel."""
    last, once = program.n_axes - 1, bool(stage.overwrites or values_of(stage))
    item_cells = f"const long item_cells = last_{last} - start_{last};"
    loops = each_once if stage.overwrites else last_early
    blocks = loops(last, config, lambda part: _block(program, stage, part))
    lines = [*cells_of_item(config, program.n_axes, once=once), item_cells]
    if not values_of(stage):
        return [*lines, *blocks]
    start, end = lanes_start(stage, config.lanes), lanes_end(stage, config.lanes)
    return [*lines, *start, *blocks, *end]


def _block(program: Program, stage: Stage, config: RowsParameters) -> list[str]:
    """C lines: one block of the item."""
    last, n_rows, first = program.n_axes - 1, config.planes * config.rows, _first(stage)
    starts = {f"c_{field}": f"start_{field}" for field in used_fields(stage)}
    starts |= {PLACE: f"start_{last}"} if last in axes_of(stage) else {}
    return block("""
        long $starts;  // of each row, where the loop starts
        #pragma unroll
        for (int item = 0; item < $n_rows; ++item) {
            $rows
            const long item_skip = -(long)((ulong)($at + start_$u) / sizeof($cell)) & $most;
            if (item_skip) {
                $ahead_of_first
                $store_first
            }
            $first
        }
        $vectors
        #pragma unroll
        for (int item = 0; item < $n_rows; ++item) {
            $rows
            long item_at = c_$u[item] - start_$u + item_x;
            if (item_at <= item_cells - $lanes) {
                $store_whole
                item_at += $lanes;
            }
            if (item_at < item_cells) {
                $ahead_of_last
                $store_last
            }
        }
    """,
        u=first, at=first + "_new" * bool(stage.stored), cell=OPENCL_TYPES[program.dtypes[first]],
        lanes=config.lanes, most=config.lanes - 1, n_rows=n_rows, rows=_rows(stage, config, last),
        starts=", ".join(f"{name}[{n_rows}]" for name in starts),
        first=[f"{name}[item] = {start} + item_skip;" for name, start in starts.items()],
        vectors=_vectors(program, stage, config),
        ahead_of_first=_ahead_of_edge(program, stage, config, ""),
        ahead_of_last=_ahead_of_edge(program, stage, config, "item_cells - 1"),
        **_ends(program, stage, config),
    )


def _rows(stage: Stage, config: RowsParameters, last: int) -> list[str]:
    """C lines: where a row of the block lies, in each field and in the domain."""
    rows = [line for field in used_fields(stage) for line in _row(field, config, last)]
    return [*rows, *_places(stage, config, last)]


def _first(stage: Stage) -> str:
    """The updated field whose rows say where vectors start."""
    return next(iter((*stage.stored, *stage.fields_read)))


def _named(name: str, program: Program, stage: Stage, field: str) -> str:
    """What is called `name` for cells of the first updated field, for those of another one."""
    return typed(name, program.dtypes[field], program.dtypes[_first(stage)])


def _store(program: Program, stage: Stage, field: str) -> str:
    """The macro that stores whole vectors of a field."""
    if field == _first(stage):
        return "KGT_STORE"
    return _named("KGT_STORE_ANYWHERE", program, stage, field)


def _ends(program: Program, stage: Stage, config: RowsParameters) -> dict[str, list[str]]:
    """C lines: what stores the first cells of a row, its last whole vector, and its last cells."""
    lanes = config.lanes

    def fold(*inside: str) -> list[str]:
        return _folded(program, stage, config, "item_each", inside)

    def part(which: str, field: str) -> str:
        return _named(f"kgt_{which}", program, stage, field)

    return {
        "store_first": _stored(stage, "KGT_AT(0)", lambda field, value: [
            f"{part('first', field)}({field}_new + start_{field}, {value}, item_skip);"
        ], fold("0", "item_skip")),
        "store_whole": _stored(stage, "KGT_AT(item_at)", lambda field, value: [
            f"{_store(program, stage, field)}({value}, {field}_new + start_{field} + item_at);"
        ], fold()),
        "store_last": _stored(stage, f"KGT_AT(item_cells - {lanes})", lambda field, value: [
            f"{part('last', field)}({field}_new + start_{field} + item_cells,",
            f"    {value}, item_cells - item_at);",
        ], fold(f"{lanes} - (item_cells - item_at)", str(lanes))),
    }  # fmt: skip


def _stored(
    stage: Stage, value: str, store: Callable[[str, str], list[str]], folded: list[str]
) -> list[str]:
    """C lines: `store` of each updated field and its vector of what `value` computes; folds."""
    if len(stage.updates) == 1 and stage.stored:
        return store(_first(stage), value)
    lines = [f"const {_kind(stage)} item_each = {value};"]
    lines += [line for field in stage.stored for line in store(field, f"item_each.{field}")]
    return [*lines, *folded]


def _kind(stage: Stage) -> str:
    """The type of what `kgt_value` computes."""
    return "kgt_cells" if len(stage.updates) == 1 else "kgt_values"


def _folded(
    program: Program, stage: Stage, config: RowsParameters, vectors: str,
    inside: tuple[str, ...] = (),
) -> list[str]:  # fmt: skip
    """C lines: fold a vector of row `item` of the block, unless it is another block's or item's."""
    if not values_of(stage):
        return []
    one = len(stage.updates) == 1
    return _own(program, stage, config, lanes_take(
        stage, program.dtypes.__getitem__,
        lambda field: vectors if one else f"{vectors}.{field}", config.lanes,
        (inside[0], inside[1]) if inside else None,
    ))  # fmt: skip


def _own(program: Program, stage: Stage, config: RowsParameters, lines: list[str]) -> list[str]:
    """The same lines for what is of no other block or item."""
    last = program.n_axes - 1
    own = [] if stage.overwrites else [
        f"{_place(axis, config, last)} >= item_{axis} && {_place(axis, config, last)} < last_{axis}"
        for axis, cells in blocked_axes(config, last).items() if cells > 1
    ]  # fmt: skip
    return [f"if ({' && '.join(own)}) {{", *indented(lines), "}"] if own else lines


def _vectors(program: Program, stage: Stage, config: RowsParameters) -> list[str]:
    """C lines: the loop over the vectors of a block."""
    sources, _, others = value_arguments(program, stage)
    indices = [f"c_{field}[item] + item_x" for field in sources]
    places = [
        f"{PLACE}[item] + item_x" if name == PLACE else name for name in places_of(program, stage)
    ]
    arguments = ", ".join([*sources, *indices, *others, *places])
    value, n_rows = f"kgt_value({arguments})", config.planes * config.rows
    outer = _places(stage, config, program.n_axes - 1)
    ahead, first = _ahead(program, stage, config), value.replace("[item]", "[0]")
    loop = block("""
        for (; item_x $before; item_x += $lanes) {
            $kind item_values[$n_rows];
            #pragma unroll
            $compute
            $ahead
            #pragma unroll
            $store
        }
    """,
        lanes=config.lanes, n_rows=n_rows,
        before="< kgt_end" if is_noted(stage) else f"<= item_cells - {2 * config.lanes - 1}",
        compute=_for_rows(n_rows, [*outer, f"item_values[item] = {value};"]),
        ahead=ahead, kind=_kind(stage),
        store=_stored_rows(program, stage, config),
    )
    if is_noted(stage):
        again = [*outer, *_own(program, stage, config, tested(stage, lambda f: f"{value}.{f}"))]
        loop = blocks_noted(stage, loop, _for_rows(n_rows, again), config.lanes, n_rows)
    if is_watched(stage) and n_rows == 1:
        loop = [*lanes_take_blocks(stage, first, config.lanes, ahead), *loop, "#endif"]
    return ["long item_x = 0;", *loop]


def _stored_rows(program: Program, stage: Stage, config: RowsParameters) -> list[str]:
    """C lines: the loop that stores and folds a vector of each row."""
    several, n_rows = len(stage.updates) > 1, config.planes * config.rows
    folded = _folded(program, stage, config, "item_values[item]")
    if is_noted(stage):
        folded = _own(program, stage, config, noted(stage, lambda f: f"item_values[item].{f}"))
    return _for_rows(n_rows, [*(
        f"{_store(program, stage, f)}(item_values[item]{f'.{f}' if several else ''}, "
        f"{f}_new + c_{f}[item] + item_x);"
        for f in stage.stored
    ), *folded])  # fmt: skip


def _for_rows(n_rows: int, statements: list[str]) -> list[str]:
    """C lines: a loop over the rows of a block."""
    loop = f"for (int item = 0; item < {n_rows}; ++item)"
    if len(statements) == 1:
        return [loop, *indented(statements)]
    return [f"{loop} {{", *indented(statements), "}"]


def _ahead(program: Program, stage: Stage, config: RowsParameters) -> list[str]:
    """C lines: ask for what later blocks read first; where rows share nothing, what comes soon."""
    if not config.ahead:
        return []
    asked = []
    for field in stage.fields_read:
        offsets = [read.offset for read in stage.reads if read.field == field]
        newest = tuple(max(axis) for axis in zip(*offsets))
        at = f"c_{field}[item] + item_x"
        if shares_rows(stage):
            planes = newest[-3:-2]      # none in 2-D
            away = (*planes, config.rows + config.ahead - 1, 0)
            found = {"KGT_PREFETCH": at}
        else:       # a row is read in no time: what is asked for is in the same one, twice
            away, cell = (*newest[:-1], 0), OPENCL_TYPES[program.dtypes[field]]
            found = {
                macro: f"{at} + {config.ahead * n_bytes} / sizeof({cell})"
                for macro, n_bytes in _DISTANCES.items()
            }
        step = Read(field, (0,) * (len(newest) - len(away)) + away)
        asked += [f"{macro}({field} + {element(step, there)});" for macro, there in found.items()]
    return block("""
        // what later blocks read; the processor foresees too little of it
        #pragma unroll
        for (int item = 0; item < $n_rows; ++item) {
            $asked
        }
    """, n_rows=config.planes * config.rows, asked=asked)


def _ahead_of_edge(
    program: Program, stage: Stage, config: RowsParameters, cell: str
) -> list[str]:
    """C lines: ask for the line that holds a cell, in C, of the same row in the next block."""
    if not config.ahead or program.n_axes == 1:
        return []
    lines = []
    for field in stage.stored:
        next_row = Read(field, (0,) * (program.n_axes - 2) + (config.rows, 0))
        start = f"start_{field}" + (f" + {cell}" if cell else "")
        lines.append(f"KGT_PREFETCH({field}_new + {element(next_row, start)});")
    return lines


def _row(field: str, config: RowsParameters, last: int) -> list[str]:
    """C lines: `start_FIELD`, the item's first element in row `item` of the block."""
    steps = [f"+ {_place(axis, config, last)} * {field}_pitch_{axis}" for axis in range(last)]
    return statement(f"const long start_{field}", [f"{field}_first", *steps, f"+ start_{last}"])


def _places(stage: Stage, config: RowsParameters, last: int) -> list[str]:
    """C lines: where in the box the row `item` of the block is."""
    axes = [axis for axis in axes_of(stage) if axis != last]
    return [f"const long {PLACE}_{axis} = {_place(axis, config, last)};" for axis in axes]


def _place(axis: int, config: RowsParameters, last: int) -> str:
    """C text, as tight as a name: where the row `item` of the block is along an axis."""
    blocked = blocked_axes(config, last)
    first = f"group_{axis}" if axis in blocked else f"start_{axis}"
    if blocked.get(axis, 1) == 1:
        return first
    inside = f"item {'%' if axis == last - 1 else '/'} {config.rows}"
    return f"({first} + {inside if config.rows > 1 and config.planes > 1 else 'item'})"

