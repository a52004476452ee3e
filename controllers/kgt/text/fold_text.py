# SPDX-License-Identifier: MIT
"""What kernels do with the values that a stage folds, as OpenCL C; see kernels_cl/fold.cl.

Sums go to `kgt_digits`: COPIES vectors, of which each work-item or group takes one, so that few
meet.  What is left of the extremes goes there, too, where all are merged by atomic operations
(`in_words`), and else to a slot of each work-item or group.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence

from controllers.kgt.parameter import Parameter
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.emitter import statement
from controllers.kgt.text.fixed import fixed_source
from controllers.kgt.text.fold_values import FoldValue, values_of
from controllers.kgt.text.fold_words import (
    COPIES,
    OF_SLOT,
    copy_words,
    extreme_words,
    in_words,
    is_most,
    n_extremes,
    sum_words,
)
from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.program.exact_sum import lowest
from controllers.program.functions import FLOATS
from controllers.program.program import Stage

PARAMETERS = (
    Parameter("kgt_digits", "long*", "inout"),
    Parameter("kgt_fold_turn", "long", "scalar"),
    Parameter("kgt_slots", "long*", "inout"),
    Parameter("kgt_first_slot", "long", "scalar"),
)


def fold_parameters(stage: Stage) -> tuple[Parameter, ...]:
    """The parameters of a kernel for what it folds."""
    values = values_of(stage)
    if not values:
        return ()
    return PARAMETERS[:2] if in_words(values) else (PARAMETERS[0], *PARAMETERS[2:])


def needs_doubles(stage: Stage) -> bool:
    """Whether it sums floats, which takes float64 whatever they are."""
    return any(one.kind == "sum" and one.dtype in FLOATS for one in values_of(stage))


def sums_doubles(stage: Stage) -> bool:
    """Whether it sums float64, of which each item has two numbers for its group."""
    return any(one.kind == "sum" and one.dtype == "float64" for one in values_of(stage))


def fold_helpers(stage: Stage) -> list[str]:
    """C lines: the functions that fold."""
    if not values_of(stage):
        return []
    floats = needs_doubles(stage) or any(one.dtype == "float64" for one in values_of(stage))
    texts = [fixed_source("fold"), *([fixed_source("fold_float")] if floats else [])]
    return [line for text in texts for line in [*text.splitlines(), ""]]


def fold_start(stage: Stage, slot: Sequence[str]) -> list[str]:
    """C lines: what a work-item holds of each fold, before its first cell.

    slot: C text, in parts, of the number of the work-item, or of its group, in this launch.
    """
    values = values_of(stage)
    lines = statement("const long kgt_slot", slot)
    if copy_words(values):
        copy = f"kgt_slot % {COPIES}"
        if in_words(values):
            copy = f"(kgt_fold_turn * {COPIES} + {copy})"
        lines.append(f"__global long *kgt_sums = kgt_digits + {copy} * {copy_words(values)};")
    for one in values:
        nothing = f"KGT_NO_{OPENCL_TYPES[one.dtype]}" if is_most(one) else "{0}"
        lines.append(f"{_holder(one)} {held(one)} = {nothing};")
    return lines


def fold_cells(
    stage: Stage,
    value: Callable[[str, int], str],
    lanes: int = 1,
    inside: Callable[[int], str] | None = None,
) -> list[str]:
    """C lines: take some cells side by side.

    value: C text, as tight as a name, of what a field gets in one of them.  inside: of whether it
    is among those that the item computes, where that is not sure.
    """
    lines: list[str] = []
    each = range(lanes)
    if inside is not None:
        lines += [f"const int kgt_inside_{lane} = {inside(lane)};" for lane in each]
    for at, one in enumerate(values_of(stage)):
        taken = []
        for lane in each:
            tests = [f"kgt_inside_{lane}"] if inside is not None else []
            tests += [f"{value(one.over, lane)} != 0"] if one.over else []
            taken.append(" && ".join(tests))
        values = [value(one.value, lane) for lane in each]
        if one.kind == "sum" and one.dtype in FLOATS:
            name = f"kgt_each_{one.value}"
            numbers = [f"{t} ? {v} : 0" if t else v for t, v in zip(taken, values)]
            lines += statement(f"double {name}[{lanes}]", _listed(numbers))
            to = f"&{held(one)}, {_digits(stage, at)}, {lowest(one.dtype)}"
            lines.append(f"kgt_sum_add({to}, {name}, {lanes});")
        else:
            places = [value(one.place, lane) if one.place else "0" for lane in each]
            lines += [_taken(one, *cell) for cell in zip(values, taken, places)]
    return lines


def _listed(values: Sequence[str]) -> list[str]:
    parts = [f"{value}," for value in values]
    return [f"{'' if at else '{'}{part}" for at, part in enumerate(parts[:-1])] + [
        f"{'' if len(parts) > 1 else '{'}{values[-1]}}}"
    ]


def take_cell(one: FoldValue, value: Callable[[str], str]) -> list[str]:
    """C lines: take the cell of which `value` gives what a field gets; no float is summed."""
    taken = f"{value(one.over)} != 0" if one.over else ""
    assert one.kind != "sum" or one.dtype not in FLOATS, "which are taken several at once"
    return [_taken(one, value(one.value), taken, value(one.place) if one.place else "0")]


def sum_of(stage: Stage, one: FoldValue) -> tuple[str, int]:
    """C text of where the digits of a sum are, and the exponent of the least one."""
    return _digits(stage, values_of(stage).index(one)), lowest(one.dtype)


def fold_end(stage: Stage) -> list[str]:
    """C lines: hand on what a work-item holds, which has a slot of its own."""
    lines, extreme = _cleared(stage, "0", "1"), 0
    for at, one in enumerate(values_of(stage)):
        if one.kind == "sum":
            lowest_text = f", {lowest(one.dtype)}" if one.dtype in FLOATS else ""
            lines.append(f"{_holder(one)}_end(&{held(one)}, {_digits(stage, at)}{lowest_text});")
        else:
            lines += _end(stage, one, extreme)
            extreme += 1
    return lines


def fold_end_of_group(
    stage: Stage, n_items: int, group: Sequence[int] | None = None
) -> list[str]:
    """C lines: hand on what a work-group holds, which has a slot; all items of it come here.

    n_items: at most, a power of 2 as the size of the group along each axis.  group: its sizes along
    two axes, where they are known: divisions by numbers of the text take less than by others.
    """
    extreme = 0
    row, rows = group or ("get_local_size(0)", "(int)get_local_size(1)")
    lines = block("""
        __local long kgt_room[$room];
        const int kgt_row = $row, kgt_plane = kgt_row * $rows;
        const int kgt_items = $items;
        const int kgt_own = (int)get_local_id(2) * kgt_plane + (int)get_local_id(1) * kgt_row
            + (int)get_local_id(0);
    """, room=3 * n_items, row=row, rows=rows,
        items=n_items if group else "kgt_plane * (int)get_local_size(2)")
    lines += _cleared(stage, "kgt_own", "kgt_items")
    for at, one in enumerate(values_of(stage)):
        if at:
            lines.append("barrier(CLK_LOCAL_MEM_FENCE);")
        if one.kind == "sum":
            lowest_text = f", {lowest(one.dtype)}" if one.dtype in FLOATS else ""
            to = f"&{held(one)}, {_digits(stage, at)}{lowest_text}"
            lines.append(f"{_holder(one)}_group({to}, kgt_room, kgt_own, kgt_items);")
        else:
            lines += _end_of_group(stage, one, extreme)
            extreme += 1
    return lines


def _cleared(stage: Stage, first: str, step: str) -> list[str]:
    """C lines: the words of the other turn become 0, where there are any."""
    values = values_of(stage)
    if not in_words(values):
        return []
    return block("""
        if (kgt_slot == 0)
            #pragma unroll 1
            for (int kgt_word = $first; kgt_word < $words; kgt_word += $step)
                kgt_digits[(1 - kgt_fold_turn) * $words + kgt_word] = 0;
    """, first=first, step=step, words=COPIES * copy_words(values))


def _best(one: FoldValue) -> list[str]:
    """C lines: what an item holds as a `kgt_best`, if it is not one."""
    if not is_most(one):
        return []
    kind = OPENCL_TYPES[one.dtype]
    return [f"kgt_best {_best_of(one)} = kgt_best_of_{kind}({held(one)});"]


def _best_of(one: FoldValue) -> str:
    return f"{held(one)}_best" if is_most(one) else held(one)


def _taken(one: FoldValue, value: str, taken: str, place: str) -> str:
    """A C line: take a value, if `taken` says so, or surely where it is empty."""
    name = held(one)
    if one.kind == "sum":
        return f"kgt_whole_add(&{name}, {f'{taken} ? {value} : 0' if taken else value});"
    if one.kind in ("any", "all"):
        wanted = f"{value} {'!=' if one.kind == 'any' else '=='} 0"
        return f"{name}.seen |= {f'{taken} && {wanted}' if taken else wanted};"
    if is_most(one):
        sign = "-" if one.kind == "min" else ""
        return f"kgt_take_{OPENCL_TYPES[one.dtype]}(&{name}, {sign}{value}, {taken or '1'});"
    return f"kgt_best_take(&{name}, (kgt_best){{{taken or '1'}, {_key(one, value)}, {place}}});"


def _key(one: FoldValue, value: str) -> str:
    """C text of a number that is the larger, the more the value is what the fold looks for."""
    low = one.kind.endswith("min")
    if one.dtype not in FLOATS:
        return f"{'~' if low else ''}(long){value}"
    # -0 and 0 are equal there
    return f"kgt_key_of_{OPENCL_TYPES[one.dtype]}({'-' if low else ''}({value} == 0 ? 0 : {value}))"


def _digits(stage: Stage, at: int) -> str:
    """C text: where the digits of a sum are."""
    before = sum_words(values_of(stage)[:at])
    return f"kgt_sums + {before}" if before else "kgt_sums"


def _end(stage: Stage, one: FoldValue, extreme: int) -> list[str]:
    """C lines: hand on an extreme of an item or a group."""
    values = values_of(stage)
    if in_words(values):
        return [f"{_holder(one)}_put(&{held(one)}, {_word(stage, extreme)});"]
    at = f" + {OF_SLOT * extreme}" if extreme else ""
    slot = f"kgt_slots + (kgt_first_slot + kgt_slot) * {OF_SLOT * n_extremes(values)}{at}"
    return [*_best(one), f"kgt_best_end(&{_best_of(one)}, {slot});"]


def _end_of_group(stage: Stage, one: FoldValue, extreme: int) -> list[str]:
    """C lines: the same of what all items of a group hold."""
    room = "kgt_room, kgt_own, kgt_items"
    if in_words(values_of(stage)):
        put = "put_group" if _holder(one) == "kgt_best" else "group"
        return [f"{_holder(one)}_{put}(&{held(one)}, {_word(stage, extreme)}, {room});"]
    *best, last = _end(stage, one, extreme)
    return [*best, f"kgt_best_group(&{_best_of(one)}, {room});", "if (kgt_own == 0)", f"    {last}"]


def _word(stage: Stage, extreme: int) -> str:
    """C text: where an extreme has its word."""
    values = values_of(stage)
    before = [one for one in values if one.kind != "sum"][:extreme]
    return f"kgt_sums + {sum_words(values) + extreme_words(before)}"


def _holder(one: FoldValue) -> str:
    """The type of what a work-item holds of a fold."""
    if one.kind != "sum":
        return f"kgt_most_{OPENCL_TYPES[one.dtype]}" if is_most(one) else "kgt_best"
    return "kgt_sum" if one.dtype in FLOATS else "kgt_whole"


def held(one: FoldValue) -> str:
    """The variable that a work-item holds a fold in."""
    return f"kgt_{one.value}"


def slot_of_item() -> list[str]:
    """C text, in parts: the number of a work-item in a launch."""
    return _numbered("(long)get_global_id", "(long)get_global_size")


def slot_of_group() -> list[str]:
    """C text, in parts: the number of a work-group in a launch."""
    return _numbered("(long)get_group_id", "(long)get_num_groups")


def _numbered(number: str, size: str) -> list[str]:
    return [f"({number}(2) * {size}(1) + {number}(1)) * {size}(0)", f"+ {number}(0)"]
