# SPDX-License-Identifier: MIT
"""The functions of a "wavefront" kernel as text.

A function computes slices of a level side by side: of each row first one vector per slice, then the
stores.  So a vector of the level below that several of them read is loaded once.  No loop over the
vectors has a test for the ends of a row.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from controllers.kgt.strategies.wavefront import behind
from controllers.kgt.strategies.wavefront.levels import (
    FIRST,
    LAST,
    STREAM,
    Levels,
    into_of,
    source_of,
)
from controllers.kgt.text.c_lines import block, called, function
from controllers.kgt.text.emitter import assignment, element
from controllers.kgt.text.lanes import PREFETCH, WIDE, Lanes
from controllers.program.expression import Read

INLINE = "static inline __attribute__((always_inline))"


def functions(levels: Levels) -> list[str]:
    """C lines: all functions of the kernel that compute cells."""
    several = levels.rings.slices
    texts = [_value(levels, source) for source in ("field", "ring")]
    counts = dict.fromkeys((several, 1))
    texts += [_slices(levels, kind, n) for kind in levels.kinds for n in counts]
    texts += [_slices(levels, STREAM, several)] if levels.streaming else []
    return [*_types_and_macros(levels), *(line for text in texts for line in ["", *text])]


def _types_and_macros(levels: Levels) -> list[str]:
    """C lines: what the functions use."""
    return block("""
        $wide
        typedef $vector kgt_cells;
        typedef kgt_cells kgt_unaligned __attribute__((aligned($itemsize)));
        #define KGT_NEAR(at) (*(__global const kgt_unaligned *)(at))
        #define KGT_KEPT(at) (*(__local const kgt_unaligned *)(at))
        #define KGT_STREAM(value, at) __builtin_nontemporal_store(value, (__global kgt_cells *)(at))
        $prefetch
        #define KGT_MIN(a, b) ((a) < (b) ? (a) : (b))
        #define KGT_MAX(a, b) ((a) > (b) ? (a) : (b))
        $slot
    """,
        wide=[WIDE], vector=Lanes(levels.rings.lanes).type(levels.cell), prefetch=PREFETCH,
        itemsize=levels.program.itemsize(levels.own), slot=_slot(levels),
    )  # fmt: skip


def _slot(levels: Levels) -> list[str]:
    """C lines: the macro KGT_SLOT; in one dimension a level is one slice."""
    if not levels.last:
        return []
    rings = levels.rings
    return block("""
        // a slice in its ring, which may start before the tile
        #define KGT_SLOT(ring, slice) ((ring) + (uint)((slice) + $shift) % $slots * $pitch)
    """, shift=levels.shift, slots=rings.slots, pitch=rings.pitch(0))


def _value(levels: Levels, source: str) -> list[str]:
    """C lines: the function that computes a vector of cells."""
    lanes = Lanes(levels.rings.lanes, clang=True)
    value = assignment(
        "const kgt_cells item_value", levels.lead, levels.program.dtype_of(levels.stage),
        lambda read: _near(levels, source, read), lanes,
    )  # fmt: skip
    body = block("""
        $pitches
        $value
        return item_value;
    """, pitches=_constant_pitches(levels) if source == "ring" else [], value=value)
    kind = f"{levels.space(source)} const {levels.cell} *const"
    parameters = [*(f"{kind} {name}" for name in levels.sources), "const long item_at"]
    parameters += ["const kgt_cells item_behind"] if levels.follower else []
    for field in levels.others:
        parameters.append(f"__global const {levels.cell} *const {field}")
    parameters += [*levels.given, *(f"const long {name}" for name in levels.value_pitches(source))]
    what = f"// {levels.rings.lanes} cells of a row, from slices of a {source}"
    return [what, *function(f"{INLINE} kgt_cells kgt_{source}_value", parameters, body)]


def _near(levels: Levels, source: str, read: Read) -> str:
    """C text: a vector of cells around those that are computed."""
    if read.field == levels.follower:
        return "item_behind"
    if read.field != levels.own:
        return f"KGT_NEAR({element(read, read.field)})"
    number = read.offset[0] + levels.rings.reach[0][0] if levels.last else 0
    inside = Read(read.field, (0, *read.offset[1:])) if levels.last else read
    macro = "KGT_NEAR" if source == "field" else "KGT_KEPT"
    return f"{macro}(at_{number} + {element(inside, 'item_at')})"


def _constant_pitches(levels: Levels) -> list[str]:
    """C lines: the pitches of the rings under the names that those of the field have."""
    return [
        f"const long {levels.own}_pitch_{axis} = {levels.rings.pitch(axis)};"
        for axis in range(1, levels.last)
    ]


def _slices(levels: Levels, kind: str, count: int) -> list[str]:
    """C lines: the function that computes `count` slices of a level."""
    source, into = source_of(kind), into_of(kind)
    row = _streamed(levels, count) if kind == STREAM else _row(levels, kind, count)
    limits = [
        f"const long item_start_{axis}, const long item_last_{axis}" for axis in levels.slice_axes
    ]
    pointers = [*_slice_pointers(levels, source, into, count)]
    pointers += behind.pointers(levels, kind, count)
    parameters = parameters_of(
        levels, source, into, levels.others, [*limits, *levels.given], levels.pitches,
        behind.parameters(levels, kind),
    )  # fmt: skip
    body = [*pointers, *rows_of(levels, "start", "last", row)]
    return function(f"{INLINE} void kgt_{kind}_{count}", parameters, body)


def parameters_of(
    levels: Levels, source: str, into: str, others: Sequence[str], limits: Sequence[str],
    pitches: Sequence[str], more: Sequence[str] = (),
) -> list[str]:  # fmt: skip
    """C text of the parameters of a function that goes through slices."""
    return [
        f"{levels.space(source)} const {levels.cell} *const {levels.own}",
        f"{levels.space(into)} {levels.cell} *const {levels.own}_new",
        *more,
        *(f"__global const {levels.cell} *const {field}" for field in others),
        *(["const long item_0"] if levels.last else []),
        *limits,
        *(f"const long {name}" for name in pitches),
    ]


def rows_of(levels: Levels, first: str, end: str, row: list[str]) -> list[str]:
    """C lines: `row` for all rows of a slice from `item_FIRST_A` to `item_END_A`."""
    for axis in range(levels.last - 1, 0, -1):
        row = block("""
            for (long item_$a = item_${first}_$a; item_$a < item_${end}_$a; ++item_$a) {
                $row
            }
        """, a=axis, first=first, end=end, row=row)
    return row


def _slice_pointers(levels: Levels, source: str, into: str, count: int) -> Iterator[str]:
    """C lines: where the slices start that are read, and those that are written."""
    own, low = levels.own, levels.rings.reach[0][0]
    for number in range(count + len(levels.sources) - 1):
        at = levels.slice(own, source, number - low)
        yield f"{levels.space(source)} const {levels.cell} *const at_{number} = {at};"
    for number in range(count):
        at = levels.slice(f"{own}_new", into, number)
        yield f"{levels.space(into)} {levels.cell} *const at_new_{number} = {at};"


def _row(levels: Levels, kind: str, count: int) -> list[str]:
    """C lines: one row of each slice, vector by vector."""
    return block("""
        $row_starts
        // vectors start at whole lines; the first one and the last one are moved inside
        long group_$x = item_start_$x - ((item_start_$x + item_skew) & $most);
        for (; group_$x < item_last_$x; group_$x += $lanes) {
            const long item_inner = $inner;
            const long item_$x = item_inner > item_start_$x ? item_inner : item_start_$x;
            $prefetches
            $vectors
        }
    """,
        x=levels.last, lanes=levels.rings.lanes, most=levels.rings.lanes - 1,
        inner=_inside("group", levels), row_starts=_row_starts(levels, kind),
        prefetches=_prefetches(levels, count) if kind == FIRST else [],
        vectors=_vectors(levels, kind, count),
    )  # fmt: skip


def _inside(name: str, levels: Levels) -> str:
    """C text: the first cell of a vector, moved so that it ends with the row."""
    x = levels.last
    most = f"item_last_{x} - {levels.rings.lanes}"
    return f"{name}_{x} < {most} ? {name}_{x} : {most}"


def _prefetches(levels: Levels, count: int) -> list[str]:
    """C lines: ask for the slices that the next front will read first."""
    if count == 1 and not levels.asks:
        return []
    newest = f"at_{count + len(levels.sources) - 2}"
    slices = [
        element(Read(levels.own, (number, *(0,) * levels.last)), newest)
        for number in range(1, count + 1)
    ]
    places = [f"{levels.in_row(at)} + item_{levels.last}" for at in slices]
    places += behind.asked(levels, count)
    for field in levels.others if levels.asks else ():
        ahead = (f"{number} * {field}_pitch_0" for number in range(count, 2 * count))
        places += [f"row_{field} + item_{levels.last} + {step}" for step in ahead]
    return block("""
        // what the next front reads; the processor foresees too little of it
        $asked
    """, asked=[f"KGT_PREFETCH({place});" for place in places])


def _streamed(levels: Levels, count: int) -> list[str]:
    """C lines: the same past the caches, but for the ends of the row."""
    return block("""
        $row_starts
        const long item_grid = -(item_start_$x + item_skew) & $most;
        long item_$x = item_start_$x;
        // two vectors: no line that the first one touches is written past the caches
        for (int item_end = 0; item_end < 2; ++item_end, item_$x += item_grid) {
            $plain
        }
        item_$x = item_start_$x + item_grid + $lanes;
        for (; item_$x <= item_last_$x - $two; item_$x += $lanes) {
            $past
        }
        for (; item_$x < item_last_$x; item_$x += $lanes) {
            item_$x = $inner;
            $plain
        }
    """,
        x=levels.last, lanes=levels.rings.lanes, most=levels.rings.lanes - 1,
        two=2 * levels.rings.lanes, inner=_inside("item", levels),
        row_starts=_row_starts(levels, LAST),
        plain=[*_vectors(levels, LAST, count)], past=_vectors(levels, STREAM, count),
    )  # fmt: skip


def _row_starts(levels: Levels, kind: str) -> list[str]:
    """C lines: where the row is in the slices, and how far it is from a whole line."""
    rows = [] if levels.last < 2 else block("""
        const long item_row = $read;
        const long item_row_new = $written;
    """, read=_row_start(levels, source_of(kind)), written=_row_start(levels, into_of(kind)))
    rows += behind.rows(levels, kind)
    return block("""
        $rows
        $others
        const long item_skew = (long)((ulong)($first) / sizeof($cell)) & $most;
    """,
        rows=rows, others=[_start_of_other(levels, field) for field in levels.others],
        first=levels.in_row("at_new_0", "_new"), cell=levels.cell, most=levels.rings.lanes - 1,
    )  # fmt: skip


def _row_start(levels: Levels, where: str) -> str:
    """C text: where the row is in a slice of a field or of a ring."""
    pitches = (
        f"{levels.own}_pitch_{axis}" if where == "field" else levels.rings.pitch(axis)
        for axis in range(1, levels.last)
    )
    return " + ".join(f"item_{axis} * {pitch}" for axis, pitch in enumerate(pitches, 1))


def _start_of_other(levels: Levels, field: str) -> str:
    """A C line: where the row is in a field that is only read."""
    terms = [field, *(f"item_{axis} * {field}_pitch_{axis}" for axis in range(levels.last))]
    return f"__global const {levels.cell} *const row_{field} = {' + '.join(terms)};"


def _vectors(levels: Levels, kind: str, count: int) -> Iterator[str]:
    """C lines: compute a vector of each slice, then store them all."""
    sources, x = levels.sources, levels.last
    source, into = source_of(kind), into_of(kind)
    for number in range(count):
        arguments = [f"at_{number + at}" for at in range(len(sources))]
        arguments.append(f"item_row + item_{x}" if x > 1 else f"item_{x}")
        arguments += behind.argument(levels, kind, number)
        for field in levels.others:
            step = f" + {number} * {field}_pitch_0" if number else ""
            arguments.append(f"row_{field} + item_{x}{step}")
        arguments += [*levels.scalars, *levels.value_pitches(source)]
        head = f"const kgt_cells item_value_{number} = kgt_{source}_value"
        yield from called(head, arguments)
    stored = {f"{levels.in_row(f'at_new_{n}', '_new')} + item_{x}": f"item_value_{n}"
              for n in range(count)}  # fmt: skip
    for at, value in (stored | behind.stored(levels, kind, count)).items():
        if kind == STREAM:
            yield f"KGT_STREAM({value}, {at});"
        else:
            yield f"*({levels.space(into)} kgt_unaligned *)({at}) = {value};"
