# SPDX-License-Identifier: MIT
"""The values of an item cell by cell: what functions, dtypes and choices do not come in vectors.

Memory is read and written in vectors as ever.  In between each cell is computed by the text that
"cell" has, in a loop that is unrolled: what neighbouring cells share, as a quotient of two fields
at one place, a compiler finds and computes once, along the row and from step to step.
"""
from __future__ import annotations

from collections.abc import Mapping

from controllers.kgt.strategies.marching.parameters import MarchingParameters
from controllers.kgt.strategies.marching.registers import Registers
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.emitter import OPENCL_TYPES, assignments, statement
from controllers.kgt.text.given import axes_of
from controllers.program.expression import Read
from controllers.program.program import Program, Stage

_SKIP = [
    "if (item_lane < item_first || item_lane >= item_last)",
    "    continue;   // of what is no cell, a user's loop might not end",
]
PLACE = "item_place"    # of the cell in the box, per axis


def each_cell(
    program: Program, stage: Stage, config: MarchingParameters, registers: Registers,
    names: dict[str, str], handed: Mapping[str, str] = {},
) -> list[str]:  # fmt: skip
    """C lines: the values of the updated fields, arrays of a number per cell by these names.

    handed: what is no field and called as it is in the text, with its dtype.
    """
    dtypes = {**program.dtypes, **handed}
    types = {field: OPENCL_TYPES[dtypes[field]] for field in names}
    if config.lanes == 1:
        targets = {field: f"const {types[field]} {name}" for field, name in names.items()}
        computed = assignments(
            targets, stage, dtypes,
            lambda read: read.field if read.field in handed else registers.read(read),
            place=PLACE, by_value=True,
        )  # fmt: skip
        return [*_places(program, stage, config, registers.row), *computed]
    targets = {field: f"{name}[item_lane]" for field, name in names.items()}
    reads = {read: read.field if read.field in handed else _name(read) for read in stage.reads}
    lines = []
    for read, name in reads.items():
        if read.field in handed:
            continue
        cell = OPENCL_TYPES[program.dtypes[read.field]]
        parts = [f"{each}," for each in registers.each(read)]
        parts = [f"{{{parts[0]}", *parts[1:-1], f"{parts[-1][:-1]}}}"]
        lines += statement(f"const {cell} {name}[{config.lanes}]", parts)
    start = " = {0}" if stage.elements else ""
    lines += [f"{types[field]} {name}[{config.lanes}]{start};" for field, name in names.items()]
    computed = assignments(
        targets, stage, dtypes, lambda read: f"{reads[read]}[item_lane]", place=PLACE,
        by_value=True,
    )  # fmt: skip
    return lines + block("""
        #pragma unroll
        for (int item_lane = 0; item_lane < $lanes; ++item_lane) {
            $skip
            $places
            $computed
        }
    """, lanes=config.lanes, skip=_SKIP if stage.elements else [],
        places=_places(program, stage, config, registers.row), computed=computed)  # fmt: skip


def _places(
    program: Program, stage: Stage, config: MarchingParameters, row: int
) -> list[str]:
    """C lines: where in the box the cell is; one that sticks out is taken for the nearest one."""
    last, lines = program.n_axes - 1, []
    for axis in axes_of(stage):
        at = f"start_{axis}"
        if axis == last and config.lanes > 1:
            at = f"clamp({at} + item_lane, 0L, extent_{axis} - 1)"
        elif axis == config.axis != last and config.steps > 1:
            at += " + item"
        elif row and axis == config.across(program.n_axes):
            at += f" + {row}"
        lines.append(f"const long {PLACE}_{axis} = {at};")
    return lines


def _name(read: Read) -> str:
    """The array of the cells of a read."""
    words = ["0" if not n else f"{'m' if n < 0 else 'p'}{abs(n)}" for n in read.offset]
    return "_".join(["item_of", read.field, *words])
