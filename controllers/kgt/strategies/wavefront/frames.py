# SPDX-License-Identifier: MIT
"""The cells around those that a "wavefront" computes: a level in a ring must have them, too.

Those that no step computes are copied from the field, which has them as they always were.  Those
behind a mirror are copied from the level itself: of the same slice once it is computed, and along
axis 0 from slice to slice.  A slice before the first one is copied as that is computed which it
shows; then all that the next level reads is there, and no slot of the ring is needed for another.
"""
from __future__ import annotations

from collections.abc import Iterator

from controllers.kgt.strategies.wavefront.levels import Levels
from controllers.kgt.strategies.wavefront.slices import parameters_of, rows_of
from controllers.kgt.text.c_lines import block, function
from controllers.kgt.text.emitter import statement
from controllers.program.functions import INTEGERS


def keep_slices(levels: Levels) -> list[str]:
    """C lines: fill what lies around the slices that a level has computed, and other slices."""
    low, high = levels.mirrors.signs[0] if levels.last else (0, 0)
    if not (low or high):
        return block("""
            if (item_left && (item_framed || !item_inside))
                for (int item = 0; item < item_count; ++item)
                    $keep
        """, keep=levels.keep("item_0 + item"))
    seen = "2 * item_limit_0 - 1 - item_slice"
    return block("""
        for (int item = 0; item_left && item < item_count; ++item) {
            const long item_slice = item_0 + item;
            const long item_shown = $shown;
            if ($framed)
                $keep
            $before
        }
    """,
        shown=f"item_slice >= item_limit_0 ? {seen} : item_slice" if high else "item_slice",
        framed="(item_framed || !item_inside)" + " && item_slice >= item_first_0" * bool(low),
        keep=levels.keep("item_slice", "item_shown"), before=_before(levels) if low else [],
    )  # fmt: skip


def _before(levels: Levels) -> list[str]:
    """C lines: the slice before the first one that shows the slice `item_slice`."""
    return block("""
        const long item_behind = 2 * item_first_0 - 1 - item_slice;
        if (item_slice >= item_first_0 && item_behind >= item_kept_0)
            $keep
    """, keep=levels.keep("item_behind", "item_slice", "0"))


def keep_function(levels: Levels) -> list[str]:
    """C lines: the function that copies what is not computed into a ring."""
    x, inner = levels.last, range(1, levels.last)
    rows = [f" && item_{a} >= item_start_{a} && item_{a} < item_last_{a}" for a in inner]
    row = block("""
        const int item_inner = item_inside$rows;
        for (long item_$x = item_kept_$x; item_$x < item_end_$x; ++item_$x) {
            if (item_inner && item_$x == item_start_$x)
                item_$x = item_last_$x;  // those in between have been computed
            if (item_$x < item_end_$x)
                $copy
        }
    """, x=x, rows="".join(rows), copy=_copied(levels))
    limits = ["const long item_shown"] if levels.mirrors_slices else []
    limits.append("const int item_inside")
    for axis in levels.slice_axes:
        limits.append(f"const long item_kept_{axis}, const long item_end_{axis}")
        limits.append(f"const long item_start_{axis}, const long item_last_{axis}")
    parameters = parameters_of(levels, "field", "ring", [], limits, levels.pitches[:x])
    body = [*_slots(levels), *rows_of(levels, "kept", "end", row)]
    return ["", *function("static void kgt_keep", parameters, body), ""]


def _slots(levels: Levels) -> Iterator[str]:
    """C lines: where the slice lies in its ring, and the one that it shows."""
    new = f"{levels.own}_new"
    slot = levels.slice(new, "ring", 0)
    yield f"__local {levels.cell} *const at_new = {slot};"
    if levels.mirrors_slices:
        yield f"__local const {levels.cell} *const at_shown = KGT_SLOT({new}, item_shown);"


def _copied(levels: Levels) -> list[str]:
    """C lines: copy a cell, from the field or from where a mirror shows it."""
    own, x = levels.own, levels.last
    old = " + ".join([f"item_{a} * {own}_pitch_{a}" for a in range(x)] + [f"item_{x}"])
    copy = statement(f"at_new[{_in_ring(levels, 'item')}]", [f"{own}[{old}]"])
    if not levels.mirrors:
        return copy
    tests = [
        f"item_seen_{a} >= item_start_{a} && item_seen_{a} < item_last_{a}"
        for a in levels.slice_axes
    ]
    source = "at_shown" if levels.mirrors_slices else "at_new"
    computed = "item_inside" + " || item_shown != item_0" * levels.mirrors_slices
    shown = f"{source}[{_in_ring(levels, 'item_seen')}]"
    return block("""
        {
            // the cell that is seen, in a mirror or itself, and whether it is computed
            $seen
            const int item_computed = ($computed) && $tests;
            if (item_computed)
                $mirrored
            else
                $copy
        }
    """,
        seen=[line for axis in levels.slice_axes for line in _seen(levels, axis)],
        computed=computed, tests=" && ".join(tests), copy=copy,
        mirrored=f"at_new[{_in_ring(levels, 'item')}] = {_signed(levels, shown)};",
    )  # fmt: skip


def _in_ring(levels: Levels, cell: str) -> str:
    """C text of the place of a cell in its slice."""
    inner = [f"{cell}_{a} * {levels.rings.pitch(a)}" for a in range(1, levels.last)]
    return " + ".join([*inner, f"{cell}_{levels.last}"])


def _seen(levels: Levels, axis: int) -> list[str]:
    """C lines: which cell is seen along an axis of a slice."""
    low, high = levels.mirrors.signs[axis]
    text = f"item_{axis}"
    if high:
        text = f"item_{axis} >= item_last_{axis} ? 2 * item_last_{axis} - 1 - item_{axis} : {text}"
    if low:
        before = f"item_{axis} < item_start_{axis} ? 2 * item_start_{axis} - 1 - item_{axis}"
        text = f"{before}\n: {text}"
    return statement(f"const long item_seen_{axis}", text.split("\n"))


def _signed(levels: Levels, value: str) -> str:
    """C text of a value with the sign that the mirrors give it."""
    if not levels.mirrors.is_odd:
        return value
    integers = levels.program.dtype_of(levels.stage) in INTEGERS
    negative = f"({levels.cell})(0 - (ulong){value})" if integers else f"-{value}"
    return f"{' ^ '.join(_odd(levels))} ? {negative} : {value}"


def _odd(levels: Levels) -> Iterator[str]:
    """C text: for each mirror that changes the sign, whether the cell lies behind it."""
    for axis, (low, high) in enumerate(levels.mirrors.signs):
        start, last = (f"item_start_{axis}", f"item_last_{axis} - 1")
        if axis not in levels.slice_axes:
            start = last = "item_shown"
        if low < 0:
            yield f"(item_{axis} < {start})"
        if high < 0:
            yield f"(item_{axis} > {last})"
