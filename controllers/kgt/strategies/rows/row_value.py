# SPDX-License-Identifier: MIT
"""What "rows" computes at once: a vector of cells of a row, as a C function.

Sums, products, quotients and absolute values are written for whole vectors.  Other functions, and
what takes several dtypes, places or coordinates, are written for one cell, in a loop over those of
the vector, which compilers turn into instructions on vectors; where that is for a few cells that
are singled out, as by `ct.point`, in their rows alone.
"""
from __future__ import annotations

import numpy as np

from controllers.kgt.text.analysis import in_vectors
from controllers.kgt.text.c_lines import block
from controllers.kgt.text.element import by_value
from controllers.kgt.text.elsewhere import elsewhere
from controllers.kgt.text.emitter import OPENCL_TYPES, assignments, cell_index, element
from controllers.kgt.text.given import axes_of, parameters
from controllers.kgt.text.lanes import WIDE, Lanes
from controllers.program.dtypes import given_dtype
from controllers.program.expression import Read
from controllers.program.program import Program, Stage

PLACE = "item_place"    # in the box, of a vector's first cell; with the axis: of a cell
_NEAR = "#define KGT_NEAR(at) (*(__global const kgt_unaligned *)(at))"
_PLAIN = "*(__global kgt_cells *)(at) = (value)"
_PAST_CACHES = "__builtin_nontemporal_store(value, (__global kgt_cells *)(at))"
_ANYWHERE = "#define KGT_STORE_ANYWHERE(value, at) *(__global kgt_unaligned *)(at) = (value)"
_PAST_CACHES_IF_ALIGNED = """
    #define KGT_STORE_ANYWHERE(value, at) \\
        do { \\
            if ((ulong)(at) % sizeof(kgt_cells)) \\
                *(__global kgt_unaligned *)(at) = (value); \\
            else \\
                KGT_STORE(value, at); \\
        } while (0)
"""
_SINGLE = """
// $width cells of a row, some of them singled out
static __attribute__((noinline)) $kind kgt_cell_by_cell(
    $parameters
{
    $value
    return item_value;
}

"""
_TEXT = """
$wide
typedef $vector kgt_cells;
typedef kgt_cells kgt_unaligned __attribute__((aligned($itemsize)));
$near
#define KGT_STORE(value, at) $store
$others

$single
// $width cells of a row
static inline __attribute__((always_inline)) $kind kgt_value(
    $parameters
{
    $value
    return item_value;
}

// the vector that starts at a cell of the row
#define KGT_AT(at) kgt_value($arguments)

$ends
"""


def row_value(program: Program, stage: Stage, lanes: Lanes, streaming: bool) -> list[str]:
    """C lines: `kgt_value`, which computes a vector of cells, and what stores one, or a part.

    Of a stage of several updates it computes a structure of one vector for each.
    streaming: whole vectors are stored past the caches; they are aligned.
    """
    dtypes = [*dict.fromkeys(program.dtypes[field] for field in stage.updates)]
    dtype, whole = dtypes[0], in_vectors(stage, program.dtypes)
    cell = OPENCL_TYPES[dtype]
    sources, indices, others = value_arguments(program, stage)
    shifted = [f"start_{field} + (at)" for field in sources]
    declared = [
        f"__global const {OPENCL_TYPES[program.dtypes[field]]} *restrict {field}"
        for field in sources
    ]
    declared += [f"const long {name}" for name in indices.values()]
    declared += [f"{kind} {name}" for name, kind in others.items()]
    places = places_of(program, stage)
    declared += [f"const long {name}" for name in places]
    kind, several = ("kgt_values", True) if len(stage.updates) > 1 else ("kgt_cells", False)
    ends = [
        line for which in ("first", "last") for each in dtypes
        if each in {program.dtypes[field] for field in stage.stored}
        for line in _part(each, lanes, which, typed("", each, dtype), several=several)
    ]
    declared = [*(f"{each}," for each in declared[:-1]),
                f"{declared[-1] if declared else 'void'})"]    # fmt: skip
    names = [*sources, *indices.values(), *others, *places]
    single, value = _computed(program, stage, lanes, kind, names, declared)
    return block(
        _TEXT,
        wide=[WIDE], vector=lanes.type(cell), itemsize=np.dtype(dtype).itemsize,
        store=_PAST_CACHES if streaming else _PLAIN, width=lanes.width, kind=kind,
        near=[_NEAR] if whole or single else [],
        others=_others(program, stage, lanes, streaming) if several else [],
        single=single, value=value, parameters=declared,
        arguments=", ".join([*sources, *shifted, *others, *places.values()]), ends=ends,
    )  # fmt: skip


