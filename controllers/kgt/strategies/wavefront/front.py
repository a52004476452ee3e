# SPDX-License-Identifier: MIT
"""The body of a "wavefront" kernel: the item's tile, its rings, and the front that moves through.

While the front is at one place, each level computes a few slices, ahead of the last level by the
reach of the stage for each step to go.  At the ends of the tile, and where slices lie outside of
what the stage computes at all, slices are done one by one.
"""
from __future__ import annotations

from controllers.kgt.strategies.wavefront.levels import FIRST, LAST, NEXT, STREAM, Levels
from controllers.kgt.text import frame
from controllers.kgt.text.c_lines import block, indented
from controllers.kgt.text.emitter import statement, used_fields


def front_body(levels: Levels) -> list[str]:
    """C lines: the body of the kernel."""
    return [*_tile(levels), *_places(levels), *_front(levels)]


def _tile(levels: Levels) -> list[str]:
    """C lines: per axis `start_A` and `last_A`, the cells of the item's tile."""
    own, last, lanes = levels.stage.writes, levels.last, levels.rings.lanes
    segment = levels.rings.tile[-1]
    lines = block("""
        // the item's tile: tiles are much of a size; segments of a row start with whole lines
        const long item_line = (long)((ulong)(${u}_new + ${u}_first) / sizeof($cell)) & $most;
        const long group_$x = (long)get_group_id(0) * $segment - item_line;
        const long item_side = group_$x > 0 ? group_$x : 0;
        const long item_most = extent_$x - $lanes;
        const long start_$x = item_side < item_most ? item_side : item_most;
        const long last_$x = $last;
    """, u=own, cell=levels.cell, x=last, segment=segment, lanes=lanes, most=lanes - 1,
        last=frame.minimum(f"group_{last} + {segment}", f"extent_{last}"))
    for axis in range(last - 1, -1, -1):
        number, tiles = f"(long)get_group_id({last - axis})", f"(long)get_num_groups({last - axis})"
        if last == 3 and axis < 2:      # both are in OpenCL's dimension 2
            tile = levels.rings.tile[1]
            if axis == 1:
                lines.append(f"const long item_tiles = (extent_1 + {tile - 1}) / {tile};")
            number = f"(long)get_group_id(2) {'%' if axis == 1 else '/'} item_tiles"
            tiles = "item_tiles" if axis == 1 else "((long)get_num_groups(2) / item_tiles)"
        lines += block("""
            const long start_$axis = $number * extent_$axis / $tiles;
            const long last_$axis = ($number + 1) * extent_$axis / $tiles;
        """, axis=axis, number=number, tiles=tiles)
    return lines


def _places(levels: Levels) -> list[str]:
    """C lines: where the tile's first cell is in each field and in the rings; its limits."""
    own, cell, rings = levels.stage.writes, levels.cell, levels.rings
    lines = []
    for field in used_fields(levels.stage):
        terms = [f"start_{axis} * {field}_pitch_{axis}" for axis in range(levels.last)]
        at = " + ".join([f"{field}_first", *terms, f"start_{levels.last}"])
        lines.append(f"const long start_{field} = {at};")
    lines += block("""
        // $n_rings rings of $slots slices, and where the tile's first cell is
        __local $cell item_rings[$n_elements] __attribute__((aligned(128)));
        __local $cell *const item_ring = item_rings + $origin
            + ((long)((ulong)($u + start_$u) / sizeof($cell)) & $most);
        // from here on cells are counted from the tile's first one: its end, and the limits
    """, u=own, cell=cell, n_rings=rings.steps - 1, slots=rings.slots, origin=rings.origin,
        n_elements=rings.n_elements, most=rings.lanes - 1)
    for axis in range(levels.last + 1):
        lines += block("""
            const long item_cells_$axis = last_$axis - start_$axis;
            const long item_first_$axis = computed_first_$axis - start_$axis;
            const long item_limit_$axis = computed_last_$axis - start_$axis;
        """, axis=axis)
    return [*lines, ""]


