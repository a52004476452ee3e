# SPDX-License-Identifier: MIT
"""The body of an "items" kernel: where the rows of the work-item are, and what it stores."""
from __future__ import annotations

from math import prod

from controllers.kgt.strategies.items.item_text import UNROLLED, ItemText, cell_of
from controllers.kgt.strategies.items.user_text import user_text
from controllers.program.dtypes import given_dtype
from controllers.program.item_node import ItemNode, shape_of
from controllers.program.items import Items
from controllers.program.program import Program, Stage


def item_body(program: Program, stage: Stage, items: Items) -> list[str]:
    """C lines: the body of the kernel."""
    lines = ["const long item = get_global_id(0);", "if (item >= extent_0)", "    return;"]
    of_rows = [field for field, use in items.use_of.items() if use == "row"]
    for field in (*of_rows, *stage.updates):
        lines.append(f"const long {cell_of(field)} = {field}_first + item * {field}_pitch_0;")
    real = given_dtype(stage, program.dtypes)
    if items.text:
        return [*lines, *user_text(items, program.dtypes, real)]
    text = ItemText(items, real)
    for name, node in zip(items.writes, items.results, strict=True):
        field = items.field_of[name]
        _store(text, field, program.dtypes[field], node)
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