def _computed(
    program: Program, stage: Stage, lanes: Lanes, kind: str, names: list[str], declared: list[str]
) -> tuple[list[str], list[str]]:
    """C lines: `item_value`, and before its function another one, for rows with single cells.

    names, declared: of what both functions are called with.
    """
    if in_vectors(stage, program.dtypes):
        return [], _values(program, stage, lanes)
    by_cell, found = _each_cell(program, stage, lanes), elsewhere(stage, program.dtypes, PLACE)
    if found is None:
        return [], by_cell
    plain, condition = found
    single = block(_SINGLE, width=lanes.width, kind=kind, parameters=declared, value=by_cell)
    return [*single, ""], [
        f"if (__builtin_expect({condition}, 0))",
        f"    return kgt_cell_by_cell({', '.join(names)});",
        *_values(program, plain, lanes),
    ]


def typed(name: str, dtype: str, first: str) -> str:
    """What is called `name` for fields of the `first` dtype that is updated, for those of another.

    >>> typed("kgt_first", "float64", "float64"), typed("kgt_first", "uint8", "float64")
    ('kgt_first', 'kgt_first_uchar')
    """
    return name if dtype == first else f"{name}_{OPENCL_TYPES[dtype]}"


def _others(program: Program, stage: Stage, lanes: Lanes, streaming: bool) -> list[str]:
    """C lines: the values of all fields, and what stores a vector of any but the first."""
    fields: dict[str, list[str]] = {}
    for field in stage.updates:
        fields.setdefault(program.dtypes[field], []).append(field)
    first, *_ = fields
    lines = block(_PAST_CACHES_IF_ALIGNED) if streaming else [_ANYWHERE]
    for dtype in [*fields][1:]:
        lines += block("""
            typedef $vector $cells;
            typedef $cells $unaligned __attribute__((aligned($itemsize)));
            #define $store(value, at) *(__global $unaligned *)(at) = (value)
        """, vector=lanes.type(OPENCL_TYPES[dtype]), cells=typed("kgt_cells", dtype, first),
            unaligned=typed("kgt_unaligned", dtype, first), itemsize=np.dtype(dtype).itemsize,
            store=typed("KGT_STORE_ANYWHERE", dtype, first))  # fmt: skip
    members = (
        f"{typed('kgt_cells', dtype, first)} {', '.join(names)};" for dtype, names in fields.items()
    )
    return [*lines, f"typedef struct {{ {' '.join(members)} }} kgt_values;"]


def _each_cell(program: Program, stage: Stage, lanes: Lanes) -> list[str]:
    """C lines: `item_value`, computed cell by cell."""
    several, last = len(stage.updates) > 1, program.n_axes - 1
    targets = {
        field: f"(({OPENCL_TYPES[program.dtypes[field]]} *)&item_value"
        f"{f'.{field}' if several else ''})[item_lane]"
        for field in stage.updates
    }
    own = [f"const long {PLACE}_{last} = {PLACE} + item_lane;"] if last in axes_of(stage) else []
    return block("""
        $kind item_value;
        for (int item_lane = 0; item_lane < $width; ++item_lane) {
            $own
            $computed
        }
    """, kind="kgt_values" if several else "kgt_cells", width=lanes.width, own=own,
        computed=assignments(
            targets, stage, program.dtypes, place=PLACE, lane="item_lane", by_value=True
        ))  # fmt: skip


