# SPDX-License-Identifier: MIT
"""Sums of floats block by block, for CPUs: where nothing is rounded within one, without a test for
each vector.
"""
from __future__ import annotations

from collections.abc import Callable

from controllers.kgt.text.c_lines import block
from controllers.kgt.text.fold_lanes import sums
from controllers.kgt.text.fold_values import values_of
from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.kgt.text.whole_lanes import is_whole_sum
from controllers.program.expression import Read
from controllers.program.program import Stage

_BLOCK = 512    # vectors: KGT_BLOCK


def _one_sum(stage: Stage) -> bool:
    """Whether a sum of floats, of all cells, is all that a stage folds."""
    folds = [(one.kind, one.over) for one in values_of(stage)]
    return folds == [("sum", "")] and not is_whole_sum(values_of(stage)[0])


def is_watched(stage: Stage) -> bool:
    """Whether a sum of numbers that are read, and nothing else, is all that a stage computes."""
    return (
        not stage.stored
        and all(isinstance(update, Read) for update in stage.updates.values())
        and _one_sum(stage)
    )


def is_noted(stage: Stage) -> bool:
    """Whether a stage folds the one sum of what it stores besides, and can compute it again."""
    return bool(stage.stored) and not stage.overwrites and not stage.elements and _one_sum(stage)


def lanes_take_blocks(stage: Stage, value: str, width: int, ahead: list[str]) -> list[str]:
    """C lines: take the whole vectors of a row block by block, where the processor tells of each
    whether an addition was rounded; what is behind them is for others.

    value: C text of the vector at `item_x`.  ahead: C lines that ask for what comes later.
    """
    (one,) = values_of(stage)
    real, held = OPENCL_TYPES[one.dtype], sums(stage, one)
    return block("""
        #ifdef KGT_WATCHED
        while (item_x <= item_cells - $two) {
            const long kgt_first = item_x, kgt_left = item_cells - $most - item_x;
            const long kgt_end = item_x + min(kgt_left & -${width}L, (long)KGT_WATCHED);
            kgt_parts_of_lanes kgt_watched = {0};
            kgt_watch(&kgt_watched);
            kgt_parts_of_lanes kgt_parts = kgt_watched;     // in registers
            for (; item_x < kgt_end; item_x += $width) {
        #ifndef KGT_FORESEEN
                $ahead
        #endif
                kgt_part_$real(&kgt_parts, $value);
            }
            kgt_watched = kgt_parts;
            if (!kgt_lanes_add_parts($sums, &kgt_watched))
                for (item_x = kgt_first; item_x < kgt_end; item_x += $width)
                    kgt_lanes_add_$real($sums, $value);
        }
        #else
    """, two=2 * width - 1, most=width - 1, width=width, real=real, value=value, sums=held,
        ahead=ahead)  # fmt: skip


def blocks_noted(
    stage: Stage, loop: list[str], again: list[str], width: int, n_rows: int
) -> list[str]:
    """C lines: `loop` over the whole vectors of some rows block by block, of which sizes are noted.

    again: C lines that take the vectors at `item_x` once more, where something may be rounded.
    """
    (one,) = values_of(stage)
    return block("""
        while (item_x <= item_cells - $two) {
            const long kgt_start = item_x, kgt_left = item_cells - $most - item_x;
            const long kgt_end = item_x + min(kgt_left & -${width}L, ${cells}L);
            kgt_block_$real kgt_block = KGT_NO_BLOCK_$real;
            $loop
            const kgt_block_$real kgt_all = kgt_block;
            if (!kgt_block_end_$real(&kgt_all, $sums))
                for (item_x = kgt_start; item_x < kgt_end; item_x += $width)
                    $again
        }
    """, two=2 * width - 1, most=width - 1, width=width, cells=_BLOCK // n_rows * width,
        real=OPENCL_TYPES[one.dtype], sums=sums(stage, one), loop=loop, again=again)  # fmt: skip


def noted(stage: Stage, value: Callable[[str], str]) -> list[str]:
    """C lines: take a vector of a block.  value: as of `lanes_take`."""
    (one,) = values_of(stage)
    return [f"kgt_block_take_{OPENCL_TYPES[one.dtype]}(&kgt_block, {value(one.value)});"]


def tested(stage: Stage, value: Callable[[str], str]) -> list[str]:
    """C lines: the same with a test."""
    (one,) = values_of(stage)
    return [f"kgt_lanes_add_{OPENCL_TYPES[one.dtype]}({sums(stage, one)}, {value(one.value)});"]
