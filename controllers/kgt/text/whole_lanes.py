# SPDX-License-Identifier: MIT
"""Sums of whole numbers of vectors of cells, for CPUs: one in each lane, in two parts."""
from __future__ import annotations

from controllers.kgt.text.c_lines import block
from controllers.kgt.text.fold_values import FoldValue
from controllers.program.functions import FLOATS


def is_whole_sum(one: FoldValue) -> bool:
    """Whether it is a sum of whole numbers."""
    return one.kind == "sum" and one.dtype not in FLOATS


def whole_helpers(width: int) -> list[str]:
    """C lines: the function that adds a vector; as `kgt_whole_add`."""
    return block("""
        typedef struct { long$width low, high; } kgt_lanes_whole;

        KGT_INLINE void kgt_lanes_add_whole(kgt_lanes_whole *sums, const long$width value)
        {
            sums->low += value & 0xffffffff;
            sums->high += value >> 32;
        }

    """, width=width)


def whole_start(lanes: str, width: int) -> str:
    """A C line: what a work-item holds before its first vector."""
    nothing = f"(long{width})(0)"
    return f"kgt_lanes_whole {lanes} = {{{nothing}, {nothing}}};"


def whole_take(lanes: str, value: str, taken: str, width: int) -> list[str]:
    """C lines: take a vector of any whole numbers, or those of a mask of longs."""
    longs = f"__builtin_convertvector({value}, long{width})"
    chosen = f"{longs} & ({taken})" if taken else longs
    return [f"kgt_lanes_add_whole(&{lanes},", f"    {chosen});"]


def whole_end(lanes: str, held: str, width: int) -> list[str]:
    """C lines: the sum of all lanes."""
    return block("""
        for (int kgt_lane = 0; kgt_lane < $width; ++kgt_lane) {
            $held.low += ((const long *)&$lanes.low)[kgt_lane];
            $held.high += ((const long *)&$lanes.high)[kgt_lane];
        }
    """, held=held, lanes=lanes, width=width)
