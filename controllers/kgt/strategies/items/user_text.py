# SPDX-License-Identifier: MIT
"""The body of an item in OpenCL C, as its user wrote it, and the macros that it may use.

    x(k)            element k, in C order, of the item's row of an array
    every(j, k)     element k of row j of a whole array, or of the item's column, which has
                    ROWS(every) rows; of rows around the item's, of the one j rows behind its own
    y_new(k)        what element k of a result becomes; of a sum over all items, what is summed
    eps             a number that is given with a call
    INDEX(0)        the number of the item
    VALUE           the type of the first result
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from controllers.kgt.strategies.items.item_text import FIRST, cell_of, row_around, rows_name
from controllers.kgt.text.c_lines import indented
from controllers.kgt.text.c_text import plus
from controllers.kgt.text.fold_values import FoldValue
from controllers.kgt.text.given import PREFIX
from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.program.item_node import shape_of
from controllers.program.items import Items


def user_text(
    items: Items, dtypes: Mapping[str, str], real: str, values: Sequence[FoldValue]
) -> list[str]:
    """C lines: the user's text in a block of its own.

    dtypes: of the fields.  real: of the numbers that are given with a call.  values: what is
    folded; each is left in a variable of its own.
    """
    macros = _macros(items, dtypes)
    file = (items.file or items.name).replace("\\", "\\\\").replace('"', '\\"')
    own = [f"const {OPENCL_TYPES[real]} {name} = {PREFIX}{name};" for name in items.arguments]
    own += [f"{OPENCL_TYPES[dtype]} {name}[{count}];" for name, dtype, count in items.private]
    counts = {name: prod(shape_of(node.axes)) for name, node in items.sums}
    parts = (f"{_sum_of(name)}[{k}]" for name, count in counts.items() for k in range(count))
    return [
        *(f"{OPENCL_TYPES[node.kind.dtype]} {_sum_of(name)}[{counts[name]}] = {{0}};"
          for name, node in items.sums),
        *(f"#define {name} {text}" for name, text in macros.items()),
        "{",
        *indented(own),
        f'#line {items.line} "{file}"',
        *items.text.split("\n"),
        '#line 1 "generated"',
        "}",
        *(f"#undef {name.partition('(')[0]}" for name in macros),
        *(f"const {OPENCL_TYPES[one.dtype]} item_value_{one.value} = {part};"
          for one, part in zip(values, parts)),
    ]  # fmt: skip


def _macros(items: Items, dtypes: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for name, use in items.item_uses:
        field = items.field_of[name]
        if use == "row":
            found[f"{name}(k)"] = f"{field}[{cell_of(field)} + (k)]"
            continue
        start, row = f"{field}_first", "(long)(j)"
        if use == "column":
            start = cell_of(field)
        elif use != "all":
            row = row_around(field, use.first, f"((long)(j){plus(-use.first)})")
        found[f"{name}(j, k)"] = f"{field}[{start} + {row} * {field}_pitch_0 + (k)]"
        if name != field:
            found[rows_name(name)] = rows_name(field)
    for name in items.writes:
        field = items.field_of[name]
        found[f"{name}_new(k)"] = f"{field}_new[{cell_of(field)} + (k)]"
    for name, _ in items.sums:
        found[f"{name}_new(k)"] = f"{_sum_of(name)}[k]"
    first = [dtypes[items.field_of[name]] for name in items.writes]
    first += [node.kind.dtype for _, node in items.sums]
    return {
        **found, "ROWS(field)": rows_name("field##"), "INDEX(axis)": f"({FIRST} + item)",
        "VALUE": OPENCL_TYPES[first[0]],
    }  # fmt: skip


def _sum_of(name: str) -> str:
    """The variable that holds what an item gives to a sum."""
    return f"kgt_sum_of_{name}"
