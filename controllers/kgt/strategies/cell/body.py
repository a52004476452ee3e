# SPDX-License-Identifier: MIT
"""The body of a "cell" kernel: where the work-item's cell is, and its values."""
from __future__ import annotations

from controllers.kgt.text.c_lines import block
from controllers.kgt.text.emitter import OPENCL_TYPES, assignments, cell_index, used_fields
from controllers.kgt.text.fold_text import (
    fold_cells,
    fold_end,
    fold_end_of_group,
    fold_start,
    slot_of_group,
    slot_of_item,
)
from controllers.kgt.text.given import axes_of
from controllers.program.program import Program, Stage


def cell_body(program: Program, stage: Stage) -> list[str]:
    """C lines: the body of the kernel."""
    n_axes = program.n_axes
    lines = ["// The group's first cell; " + (
        "no cell is computed twice." if stage.overwrites
        else "the last group of an axis starts early: it ends with the box."
    )]  # fmt: skip
    for axis in range(max(0, n_axes - 3), n_axes):
        lines += (
            _two_outer_axes() if n_axes == 4 and axis == 1
            else _group_start(axis, n_axes, early=not stage.overwrites)
        )  # fmt: skip
    lines += _outside(n_axes) if stage.overwrites else []
    for axis in axes_of(stage):
        lines.append(f"const long item_{axis} = start_{axis}{_local_id(axis, n_axes)};")
    for field in used_fields(stage):
        lines += _index(field, cell_index(field, stage), n_axes)
    cells = {field: f"{field}_new[{cell_index(field, stage)}]" for field in stage.updates}
    if len(cells) == 1 or not stage.overwrites:
        return [*lines, "", *assignments(cells, stage, program.dtypes)]
    values = {field: f"item_value_{field}" for field in cells}  # all before the first is stored
    types = {field: OPENCL_TYPES[program.dtypes[field]] for field in cells}
    made = {field: f"const {types[field]} {value}" for field, value in values.items()}
    stores = [f"{cell} = {values[field]};" for field, cell in cells.items()]
    return [*lines, "", *assignments(made, stage, program.dtypes), *stores]


def cells_body(program: Program, stage: Stage, most_items: int = 0) -> list[str]:
    """C lines: the body of a kernel that folds; an item computes several cells.

    most_items: of a work-group that folds together; without it, each item folds alone.
    """
    last, outer = program.n_axes - 1, range(program.n_axes - 1)
    steps = "".join(f" + item_{axis} * {{0}}_pitch_{axis}" for axis in outer)
    types = {field: OPENCL_TYPES[program.dtypes[field]] for field in stage.updates}
    targets = {field: f"const {kind} item_value_{field}" for field, kind in types.items()}
    slot = slot_of_group() if most_items else slot_of_item()
    end = fold_end_of_group(stage, most_items) if most_items else fold_end(stage)
    return block("""
        $start
        const long item_rows = $rows;
        // the group's part of each row, which its items share
        const long item_part = (extent_$x - 1) / (long)get_num_groups(0) + 1;
        const long item_from = (long)get_group_id(0) * item_part;
        const long item_to = item_from + item_part < extent_$x ? item_from + item_part : extent_$x;
        for (long item_row = get_global_id(1); item_row < item_rows;
             item_row += get_global_size(1)) {
            $places
            for (long item_$x = item_from + (long)get_local_id(0); item_$x < item_to;
                 item_$x += get_local_size(0)) {
                $indices
                $computed
                $stores
                $fold
            }
        }
        $end
    """, x=last, start=fold_start(stage, slot),
        rows=" * ".join(f"extent_{axis}" for axis in outer) or "1",
        places=_places(last),
        indices=[
            f"const long {cell_index(field, stage)} = "
            f"{field}_first{steps.format(field)} + item_{last};" for field in used_fields(stage)
        ],
        computed=assignments(targets, stage, program.dtypes),
        stores=[f"{f}_new[{cell_index(f, stage)}] = item_value_{f};" for f in stage.stored],
        fold=fold_cells(stage, lambda field, _: f"item_value_{field}"), end=end,
    )  # fmt: skip


def _places(last: int) -> list[str]:
    """C lines: where along the axes before the last one the row `item_row` is."""
    lines = ["long item_left = item_row;"] if last else []
    for axis in reversed(range(last)):
        lines.append(f"const long item_{axis} = item_left % extent_{axis};")
        lines += [f"item_left /= extent_{axis};"] if axis else []
    return lines


def _outside(n_axes: int) -> list[str]:
    """C lines: work-items behind the box have nothing to do."""
    axes = range(max(0, n_axes - 3) if n_axes < 4 else 2, n_axes)
    tests = (f"start_{axis}{_local_id(axis, n_axes)} >= extent_{axis}" for axis in axes)
    return [f"if ({' || '.join(tests)})", "    return;"]


def _group_start(axis: int, n_axes: int, *, early: bool) -> list[str]:
    """C lines: `start_A`, the first cell of the group in the box; if `early`, of a whole group."""
    if not early:
        dimension = n_axes - 1 - axis
        size = f"(long)get_local_size({dimension})"
        return [f"const long start_{axis} = (long)get_group_id({dimension}) * {size};"]
    return block("""
        const long group_$axis = (long)get_group_id($dimension) * (long)get_local_size($dimension);
        const long last_$axis = extent_$axis - (long)get_local_size($dimension);
        const long start_$axis = group_$axis < last_$axis ? group_$axis : last_$axis;
    """, axis=axis, dimension=n_axes - 1 - axis)    # OpenCL dimension 0 is the last axis


def _two_outer_axes() -> list[str]:
    """C lines: `start_0` and `start_1` of four axes, of which OpenCL has but three."""
    return block("""
        const long start_0 = (long)get_group_id(2) / extent_1;  // axes 0 and 1: one cell
        const long start_1 = (long)get_group_id(2) - start_0 * extent_1;
    """)


def _local_id(axis: int, n_axes: int) -> str:
    """C text to add: where in its group the cell is along an axis."""
    one_per_group = n_axes == 4 and axis < 2
    return "" if one_per_group else f" + (long)get_local_id({n_axes - 1 - axis})"


def _index(field: str, name: str, n_axes: int) -> list[str]:
    """C lines: the element index of the work-item's cell in the buffers of `field`."""
    pitches = [f" * {field}_pitch_{axis}" for axis in range(n_axes - 1)] + [""]
    starts = [f" + start_{axis}{pitch}" for axis, pitch in enumerate(pitches)]
    locals_ = [
        f"(long)get_local_id({n_axes - 1 - axis}){pitch}" for axis, pitch in enumerate(pitches)
    ]
    if n_axes == 4:
        del locals_[:2]  # axes 0 and 1: one cell per group
    first, own = f"{field}_first{''.join(starts)}", " + ".join(locals_)
    if n_axes == 1:
        return [f"const long {name} = {first} + {own};"]
    return block("""
        const long $name = $first
            + $own;
    """, name=name, first=first, own=own)
