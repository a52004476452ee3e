# SPDX-License-Identifier: MIT
"""The body of a "marching" kernel: where the item is, and its steps along the axis."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import prod

from controllers.kgt.strategies.marching.cells import each_cell
from controllers.kgt.strategies.marching.folds import (
    after_steps,
    before_steps,
    in_step,
    named,
    stores_late,
    walk,
    walked,
    walks,
)
from controllers.kgt.strategies.marching.handing import Handing
from controllers.kgt.strategies.marching.parameters import MarchingParameters
from controllers.kgt.strategies.marching.registers import Registers
from controllers.kgt.strategies.marching.stores import (
    alike,
    late_stores,
    stores,
    storing_helpers,
)
from controllers.kgt.text import frame
from controllers.kgt.text.analysis import in_vectors
from controllers.kgt.text.c_lines import block, indented
from controllers.kgt.text.division import Reciprocal, divide, quotient_of
from controllers.kgt.text.emitter import OPENCL_TYPES, assignments, cell_index, used_fields
from controllers.kgt.text.fold_text import fold_end_of_group, fold_start, slot_of_group
from controllers.kgt.text.fold_values import values_of
from controllers.kgt.text.lanes import Lanes
from controllers.program.expression import Expression, Read
from controllers.program.program import Program, Stage


def marching_body(program: Program, stage: Stage, config: MarchingParameters) -> list[str]:
    """C lines: the body of the kernel."""
    if not values_of(stage):
        return [*_position(program, stage, config), *_march(program, stage, config)]
    works = ["if (item_works) {", *indented(_march(program, stage, config)), "}"]
    tile = [*_position(program, stage, config), *works]
    return [
        *fold_start(stage, slot_of_group()),
        *(walk(program.n_axes, config, tile) if walks(stage) else tile),
        *fold_end_of_group(stage, prod(config.group), config.group[:2]),
    ]


def marching_helpers(program: Program, stage: Stage, config: MarchingParameters) -> list[str]:
    """C lines: the functions that the kernel calls."""
    lines = storing_helpers(program, stage, config)
    for field, (_, found) in _quotients(program, stage, config).items():
        name = named("kgt_divide", stage, field)
        lines += [*divide(name, found, program.dtypes[field], config.lanes), ""]
    return lines


def _quotients(
    program: Program, stage: Stage, config: MarchingParameters
) -> dict[str, tuple[Expression, Reciprocal]]:
    """Of the updates that are quotients by a constant, what is divided, and how."""
    if not config.reciprocals or not in_vectors(stage, program.dtypes):
        return {}
    dtype = program.dtype_of(stage)
    each = {f: quotient_of(value, dtype) for f, value in stage.updates.items()}
    return {field: found for field, found in each.items() if found is not None}


def _position(program: Program, stage: Stage, config: MarchingParameters) -> list[str]:
    """C lines: `start_A`, the item's first cell in the box, and the element of it in each field."""
    last = program.n_axes - 1
    pitches = "".join(f" + start_{axis} * {{0}}_pitch_{axis}" for axis in range(last))
    moves = "" if config.steps > 1 else "const "
    counts = [config.along(axis, program.n_axes) for axis in range(last)]
    starts = ["item" if count > 1 else "start" for count in counts]
    numbers = dict(_numbers(program.n_axes, config, stage))
    tests = [f"start_{last} >= extent_{last}"]
    tests += [f"{starts[axis]}_{axis} >= extent_{axis}" for axis in numbers]
    return block("""
        $along_row
        $others
        $ends
        $elements
    """,
        along_row=_along_row(stage, last, config.lanes),
        others=[line for axis, n in numbers.items() for line in _along(axis, n, counts[axis])],
        ends=_ends(stage, " || ".join(tests)),
        elements=[
            f"{moves}long {cell_index(field, stage)} = "
            f"{field}_first{pitches.format(field)} + start_{last};"
            for field in _indexed(stage, config)
        ] + alike(stage, config),
    )  # fmt: skip


def _indexed(stage: Stage, config: MarchingParameters) -> tuple[str, ...]:
    """The fields that have an index of their own."""
    return used_fields(stage)[:1] if config.one_index else used_fields(stage)


def _ends(stage: Stage, outside: str) -> list[str]:
    """C lines: what an item does that has no cells."""
    if not values_of(stage):
        return [f"if ({outside})", "    return;"]
    return [f"const int item_works = !({outside});"]


def _id(stage: Stage, n_axes: int, dimension: int) -> str:
    """C text: the item's number along a dimension of OpenCL's."""
    if walks(stage) and dimension == walked(n_axes):
        return "item_walk"
    return f"(long)get_global_id({dimension})"


def _along_row(stage: Stage, last: int, lanes: int) -> list[str]:
    """C lines: the item's first cell in its row."""
    number, written = _id(stage, last + 1, 0), (*stage.stored, *used_fields(stage))[0]
    if lanes == 1:
        return [f"const long start_{last} = {number};"]
    return block("""
        // Vectors are aligned: the first may start before the box, the last end after it.
        const long start_$x = $number * $lanes - (${u}_first & $most);
    """, x=last, number=number, u=written, lanes=lanes, most=lanes - 1)


