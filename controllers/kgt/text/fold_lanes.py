# SPDX-License-Identifier: MIT
"""Folds of vectors of cells, for CPUs: sums, and extremes of floats, in all lanes at once.

What else is folded is taken lane by lane, as `fold_text` writes it.  Functions of clang's are used,
as in all that is written for wide vectors.
"""
from __future__ import annotations

from collections.abc import Callable

from controllers.kgt.text.c_lines import block
from controllers.kgt.text.fixed import fixed_source
from controllers.kgt.text.fold_text import (
    fold_end,
    fold_start,
    held,
    slot_of_item,
    sum_of,
    take_cell,
)
from controllers.kgt.text.fold_values import FoldValue, values_of
from controllers.kgt.text.fold_words import is_most
from controllers.kgt.text.lanes import WIDE
from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.kgt.text.rest_lanes import rests
from controllers.kgt.text.whole_lanes import (
    is_whole_sum,
    whole_end,
    whole_helpers,
    whole_start,
    whole_take,
)
from controllers.program.program import Stage

_WHOLE = {"float32": "int", "float64": "long", "uint8": "char", "int16": "short",
          "int32": "int", "int64": "long"}  # fmt: skip


def in_lanes(one: FoldValue) -> bool:
    """Whether all lanes of a vector are folded at once."""
    return is_most(one) or one.kind == "sum"


def lanes_helpers(stage: Stage, width: int) -> list[str]:
    """C lines: the functions that fold vectors."""
    wide = {one.dtype for one in values_of(stage) if is_most(one)}
    lines = [WIDE, *(line for dtype in sorted(wide) for line in _most(dtype, width))]
    sums = [one for one in values_of(stage) if one.kind == "sum"]
    if any(map(is_whole_sum, sums)):
        lines += whole_helpers(width)
    if all(map(is_whole_sum, sums)):
        return lines
    return lines + block("""
        #define KGT_LANES $width
        #define KGT_DOUBLES double$width
        #define KGT_FLOATS float$width
        #define KGT_WHOLE(type) type##$width
        #define KGT_HALF(type) type$half
        #define KGT_BITS(type, value) as_##type##$width(value)

        $rests
        $rest
    """, width=width, half=f"##{width // 2}" if width > 2 else "", rests=rests(width),
        rest=fixed_source("fold_lanes").splitlines())  # fmt: skip


def _most(dtype: str, width: int) -> list[str]:
    real, whole = OPENCL_TYPES[dtype], _WHOLE[dtype]
    return block("""
        typedef struct { $whole$width key, nan; } kgt_lanes_$real;

        KGT_INLINE void kgt_lanes_take_$real(
            kgt_lanes_$real *most, const $real$width value, const $whole$width taken)
        {
            const $whole$width bits = as_$whole$width(value);
            $whole$width key = bits ^ (bits >> $sign & $largest);
            key = (key & taken) | (~taken & ($whole$width)($least));
            most->key = most->key > key ? most->key : key;
            most->nan |= taken & (value != value);
        }

    """, real=real, whole=whole, width=width, sign=31 if whole == "int" else 63,
        largest=f"{whole.upper()}_MAX", least=f"{whole.upper()}_MIN")  # fmt: skip


def lanes_start(stage: Stage, width: int) -> list[str]:
    """C lines: what a work-item holds of each fold, before its first vector."""
    lines = fold_start(stage, slot_of_item())
    for one in values_of(stage):
        if is_whole_sum(one):
            lines.append(whole_start(_lanes(one), width))
        elif in_lanes(one) and one.kind == "sum":
            lines.append(f"kgt_sums_of_lanes {_lanes(one)} = {{0}};")
            lines.append(f"KGT_DOUBLES {_further(one)}[KGT_FURTHER] = {{0}};")
            if stage.stored:    # what is computed besides is rounded, which would be heard
                lines += block("""
                    #ifdef KGT_WATCHED
                    KGT_${real}S $kept[KGT_KEPT];
                    int $count = 0;
                    #endif
                """, real=OPENCL_TYPES[one.dtype].upper(), kept=_kept(one), count=_count(one))
        elif in_lanes(one):
            real, whole = OPENCL_TYPES[one.dtype], _WHOLE[one.dtype]
            least = f"({whole}{width})({whole.upper()}_MIN)"
            lines.append(f"kgt_lanes_{real} {_lanes(one)} = {{{least}, ({whole}{width})(0)}};")
    return lines


def lanes_take(
    stage: Stage, types: Callable[[str], str], value: Callable[[str], str], width: int,
    inside: tuple[str, str] | None = None,
) -> list[str]:  # fmt: skip
    """C lines: take a vector of cells.

    types: the dtypes of fields.  value: C text, as tight as a name, of a field's vector.
    inside: C text of the first lane that belongs to the item's cells, and of the end of them; by
    default all do.
    """
    lines: list[str] = []
    for one in values_of(stage):
        if in_lanes(one):
            lines += _taken_at_once(stage, one, types, value, width, inside)
        else:
            lines += _taken_one_by_one(stage, one, types, value, width, inside)
    return lines


