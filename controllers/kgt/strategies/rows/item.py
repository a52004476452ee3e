# SPDX-License-Identifier: MIT
"""The cells of a work-item of "rows", and the loops over their blocks.

A box rarely is a multiple of a block.  Blocks at its ends start earlier, and compute some cells
twice; or, in place, what is left over is done row by row.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from controllers.kgt.strategies.rows.parameters import RowsParameters
from controllers.kgt.text import frame
from controllers.kgt.text.c_lines import block

BlockOf: TypeAlias = Callable[[RowsParameters], list[str]]  # C lines: one block of so many rows


def cells_of_item(config: RowsParameters, n_axes: int, *, once: bool) -> list[str]:
    """C lines: per axis `start_A` and `last_A`, the cells of the work-item.

    once: no cell is one of two items, so that the last but one has what is less than a vector.
    """
    last = n_axes - 1
    lines = block("""
        // the item's cells, at least a vector of a row
        const long start_$x = (long)get_group_id(0) * $segment;
        if (start_$x && start_$x + $lanes > extent_$x)
            return;
        const long last_$x = start_$x + $more > extent_$x ? extent_$x : start_$x + $segment;
    """, x=last, segment=config.segment, lanes=config.lanes,
        more=config.segment + config.lanes) if once else block("""
        // the item's cells, at least a vector of a row
        const long group_$x = (long)get_group_id(0) * $segment;
        const long last_$x = $last;
        const long start_$x = group_$x < last_$x - $lanes ? group_$x : last_$x - $lanes;
    """, x=last, segment=config.segment, lanes=config.lanes,
        last=frame.minimum(f"group_{last} + {config.segment}", f"extent_{last}"))
    if n_axes > 1:
        lines += _band(last - 1, config.rows, *_group(1))
    if n_axes == 3:
        lines += _band(0, config.planes, *_group(2))
    if n_axes == 4:
        lines += block("""
            const long group_0 = (long)get_num_groups(2) / extent_0;   // axes 0 and 1
            const long start_0 = (long)get_group_id(2) / group_0;
        """)
        lines += _band(1, config.planes, "((long)get_group_id(2) % group_0)", "group_0")
    return lines


def _group(dimension: int) -> tuple[str, str]:
    """C text: the number of the group in one of OpenCL's dimensions, and how many there are."""
    return f"(long)get_group_id({dimension})", f"(long)get_num_groups({dimension})"


def _band(axis: int, cells: int, number: str, groups: str) -> list[str]:
    """C lines: the cells of the item of a number along an axis that has blocks of `cells`.

    Bands are as equal as whole blocks allow: PoCL deals out items by their number.
    """
    if cells == 1:
        return block("""
            const long start_$axis = $number * extent_$axis / $groups;
            const long last_$axis = ($number + 1) * extent_$axis / $groups;
        """, axis=axis, number=number, groups=groups)
    return block("""
        const long item_blocks_$axis = (extent_$axis + $more) / $cells;
        const long start_$axis = $number * item_blocks_$axis / $groups * $cells;
        const long item_end_$axis = ($number + 1) * item_blocks_$axis / $groups * $cells;
        const long last_$axis = $last;
    """, axis=axis, number=number, groups=groups, cells=cells, more=cells - 1,
        last=frame.minimum(f"item_end_{axis}", f"extent_{axis}"))


def last_early(last: int, config: RowsParameters, block_of: BlockOf) -> list[str]:
    """C lines: the blocks of an item; those that would end behind the box start earlier."""
    blocks = block_of(config)
    for axis, cells in sorted(blocked_axes(config, last).items(), reverse=True):
        limit = f"extent_{axis} - {cells}"
        group = frame.minimum(f"item_{axis}", limit) if cells > 1 else f"item_{axis}"
        blocks = block("""
            for (long item_$axis = start_$axis; item_$axis < last_$axis; item_$axis += $cells) {
                const long group_$axis = $group;
                $body
            }
        """, axis=axis, cells=cells, group=group, body=blocks)
    return blocks


def each_once(
    last: int, config: RowsParameters, block_of: BlockOf, axes: Sequence[int] | None = None
) -> list[str]:
    """C lines: the blocks of an item, each cell in one of them: what is left is done row by row.

    axes: those along which there are blocks, from the first one that has no loop yet.
    """
    blocked = blocked_axes(config, last)
    axes = sorted(blocked) if axes is None else axes
    if not axes:
        return block_of(config)
    axis, *rest = axes
    lines = block("""
        long group_$axis = start_$axis;
        for (; group_$axis <= last_$axis - $cells; group_$axis += $cells) {
            $body
        }
    """, axis=axis, cells=blocked[axis], body=each_once(last, config, block_of, rest))
    if blocked[axis] == 1:
        return lines
    is_row = axis == last - 1
    part = replace(config, rows=1) if is_row else replace(config, planes=1)
    return lines + block("""
        for (; group_$axis < last_$axis; ++group_$axis) {
            $body
        }
    """, axis=axis, body=each_once(last, part, block_of, rest))


def blocked_axes(config: RowsParameters, last: int) -> dict[int, int]:
    """The cells of a block along the axes that have blocks."""
    cells = {last - 2: config.planes, last - 1: config.rows}
    return {axis: n for axis, n in cells.items() if axis >= 0}