def _front(levels: Levels) -> list[str]:
    """C lines: all slices of the last level; the other levels are ahead of them."""
    rings, steps = levels.rings, levels.rings.steps
    body = block("""
        for (int item_level = 1; item_level <= $steps; ++item_level) {
            $ranges
            $level
        }
    """, steps=steps, ranges=_ranges(levels), level=_level(levels))
    if levels.last == 0:
        return body
    warm = -(-(steps - 1) * sum(rings.reach[0]) // rings.slices) * rings.slices
    return block("""
        for (long item_front = $start; item_front < item_cells_0; item_front += $slices)
            $body
    """, start=-warm, slices=rings.slices, body=body)


def _ranges(levels: Levels) -> list[str]:
    """C lines: per axis the cells that a level needs, and those of them that are computed."""
    lines = [
        f"const int item_left = {levels.rings.steps} - item_level;  // steps to go",
        "// the cells of the level, and those of them that are computed",
    ]
    for axis, (low, high) in enumerate(levels.rings.reach):
        lines += block("""
            const long item_kept_$axis = KGT_MAX($below, item_first_$axis - $low);
            const long item_end_$axis = KGT_MIN($above, item_limit_$axis + $high);
            const long item_start_$axis = KGT_MAX($below, item_first_$axis);
            const long item_last_$axis = KGT_MIN($above, item_limit_$axis);
        """, axis=axis, low=low, high=high, below=f"-item_left * {low}",
            above=f"item_cells_{axis} + item_left * {high}")
    return lines


def _level(levels: Levels) -> list[str]:
    """C lines: all that one level does while the front is at one place."""
    framed = [
        f"item_kept_{axis} < item_start_{axis} || item_end_{axis} > item_last_{axis}"
        for axis in range(min(1, levels.last), levels.last + 1)
    ]
    lines = statement(
        "const int item_framed", [framed[0], *(f"|| {text}" for text in framed[1:])]
    )
    if levels.last == 0:
        return [
            *lines, "const int item_inside = 1;", *_compute(levels, 1),
            "if (item_framed && item_left)", *indented(levels.keep("")),
        ]  # fmt: skip
    slices, high = levels.rings.slices, levels.rings.reach[0][1]
    if slices == 1:
        count, compute = "1", block("""
            if (item_inside) {
                $one
            }
        """, one=_compute(levels, 1))
    else:
        fits = f"item_until - item_0 == {slices} && item_until <= item_last_0"
        count, compute = f"item_inside && {fits} ? {slices} : 1", block("""
            if (item_count > 1) {
                $all
            } else if (item_inside) {
                $one
            }
        """, all=_compute(levels, slices), one=_compute(levels, 1))
    every = "item_0 < item_until; item_0 += item_count"
    return [*lines, *block("""
        const long item_until = KGT_MIN($ahead + $slices, item_end_0);
        int item_count;
        for (long item_0 = KGT_MAX($ahead, item_kept_0); $every) {
            const int item_inside = item_0 >= item_start_0 && item_0 < item_last_0;
            item_count = $count;
            $compute
            if (item_left && (item_framed || !item_inside))
                for (int item = 0; item < item_count; ++item)
                    $keep
        }
    """, ahead=f"item_front + item_left * {high}", slices=slices, count=count, compute=compute,
        every=every, keep=levels.keep("item_0 + item"))]


def _compute(levels: Levels, count: int) -> list[str]:
    """C lines: compute `count` slices of the level `item_level`."""
    lines = ["if (item_level == 1)", *indented(levels.call(FIRST, count))]
    if levels.rings.steps > 2:
        lines += ["else if (item_left)", *indented(levels.call(NEXT, count))]
    if levels.streaming and count == levels.rings.slices:
        last, pitches = levels.last, levels.pitches[: levels.last]
        whole = [f"item_last_{last} - item_start_{last} >= {2 * levels.rings.lanes}"]
        whole += [f"{pitch} % {levels.rings.lanes} == 0" for pitch in pitches]
        lines += [f"else if ({' && '.join(whole)})", *indented(levels.call(STREAM, count))]
    return [*lines, "else", *indented(levels.call(LAST, count))]
