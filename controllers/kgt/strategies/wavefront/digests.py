# SPDX-License-Identifier: MIT
"""Digests of the field that a "wavefront" reads, taken as it reads them.

A work-item takes the cells of its tile, and at the ends of the box those beside it that nobody
computes, row by row, while the first level has them in the cache.
"""
# docs/decisions/0098-digests-are-taken-by-the-next-launch.md
from __future__ import annotations

import numpy as np

from controllers.kgt.parameter import Parameter
from controllers.kgt.strategies.wavefront.levels import Levels
from controllers.kgt.strategies.wavefront.slices import rows_of
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.digest_text import digest_functions


def digest_parameters(levels: Levels) -> tuple[Parameter, ...]:
    """Those of a kernel that takes digests, and of no other.

    kgt_weights: of columns.  kgt_digests: for each work-group the sum, and how many NaNs.
    kgt_row, kgt_column: where the box's first cell is; kgt_row_A: how many rows further a step on
    axis A is.  kgt_own_first_A, kgt_own_last_A: the cells that it takes, counted from that cell.
    """
    if not levels.digests:
        return ()
    axes = range(levels.last + 1)
    names = ["kgt_row", "kgt_column", *(f"kgt_row_{axis}" for axis in axes[:-1])]
    names += [f"kgt_own_{end}_{axis}" for axis in axes for end in ("first", "last")]
    return (
        Parameter("kgt_weights", "uint*", "in"), Parameter("kgt_digests", "long*", "inout"),
        *(Parameter(name, "long", "scalar") for name in names),
    )  # fmt: skip


def digest_helpers(levels: Levels) -> list[str]:
    """C lines: the functions that it calls."""
    if not levels.digests:
        return []
    dtype = np.dtype(levels.program.dtype_of(levels.stage))
    return ["", *digest_functions(dtype, in_vectors=True).splitlines()]


def digest_start(levels: Levels) -> list[str]:
    """C lines: of which cells the work-item takes the digest, counted from its tile's first one."""
    return block("""
        // the cells of which the digest is taken as they are read, and what it comes to
        $ends
        ulong item_digest = 0;
        long item_nan = 0;
    """, ends=[line for axis in range(levels.last + 1) for line in _ends(levels, axis)])


def _ends(levels: Levels, axis: int) -> list[str]:
    """C lines: on an axis; the last tile of a row may lie behind the row."""
    last, end = axis == levels.last, f"kgt_own_last_{axis} - start_{axis}"
    first = f"group_{axis} > 0 ? group_{axis} - start_{axis}" if last else f"start_{axis} > 0 ? 0"
    behind = f"group_{axis} >= extent_{axis} ? item_own_{axis} : " if last else ""
    return block("""
        ${const}long item_own_$axis = $first : kgt_own_first_$axis;
        const long item_own_end_$axis =
            $behind$last;
    """,
        axis=axis, first=first, const="" if axis == 0 < levels.last else "const ",
        behind=behind, last=f"last_{axis} < extent_{axis} ? item_cells_{axis} : {end}",
    )  # fmt: skip


def digest_rows(levels: Levels) -> list[str]:
    """C lines: take what the first level has read so far, of as many slices as it has computed."""
    x, u = levels.last, levels.own
    at = [f"item_own_{x}" if axis == x else f"item_{axis}" for axis in range(x + 1)]
    if x:
        at[0] = "item_own_0"
    cells = [f"{at[axis]} * {u}_pitch_{axis}" for axis in range(x)]
    rows = [f"(start_{axis} + {at[axis]}) * kgt_row_{axis}" for axis in range(x)]
    row = rows_of(levels, "own", "own_end", block("""
        item_digest += kgt_of_cells((__global const KGT_CELL *)($cells), kgt_weights,
            $row, kgt_column + start_$x + item_own_$x,
            item_own_end_$x - item_own_$x, &item_nan);
    """,
        cells=" + ".join([u, f"start_{u}", *cells, at[x]]), x=x,
        row=" + ".join(["kgt_row", *rows]),
    ))  # fmt: skip
    if not x:
        return row
    slices, ahead = levels.rings.slices, (levels.rings.steps - 1) * levels.rings.reach[0][1]
    return block("""
        const long item_read = item_front + $slices < item_cells_0
            ? $until : item_own_end_0;
        for (; item_own_0 < item_read; ++item_own_0)
            $row
    """,
        slices=slices, row=row, until=f"KGT_MIN(item_front + {ahead + slices}, item_own_end_0)"
    )  # fmt: skip


def digest_end(levels: Levels) -> list[str]:
    """C lines: leave what the work-group, which is one item, has found."""
    number = "get_group_id(0)"
    for axis in range(1, min(levels.last, 2) + 1):
        before = " * ".join(f"get_num_groups({one})" for one in range(axis))
        number += f" + get_group_id({axis}) * {before}"
    return block("""
        const long item_group = 2 * ($number);
        kgt_digests[item_group] = item_digest;
        kgt_digests[item_group + 1] = item_nan;
    """, number=number)
