# SPDX-License-Identifier: MIT
"""What kernels do with the values that a stage folds, as OpenCL C; see kernels_cl/fold.cl.

Sums go to `kgt_digits`: COPIES vectors, of which each work-item or group takes one, so that few
meet.  What is left of the extremes goes to a slot of each work-item or group.
"""
from __future__ import annotations

from collections.abc import Sequence

from controllers.kgt.parameter import Parameter
from controllers.kgt.text.fixed import fixed_source
from controllers.kgt.text.fold_values import FoldValue, values_of
from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.program.accumulator import n_words
from controllers.program.exact_sum import lowest
from controllers.program.functions import FLOATS
from controllers.program.program import Stage

COPIES = 32
PARAMETERS = (
    Parameter("kgt_digits", "long*", "inout"),
    Parameter("kgt_slots", "long*", "inout"),
    Parameter("kgt_first_slot", "long", "scalar"),
)


def fold_parameters(stage: Stage) -> tuple[Parameter, ...]:
    """The parameters of a kernel for what it folds."""
    return PARAMETERS if values_of(stage) else ()


def fold_declarations(stage: Stage) -> list[str]:
    """The same as C lines, each with its comma."""
    return [
        f"__global {one.type_name.replace('*', ' *restrict ')}{one.name},"
        if one.role == "inout" else f"const {one.type_name} {one.name},"
        for one in fold_parameters(stage)
    ]  # fmt: skip


def needs_doubles(stage: Stage) -> bool:
    """Whether it sums floats, which takes float64 whatever they are."""
    return any(one.kind == "sum" and one.dtype in FLOATS for one in values_of(stage))


def fold_helpers(stage: Stage) -> list[str]:
    """C lines: the functions that fold."""
    if not values_of(stage):
        return []
    floats = needs_doubles(stage) or any(one.dtype == "float64" for one in values_of(stage))
    texts = [fixed_source("fold"), *([fixed_source("fold_float")] if floats else [])]
    return [line for text in texts for line in [*text.splitlines(), ""]]


def sum_words(values: Sequence[FoldValue]) -> int:
    """The words of the digits of all sums."""
    return sum(n_words(one.kind, one.dtype) for one in values if one.kind == "sum")


def n_extremes(values: Sequence[FoldValue]) -> int:
    """How many folds are no sums."""
    return sum(one.kind != "sum" for one in values)


def fold_start(stage: Stage, slot: str) -> list[str]:
    """C lines: what a work-item holds of each fold, before its first cell.

    slot: C text of the number of the work-item, or of its group, in this launch.
    """
    values = values_of(stage)
    lines = [f"const long kgt_slot = {slot};"]
    if sum_words(values):
        lines.append(
            f"__global long *kgt_sums = kgt_digits + kgt_slot % {COPIES} * {sum_words(values)};"
        )
    return lines + [f"{_holder(one)} {_held(one)} = {{0}};" for one in values]


def fold_cell(stage: Stage, repeated: bool = True) -> list[str]:
    """C lines: take a cell, whose values are variables called `item_` and the field.

    repeated: by an item that may have more than some thousand cells.
    """
    lines = []
    for at, one in enumerate(values_of(stage)):
        taken = [_taken(stage, at, f"item_{one.value}", repeated)]
        if one.kind in ("any", "all"):
            wanted = "!= 0" if one.kind == "any" else "== 0"
            taken = [f"{_held(one)}.seen |= item_{one.value} {wanted};"]
        if one.over:
            taken = [f"if (item_{one.over} != 0)", f"    {taken[0]}"]
        lines += taken
    return lines


def fold_end(stage: Stage) -> list[str]:
    """C lines: hand on what a work-item holds, which has a slot of its own."""
    lines, extreme = [], 0
    for at, one in enumerate(values_of(stage)):
        if one.kind == "sum":
            lines.append(_sum_end(stage, at))
        else:
            lines.append(f"kgt_best_end(&{_held(one)}, {_slot(stage, extreme)});")
            extreme += 1
    return lines


def _sum_end(stage: Stage, at: int) -> str:
    one = values_of(stage)[at]
    if one.dtype not in FLOATS:
        return f"kgt_whole_end(&{_held(one)}, {_digits(stage, at)});"
    return f"kgt_sum_end(&{_held(one)}, {_digits(stage, at)}, {lowest(one.dtype)});"


def _taken(stage: Stage, at: int, value: str, repeated: bool) -> str:
    one = values_of(stage)[at]
    held = f"&{_held(one)}"
    if one.kind == "sum" and one.dtype in FLOATS:
        call = "kgt_sum_take" if repeated else "kgt_sum_add"
        return f"{call}({held}, {_digits(stage, at)}, {lowest(one.dtype)}, {value});"
    if one.kind == "sum":
        return f"kgt_whole_add({held}, {value});"
    place = f"item_{one.place}" if one.place else "0"
    return f"kgt_best_take({held}, (kgt_best){{1, {_key(one, value)}, {place}}});"


def _key(one: FoldValue, value: str) -> str:
    """C text of a number that is the larger, the more the value is what the fold looks for."""
    low = one.kind.endswith("min")
    if one.dtype not in FLOATS:
        return f"{'~' if low else ''}(long){value}"
    if one.place:       # -0 and 0 are equal there
        value = f"({value} == 0 ? 0 : {value})"
    return f"kgt_{'low_' if low else ''}key_of_{OPENCL_TYPES[one.dtype]}({value})"


def _digits(stage: Stage, at: int) -> str:
    """C text: where the digits of a sum are."""
    before = sum_words(values_of(stage)[:at])
    return f"kgt_sums + {before}" if before else "kgt_sums"


def _slot(stage: Stage, extreme: int) -> str:
    """C text: where an extreme of an item or a group goes."""
    count = n_extremes(values_of(stage))
    return f"kgt_slots + ((kgt_first_slot + kgt_slot) * {count} + {extreme}) * 3"


def _holder(one: FoldValue) -> str:
    """The type of what a work-item holds of a fold."""
    if one.kind != "sum":
        return "kgt_best"
    return "kgt_sum" if one.dtype in FLOATS else "kgt_whole"


def _held(one: FoldValue) -> str:
    return f"kgt_{one.value}"


def slot_of_item() -> str:
    """C text: the number of a work-item in a launch."""
    size, number = "(long)get_global_size", "(long)get_global_id"
    return f"({number}(2) * {size}(1) + {number}(1)) * {size}(0) + {number}(0)"


def slot_of_group() -> str:
    """C text: the number of a work-group in a launch."""
    size, number = "(long)get_num_groups", "(long)get_group_id"
    return f"({number}(2) * {size}(1) + {number}(1)) * {size}(0) + {number}(0)"
