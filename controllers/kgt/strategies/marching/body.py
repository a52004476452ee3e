# SPDX-License-Identifier: MIT
"""The body of a "marching" kernel: where the item is, and its steps along the axis."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from controllers.kgt.strategies.marching.registers import Registers
from controllers.kgt.text import frame
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.division import divide, quotient_of
from controllers.kgt.text.emitter import OPENCL_TYPES, assignment, cell_index, used_fields
from controllers.kgt.text.lanes import Lanes
from controllers.program.program import Program, Stage

if TYPE_CHECKING:
    from controllers.kgt.strategies.marching.config import MarchingConfig


def marching_body(program: Program, stage: Stage, config: MarchingConfig) -> list[str]:
    """C lines: the body of the kernel."""
    return [*_position(program, stage, config), *_march(program, stage, config)]


def marching_helpers(program: Program, stage: Stage, config: MarchingConfig) -> list[str]:
    """C lines: the functions that the kernel calls."""
    lines, dtype = [], program.dtype_of(stage)
    if config.lanes > 1:
        lines += _store(OPENCL_TYPES[dtype], Lanes(config.lanes))
    found = quotient_of(stage.expression, dtype) if config.reciprocals else None
    if found:
        lines += [*divide("kgt_divide", found[1], dtype, config.lanes), ""]
    return lines


def _store(cell: str, lanes: Lanes) -> list[str]:
    """C lines: the function `kgt_store`, which stores the cells of a vector that are in the box."""
    one = "if (first <= {0} && {0} < last) to[{0}] = cells.s{0};"
    return [*block("""
        // the cells `first` to `last` - 1 of a vector
        void kgt_store(__global $cell *to, const $vector cells,
                       const long first, const long last)
        {
            if (first == 0 && last == $width)
                *(__global $vector *)to = cells;
            else {
                $one_by_one
            }
        }
    """, cell=cell, vector=lanes.type(cell), width=lanes.width,
        one_by_one=[one.format(lane) for lane in range(lanes.width)]), ""]


def _position(program: Program, stage: Stage, config: MarchingConfig) -> list[str]:
    """C lines: `start_A`, the item's first cell in the box, and the element of it in each field."""
    last = program.n_axes - 1
    pitches = "".join(f" + start_{axis} * {{0}}_pitch_{axis}" for axis in range(last))
    moves = "" if config.steps > 1 else "const "
    marches = config.axis if config.steps > 1 and last else None
    starts = ["item" if axis == marches else "start" for axis in range(last)]
    numbers = dict(_numbers(program.n_axes, config))
    tests = [f"start_{last} >= extent_{last}"]
    tests += [f"{starts[axis]}_{axis} >= extent_{axis}" for axis in numbers]
    return block("""
        $along_row
        $others
        if ($outside)
            return;
        $elements
    """,
        along_row=_along_row(last, stage.writes, config.lanes),
        others=[
            line for axis, number in numbers.items()
            for line in _along(axis, number, config.steps if axis == marches else 1)
        ],
        outside=" || ".join(tests),
        elements=[
            f"{moves}long {cell_index(field, stage)} = "
            f"{field}_first{pitches.format(field)} + start_{last};"
            for field in used_fields(stage)
        ],
    )  # fmt: skip


def _along_row(last: int, written: str, lanes: int) -> list[str]:
    """C lines: the item's first cell in its row."""
    if lanes == 1:
        return [f"const long start_{last} = (long)get_global_id(0);"]
    return block("""
        // Vectors are aligned: the first may start before the box, the last end after it.
        const long start_$x = (long)get_global_id(0) * $lanes - (${u}_first & $most);
    """, x=last, u=written, lanes=lanes, most=lanes - 1)


def _along(axis: int, number: str, steps: int) -> list[str]:
    """C lines: the item's first cell along another axis, early enough for its last steps."""
    if steps == 1:
        return [f"const long start_{axis} = {number};"]
    return block("""
        const long item_$axis = $number * $steps;
        const long start_$axis = $start;
    """, axis=axis, number=number, steps=steps,
        start=frame.minimum(f"item_{axis}", f"extent_{axis} - {steps}"))


def _numbers(n_axes: int, config: MarchingConfig) -> Iterator[tuple[int, str]]:
    """Per axis but the last, C text of the item's number along it."""
    if n_axes == 4:
        steps = config.steps if config.axis == 1 else 1
        count = f"((extent_1 + {steps - 1}) / {steps})"
        yield 0, f"(long)get_global_id(2) / {count}"
        yield 1, f"((long)get_global_id(2) - start_0 * {count})"
    for axis in range(max(0, n_axes - 3), n_axes - 1):
        if n_axes < 4 or axis > 1:
            yield axis, f"(long)get_global_id({n_axes - 1 - axis})"


def _march(program: Program, stage: Stage, config: MarchingConfig) -> list[str]:
    """C lines: the marching, with what is loaded before it and in each step."""
    last, lanes, dtype = program.n_axes - 1, Lanes(config.lanes), program.dtype_of(stage)
    cell = OPENCL_TYPES[dtype]
    registers = Registers.of(stage, config.lanes, config.axis, cell)
    target = f"{stage.writes}_new", cell_index(stage.writes, stage)
    found = quotient_of(stage.expression, dtype) if config.reciprocals else None
    part = replace(stage, updates={stage.writes: found[0]}) if found else stage
    kind = lanes.type(cell) if found else f"const {lanes.type(cell)}"
    value = assignment("kgt_cells item_value", part, dtype, registers.read, lanes)
    value = [line.replace("kgt_cells", kind) for line in value]
    if found:
        value.append(f"kgt_divide(({cell} *)&item_value);")
    store = f"{target[0]}[{target[1]}] = item_value;"
    if config.lanes > 1:
        store = f"kgt_store({target[0]} + {target[1]}, item_value, item_first, item_last);"
    before, first, after = registers.loads()
    step = [*first, *value, store]
    if config.steps > 1:
        fields = used_fields(stage)
        moves = [f"{cell_index(field, stage)} += {field}_pitch_{config.axis};" for field in fields]
        step = block("""
            #pragma unroll
            for (int item = 0; item < $steps; ++item) {
                $step
            }
        """, steps=config.steps, step=[*step, *after, *moves])
    return [*registers.sides(last), "", *before, *step]
