# SPDX-License-Identifier: MIT
"""The body of a "wavefront" kernel: the item's tile, its rings, and the front that moves through.

While the front is at one place, each level computes a few slices, ahead of the last level by the
reach of the stage for each step to go.  At the ends of the tile, and where slices lie outside of
what the stage computes at all, slices are done one by one.
"""
from __future__ import annotations

from controllers.kgt.strategies.wavefront.digests import digest_end, digest_rows, digest_start
from controllers.kgt.strategies.wavefront.frames import keep_slices
from controllers.kgt.strategies.wavefront.levels import (
    FIRST,
    LAST,
    NEXT,
    SECOND,
    STREAM,
    Levels,
)
from controllers.kgt.text import frame
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.emitter import statement, used_fields


def front_body(levels: Levels) -> list[str]:
    """C lines: the body of the kernel."""
    return block("""
        $tile
        $places
        // from here on cells are counted from the tile's first one: its end, and the limits
        $limits
        $digest

        $front
        $end
    """,
        tile=_tile(levels), places=_places(levels), front=_front(levels),
        limits=[line for axis in range(levels.last + 1) for line in _limits(axis)],
        digest=digest_start(levels) if levels.digests else [],
        end=digest_end(levels) if levels.digests else [],
    )  # fmt: skip


def _tile(levels: Levels) -> list[str]:
    """C lines: per axis `start_A` and `last_A`, the cells of the item's tile."""
    lines = block("""
        // the item's tile: tiles are much of a size; segments of a row start with whole lines
        const long item_line = (long)((ulong)(${u}_new + ${u}_first) / sizeof($cell)) & $most;
        const long group_$x = (long)get_group_id(0) * $segment - item_line;
        const long item_side = group_$x > 0 ? group_$x : 0;
        const long item_most = extent_$x - $lanes;
        const long start_$x = item_side < item_most ? item_side : item_most;
        const long last_$x = $last;
    """,
        u=levels.own, cell=levels.cell, x=levels.last, segment=levels.rings.tile[-1],
        lanes=levels.rings.lanes, most=levels.rings.lanes - 1,
        last=frame.minimum(f"group_{levels.last} + {levels.rings.tile[-1]}",
                           f"extent_{levels.last}"),
    )  # fmt: skip
    for axis in range(levels.last - 1, -1, -1):
        both = levels.last == 3 and axis < 2    # axes 0 and 1 are both in OpenCL's dimension 2
        lines += _shared_band(levels, axis) if both else _band(
            axis, f"(long)get_group_id({levels.last - axis})",
            f"(long)get_num_groups({levels.last - axis})",
        )  # fmt: skip
    return lines


def _band(axis: int, number: str, tiles: str) -> list[str]:
    """C lines: the cells of the tile of a number, in C, along an axis that has so many."""
    return block("""
        const long start_$axis = $number * extent_$axis / $tiles;
        const long last_$axis = ($number + 1) * extent_$axis / $tiles;
    """, axis=axis, number=number, tiles=tiles)


def _shared_band(levels: Levels, axis: int) -> list[str]:
    """C lines: the same along axis 1 or, after it, 0, which share a dimension of OpenCL's."""
    if axis == 0:
        tiles = "((long)get_num_groups(2) / item_tiles)"
        return _band(0, "(long)get_group_id(2) / item_tiles", tiles)
    return block("""
        const long item_tiles = (extent_1 + $most) / $tile;
        $band
    """,
        tile=levels.rings.tile[1], most=levels.rings.tile[1] - 1,
        band=_band(1, "(long)get_group_id(2) % item_tiles", "item_tiles"),
    )  # fmt: skip


def _places(levels: Levels) -> list[str]:
    """C lines: where the tile's first cell is in each field and in the rings."""
    rings = levels.rings
    return block("""
        $starts
        // $n_rings rings of $slots slices, and where the tile's first cell is
        __local $cell item_rings[$n_elements] __attribute__((aligned(128)));
        __local $cell *const item_ring = item_rings + $origin
            + ((long)((ulong)($u + start_$u) / sizeof($cell)) & $most);
    """,
        starts=[_start(levels, field) for field in used_fields(levels.stage)],
        u=levels.own, cell=levels.cell, n_rings=rings.steps - 1, slots=rings.slots,
        origin=rings.origin, n_elements=rings.n_elements, most=rings.lanes - 1,
    )  # fmt: skip


def _start(levels: Levels, field: str) -> str:
    """A C line: the element of the tile's first cell in a field."""
    terms = [f"start_{axis} * {field}_pitch_{axis}" for axis in range(levels.last)]
    at = " + ".join([f"{field}_first", *terms, f"start_{levels.last}"])
    return f"const long start_{field} = {at};"


def _limits(axis: int) -> list[str]:
    """C lines: along an axis the end of the tile, and of the cells that are computed at all."""
    return block("""
        const long item_cells_$axis = last_$axis - start_$axis;
        const long item_first_$axis = computed_first_$axis - start_$axis;
        const long item_limit_$axis = computed_last_$axis - start_$axis;
    """, axis=axis)


