# SPDX-License-Identifier: MIT
"""The body of an "items" kernel: where the rows of the work-item are, and what it stores."""
from __future__ import annotations

from math import prod

import numpy as np

from controllers.kgt.strategies.items.item_text import UNROLLED, ItemText, cell_of
from controllers.kgt.strategies.items.user_text import user_text
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.fold_text import (
    fold_cells,
    fold_end,
    fold_end_of_group,
    fold_start,
    slot_of_group,
    slot_of_item,
)
from controllers.kgt.text.fold_values import values_of
from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.program.dtypes import given_dtype
from controllers.program.item_node import ItemNode, shape_of
from controllers.program.items import Items
from controllers.program.program import Program, Stage


def item_body(program: Program, stage: Stage, items: Items) -> list[str]:
    """C lines: the body of the kernel."""
    lines = ["const long item = get_global_id(0);", "if (item >= extent_0)", "    return;"]
    return [*lines, *_item(program, stage, items)]


def summing_body(program: Program, stage: Stage, items: Items, most_items: int) -> list[str]:
    """C lines: the body of a kernel that sums over items, several of which a work-item computes.

    most_items: of a work-group, which sums together; 0: each work-item sums alone.
    """
    taken = fold_cells(stage, lambda field, _: f"item_value_{field}")
    return block("""
        $start
        // the group's part of the items, which its work-items share
        const long group_items = (extent_0 - 1) / (long)get_num_groups(0) + 1;
        const long group_from = (long)get_group_id(0) * group_items;
        const long group_to = min(group_from + group_items, extent_0);
        for (long item = group_from + (long)get_local_id(0); item < group_to;
             item += get_local_size(0)) {
            $item
            $taken
        }
        $end
    """, start=fold_start(stage, slot_of_group() if most_items else slot_of_item()),
        item=_item(program, stage, items), taken=taken,
        end=fold_end_of_group(stage, most_items) if most_items else fold_end(stage),
    )  # fmt: skip


def _item(program: Program, stage: Stage, items: Items) -> list[str]:
    """C lines: what is computed of the item number `item` of the box."""
    rows = [field for field, use in items.use_of.items() if use == "row"]
    lines = [
        f"const long {cell_of(field)} = {field}_first + item * {field}_pitch_0;"
        for field in (*rows, *stage.stored)
    ]
    columns = [field for field, use in items.use_of.items() if use == "column"]
    for field, kind in ((field, items.kind_of[field]) for field in columns):
        width = kind.extent[1] // kind.shape[1]
        lines.append(f"const long {cell_of(field)} = {field}_first + item * {width};")
    real = given_dtype(stage, program.dtypes)
    values = iter(values_of(stage))
    if items.text:
        lines += user_text(items, program.dtypes, real, [*values])
        return lines
    text = ItemText(items, real)
    for name, node in zip(items.writes, items.results, strict=True):
        field = items.field_of[name]
        _store(text, field, program.dtypes[field], node)
    for _, node in items.sums if values_of(stage) else ():
        for index in np.ndindex(shape_of(node.axes)):
            one = next(values)
            target = f"const {OPENCL_TYPES[one.dtype]} item_value_{one.value}"
            text.store(target, node, index, one.dtype)
    return [*lines, *text.lines]


def _store(text: ItemText, field: str, dtype: str, node: ItemNode) -> None:
    """Each element of a result, by loops along axes of many."""
    index: list[int | str] = []

    def along(number: int, column: str) -> None:
        if number == len(node.axes):
            text.store(f"{field}_new[{cell_of(field)}{column}]", node, tuple(index), dtype)
            return
        rest = prod(shape_of(node.axes[number + 1 :]))
        times = f" * {rest}" if rest > 1 else ""
        axis = node.axes[number]
        if axis.size <= UNROLLED:
            for at in range(axis.size):
                index.append(at)
                along(number + 1, f"{column} + {at * rest}" if at else column)
                index.pop()
            return
        with text.loop(axis) as variable:
            index.append(variable)
            along(number + 1, f"{column} + {variable}{times}")
            index.pop()

    along(0, "")