def _along(axis: int, number: str, count: int) -> list[str]:
    """C lines: the item's first cell along another axis, early enough for its last ones."""
    if count == 1:
        return [f"const long start_{axis} = {number};"]
    return block("""
        const long item_$axis = $number * $count;
        const long start_$axis = $start;
    """, axis=axis, number=number, count=count,
        start=frame.minimum(f"item_{axis}", f"extent_{axis} - {count}"))


def _numbers(
    n_axes: int, config: MarchingParameters, stage: Stage
) -> Iterator[tuple[int, str]]:
    """Per axis but the last, C text of the item's number along it."""
    if n_axes == 4:
        number = _id(stage, n_axes, 2)
        cells = config.along(1, n_axes)
        count = f"((extent_1 + {cells - 1}) / {cells})"
        yield 0, f"{number} / {count}"
        yield 1, f"({number} - start_0 * {count})"
    for axis in range(max(0, n_axes - 3), n_axes - 1):
        if n_axes < 4 or axis > 1:
            yield axis, _id(stage, n_axes, n_axes - 1 - axis)


def _march(program: Program, stage: Stage, config: MarchingParameters) -> list[str]:
    """C lines: the marching, with what is loaded before it and in each step."""
    fields = used_fields(stage)
    types = {field: OPENCL_TYPES[program.dtypes[field]] for field in fields}
    handing = Handing.of(program, stage, config)

    def kept(reads: Iterable[Read]) -> Registers:
        across = config.across(program.n_axes)
        return Registers.of(stage, config.lanes, config.axis, types, across, config.rows, reads)

    registers = kept(handing.reads(handing.stage) if handing else stage.reads)
    before, first, after = registers.loads()
    rows = [
        _row(program, stage, config, registers.of_row(row), handing) for row in range(config.rows)
    ]
    if config.rows > 1:
        rows = [["{", *indented(row), "}"] for row in rows]
    step = [*first, *(line for row in rows for line in row)]
    if handing:
        before += _handed(program, config, kept(handing.first.reads), handing)
        after = [*after, *handing.hand_on(config.lanes)]
    if config.steps > 1:
        moves = [
            f"{cell_index(field, stage)} += {field}_pitch_{config.axis};"
            for field in _indexed(stage, config)
        ]
        step = block("""
            #pragma unroll$times
            for (int item = 0; item < $steps; ++item) {
                $step
            }
        """, times=" 1" if config.looped else "", steps=config.steps,
            step=[*alike(stage, config), *step, *after, *moves])  # fmt: skip
    ready = before_steps(program, stage, config)
    made = after_steps(program, stage, config)
    sides = kept(stage.reads).sides(program.n_axes - 1)
    late = late_stores(program, stage, config)
    return [*sides, *ready, "", *before, *step, *late, *made]


def _handed(
    program: Program, config: MarchingParameters, registers: Registers, handing: Handing
) -> list[str]:
    """C lines: what is handed on to the first step."""
    before, first, _ = registers.loads()
    (kind,) = {OPENCL_TYPES[dtype] for dtype in handing.dtypes.values()}
    cells = f"[{config.lanes}]" if config.lanes > 1 else ""
    names = handing.variables(handing.first)
    return block("""
        $kind $names;
        {
            $loads
            $values
            $hand_on
        }
    """, kind=kind, names=", ".join(f"{name}{cells}" for name in handing.dtypes),
        loads=[*before, *first],
        values=each_cell(program, handing.first, config, registers, names, handing.dtypes),
        hand_on=handing.hand_on(config.lanes))


def _row(
    program: Program, stage: Stage, config: MarchingParameters, registers: Registers,
    handing: Handing | None,
) -> list[str]:  # fmt: skip
    """C lines: the cells of a row, in one step."""
    names = {field: named("item_value", stage, field) for field in stage.updates}
    if in_vectors(stage, program.dtypes):
        values = _values(program, stage, config, registers)
    elif handing:
        names |= handing.variables(handing.stage)
        values = each_cell(program, handing.stage, config, registers, names, handing.dtypes)
    else:
        values = each_cell(program, stage, config, registers, names)
    row = registers.row
    now = [] if stores_late(stage, config) else stores(program, stage, config, row)
    return [*values, *now, *in_step(program, stage, config, row)]


def _values(
    program: Program, stage: Stage, config: MarchingParameters, registers: Registers
) -> list[str]:
    """C lines: the vector of each updated field."""
    lanes, cell = Lanes(config.lanes), OPENCL_TYPES[program.dtype_of(stage)]
    found = _quotients(program, stage, config)
    updates = {f: found[f][0] if f in found else value for f, value in stage.updates.items()}
    targets = {f: f"kgt_cells {named('item_value', stage, f)}" for f in updates}
    kind = lanes.type(cell) if found else f"const {lanes.type(cell)}"
    part = replace(stage, updates=updates) if found else stage
    lines = assignments(targets, part, program.dtype_of(stage), registers.read, lanes)
    return [line.replace("kgt_cells", kind) for line in lines] + [
        f"{named('kgt_divide', stage, f)}(({cell} *)&{named('item_value', stage, f)});"
        for f in found
    ]