def _front(levels: Levels) -> list[str]:
    """C lines: all slices of the last level; the other levels are ahead of them."""
    rings, steps = levels.rings, levels.rings.steps
    body = block("""
        for (int item_level = 1; item_level <= $steps; ++item_level) {
            const int item_left = $steps - item_level;  // steps to go
            // the cells of the level, and those of them that are computed
            $ranges
            $framed
            $level
        }
        $digest
    """,
        steps=steps, framed=_framed(levels),
        ranges=[line for axis, ends in enumerate(rings.reach) for line in _range(axis, *ends)],
        level=_slices(levels) if levels.last else _only_slice(levels),
        digest=digest_rows(levels) if levels.digests else [],
    )  # fmt: skip
    if levels.last == 0:
        return body
    warm = -(-(steps - 1) * sum(rings.reach[0]) // rings.slices) * rings.slices
    return block("""
        for (long item_front = $start; item_front < item_cells_0; item_front += $slices) {
            $body
        }
    """, start=-warm, slices=rings.slices, body=body)


def _range(axis: int, low: int, high: int) -> list[str]:
    """C lines: along an axis the cells that a level needs, and those of them that are computed."""
    return block("""
        const long item_kept_$axis = KGT_MAX($below, item_first_$axis - $low);
        const long item_end_$axis = KGT_MIN($above, item_limit_$axis + $high);
        const long item_start_$axis = KGT_MAX($below, item_first_$axis);
        const long item_last_$axis = KGT_MIN($above, item_limit_$axis);
    """,
        axis=axis, low=low, high=high, below=f"-item_left * {low}",
        above=f"item_cells_{axis} + item_left * {high}",
    )  # fmt: skip


def _framed(levels: Levels) -> list[str]:
    """C lines: whether a slice has cells around those that are computed."""
    first, *others = (
        f"item_kept_{axis} < item_start_{axis} || item_end_{axis} > item_last_{axis}"
        for axis in levels.slice_axes
    )
    return statement("const int item_framed", [first, *(f"|| {each}" for each in others)])


def _only_slice(levels: Levels) -> list[str]:
    """C lines: the slice that a level is in one dimension."""
    return block("""
        const int item_inside = 1;
        $compute
        if (item_framed && item_left)
            $keep
    """, compute=_compute(levels, 1), keep=levels.keep(""))


def _slices(levels: Levels) -> list[str]:
    """C lines: the slices that one level computes while the front is at one place."""
    slices, high = levels.rings.slices, levels.rings.reach[0][1]
    fits = f"item_until - item_0 == {slices} && item_until <= item_last_0"
    return block("""
        const long item_until = KGT_MIN($ahead + $slices, item_end_0);
        int item_count;
        for (long item_0 = KGT_MAX($ahead, item_kept_0); $every) {
            const int item_inside = item_0 >= item_start_0 && item_0 < item_last_0;
            item_count = $count;
            $compute
            $keep
        }
    """,
        ahead=f"item_front + item_left * {high}", slices=slices,
        every="item_0 < item_until; item_0 += item_count",
        count=f"item_inside && {fits} ? {slices} : 1" if slices > 1 else 1,
        compute=_side_by_side(levels), keep=keep_slices(levels),
    )  # fmt: skip


def _side_by_side(levels: Levels) -> list[str]:
    """C lines: compute several slices, or one, where it is computed at all."""
    if levels.rings.slices == 1:
        return block("""
            if (item_inside) {
                $one
            }
        """, one=_compute(levels, 1))
    return block("""
        if (item_count > 1) {
            $all
        } else if (item_inside) {
            $one
        }
    """, all=_compute(levels, levels.rings.slices), one=_compute(levels, 1))


def _compute(levels: Levels, count: int) -> list[str]:
    """C lines: compute `count` slices of the level `item_level`."""
    return block("""
        if (item_level == 1)
            $first
        $second
        $next
        $stream
        else
            $last
    """,
        first=levels.call(FIRST, count), last=levels.call(LAST, count),
        second=_called(levels, "item_level == 2 && item_left", SECOND, count),
        next=_called(levels, "item_left", NEXT, count),
        stream=_streamed(levels) if levels.streaming and count == levels.rings.slices else [],
    )  # fmt: skip


def _called(levels: Levels, test: str, kind: str, count: int) -> list[str]:
    """C lines: a call of the function of a kind, if there are such levels."""
    return _otherwise(test, levels.call(kind, count)) if kind in levels.kinds else []


def _streamed(levels: Levels) -> list[str]:
    """C lines: the last level past the caches, where rows are long and start with whole lines."""
    lanes, last = levels.rings.lanes, levels.last
    whole = [f"item_last_{last} - item_start_{last} >= {2 * lanes}"]
    both = 1 + bool(levels.follower)
    whole += [f"{pitch} % {lanes} == 0" for pitch in levels.pitches[: both * last]]
    if levels.follower:     # both are written past the caches
        ends = (f"(ulong)({name}_new + start_{name})" for name in (levels.own, levels.follower))
        whole.append(f"({' - '.join(ends)}) % sizeof(kgt_cells) == 0")
    return _otherwise(" && ".join(whole), levels.call(STREAM, levels.rings.slices))


def _otherwise(test: str, lines: list[str]) -> list[str]:
    return block("""
        else if ($test)
            $lines
    """, test=test, lines=lines)