def _values(program: Program, stage: Stage, lanes: Lanes) -> list[str]:
    """C lines: `item_value`, what `kgt_value` returns, in vectors."""

    def near(read: Read) -> str:
        return f"KGT_NEAR({read.field} + {element(read, cell_index(read.field, stage))})"

    if len(stage.updates) == 1:
        targets = dict.fromkeys(stage.updates, "const kgt_cells item_value")
        return assignments(targets, stage, program.dtypes, near, lanes)
    names = {field: f"item_value_{field}" for field in stage.updates}
    targets = {field: f"const kgt_cells {name}" for field, name in names.items()}
    return [
        *assignments(targets, stage, program.dtypes, near, lanes),
        f"const kgt_values item_value = {{{', '.join(names.values())}}};",
    ]


def _part(dtype: str, lanes: Lanes, which: str, typed: str, *, several: bool) -> list[str]:
    """C lines: `kgt_first` or `kgt_last`, which stores as many cells of a vector, less than all.

    typed: what is added to its name and that of the vectors.  several: so many fields call it that
    drivers would compile twice as long for all copies of it (shallow water on PoCL).
    """
    halves, width = [], lanes.width
    while width > 1:
        halves += _half(dtype, width, which)
        width //= 2
    return [*block("""
        // the $which cells of a vector, $from
        static $how void kgt_$which$typed(
            __global $cell *at, const kgt_cells$typed item_$width, const long item_count)
        {
            $halves
        }
    """, which=which, cell=OPENCL_TYPES[dtype], width=lanes.width, halves=halves, typed=typed,
        how="__attribute__((noinline))" if several else "inline __attribute__((always_inline))",
        **{"from": "from `at` on" if which == "first" else "up to `at`"}), ""]


def _half(dtype: str, width: int, which: str) -> list[str]:
    """C lines: store half of `item_WIDTH`, if so many cells are left; the rest is `item_HALF`."""
    half, cell, first = width // 2, OPENCL_TYPES[dtype], which == "first"
    part = Lanes(half).type(cell)
    near, far = ("lo", "hi") if first else ("hi", "lo")
    pair: dict[str, str | int] = {
        "half": half, "whole": f"item_{width}", "part": part, "near": near, "far": far
    }  # fmt: skip
    if half == 1:
        return block("""
            if (item_count & 1) {
                $before
                *(__global $part *)at = $whole.$near;
            }
        """, **pair, before=[] if first else ["at -= 1;"])
    return block("""
        typedef $part kgt_$half __attribute__((aligned($itemsize)));
        if (item_count & $half) {
            $before
            *(__global kgt_$half *)at = $whole.$near;
            $after
        }
        const $part item_$half = item_count & $half ? $whole.$far : $whole.$near;
    """, **pair, itemsize=np.dtype(dtype).itemsize, before=[] if first else [f"at -= {half};"],
        after=[f"at += {half};"] if first else [])


def value_arguments(
    program: Program, stage: Stage
) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """What `kgt_value` is called with: the fields read, their indices, and all else with its type.

    That is the pitches it needs, scalars and tables.
    """
    sources = list(stage.fields_read)
    indices = {field: cell_index(field, stage) for field in sources}
    steps = {
        (read.field, axis)
        for read in stage.reads for axis, n in enumerate(read.offset[:-1]) if n
    }
    by_place = [one for one in stage.elements if not by_value(one)]
    steps |= {
        (one.field_of[name], axis)
        for one in by_place for name in one.offsets for axis in range(program.n_axes - 1)
    }
    others = {
        f"{field}_pitch_{axis}": "const long"
        for field in sources
        for axis in range(program.n_axes - 1)
        if (field, axis) in steps
    }
    real = OPENCL_TYPES[given_dtype(stage, program.dtypes)]
    for parameter in parameters(stage, real):
        of = parameter.type_name
        table = f"__global const {of.replace('*', ' *restrict')}"
        others[parameter.name] = table if parameter.role == "in" else f"const {of}"
    return sources, indices, others


def places_of(program: Program, stage: Stage) -> dict[str, str]:
    """What tells `kgt_value` where in the box its first cell is, by parameter, in `KGT_AT`."""
    last = program.n_axes - 1
    return {
        PLACE if axis == last else f"{PLACE}_{axis}":
        f"start_{axis} + (at)" if axis == last else f"{PLACE}_{axis}"
        for axis in axes_of(stage)
    }