def _taken_at_once(
    stage: Stage, one: FoldValue, types: Callable[[str], str], value: Callable[[str], str],
    width: int, inside: tuple[str, str] | None,
) -> list[str]:  # fmt: skip
    whole = f"{'long' if is_whole_sum(one) else _WHOLE[one.dtype]}{width}"
    tests = []
    if inside is not None:
        numbers = f"({whole})({', '.join(map(str, range(width)))})"
        tests += [f"({numbers} >= ({whole})({inside[0]}))", f"({numbers} < ({whole})({inside[1]}))"]
    if one.over:
        tests.append(f"__builtin_convertvector({value(one.over)} != 0, {whole})")
    taken = " & ".join(tests) or f"({whole})(-1)"
    if one.kind != "sum":
        sign = "-" if one.kind == "min" else ""
        real = OPENCL_TYPES[one.dtype]
        return block("""
            {
                const $whole kgt_taken = $taken;
                kgt_lanes_take_$real(&$held, $value, kgt_taken);
            }
        """, whole=whole, taken=taken, real=real, held=_lanes(one), value=sign + value(one.value))
    numbers = value(one.value)
    if is_whole_sum(one):
        return whole_take(_lanes(one), numbers, taken if tests else "", width)
    if tests:
        real = f"as_{OPENCL_TYPES[one.dtype]}{width}"
        numbers = f"{real}(as_{whole}({numbers}) & ({taken}))"
    add = f"kgt_lanes_add_{OPENCL_TYPES[one.dtype]}"
    tested = [f"{add}(", f"    {sums(stage, one)},", f"    {numbers});"]
    if not stage.stored:
        return tested
    return block("""
        #ifdef KGT_WATCHED
        $kept[$count] = $numbers;
        if (++$count == KGT_KEPT) {
            $add
            $count = 0;
        }
        #else
        $tested
        #endif
    """, kept=_kept(one), count=_count(one), numbers=numbers, add=_add_kept(stage, one),
        tested=tested)  # fmt: skip


def _taken_one_by_one(
    stage: Stage, one: FoldValue, types: Callable[[str], str], value: Callable[[str], str],
    width: int, inside: tuple[str, str] | None,
) -> list[str]:  # fmt: skip
    first, end = inside or ("0", str(width))
    fields = [field for field in (one.value, one.over, one.place) if field]
    arrays = [
        line for field in fields for line in (
            f"const {OPENCL_TYPES[types(field)]}{width} kgt_of_{field} = {value(field)};",
            f"const {OPENCL_TYPES[types(field)]} *const kgt_each_{field} = "
            f"(const {OPENCL_TYPES[types(field)]} *)&kgt_of_{field};",
        )
    ]  # fmt: skip
    return block("""
        {
            $arrays
            for (int kgt_lane = $first; kgt_lane < $end; ++kgt_lane) {
                $take
            }
        }
    """, arrays=arrays, first=first, end=end,
        take=take_cell(one, lambda field: f"kgt_each_{field}[kgt_lane]"))  # fmt: skip


def lanes_end(stage: Stage, width: int) -> list[str]:
    """C lines: hand on what a work-item holds."""
    lines = []
    for one in values_of(stage):
        if is_whole_sum(one):
            lines += whole_end(_lanes(one), held(one), width)
        elif one.kind == "sum":
            if stage.stored:
                lines += ["#ifdef KGT_WATCHED", *_add_kept(stage, one), "#endif"]
            lines.append(f"kgt_lanes_end({sums(stage, one)});")
        elif in_lanes(one):
            lines += block("""
                const kgt_lanes_$real ${lanes}_all = $lanes;
                for (int kgt_lane = 0; kgt_lane < $width; ++kgt_lane) {
                    const $whole kgt_key = ((const $whole *)&${lanes}_all.key)[kgt_lane];
                    $held.key = max($held.key, kgt_key);
                    $held.nan |= ((const $whole *)&${lanes}_all.nan)[kgt_lane] != 0;
                }
            """, real=OPENCL_TYPES[one.dtype], whole=_WHOLE[one.dtype], lanes=_lanes(one),
                held=held(one), width=width)  # fmt: skip
    return [*lines, *fold_end(stage)]


def _add_kept(stage: Stage, one: FoldValue) -> list[str]:
    """C lines: add the vectors that are kept."""
    return block("""
        kgt_lanes_add_kept_$real(
            $sums, $kept, $count);
    """, real=OPENCL_TYPES[one.dtype], sums=sums(stage, one), kept=_kept(one), count=_count(one))


def sums(stage: Stage, one: FoldValue) -> str:
    """C text: the arguments that say what an item has of a sum so far."""
    digits, lowest = sum_of(stage, one)
    return f"&{_lanes(one)}, {_further(one)}, &{held(one)}, {digits}, {lowest}"


def _kept(one: FoldValue) -> str:
    return f"{held(one)}_kept"


def _count(one: FoldValue) -> str:
    return f"{held(one)}_n"


def _lanes(one: FoldValue) -> str:
    return f"{held(one)}_lanes"


def _further(one: FoldValue) -> str:
    return f"{held(one)}_further"
