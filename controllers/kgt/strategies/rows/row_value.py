# SPDX-License-Identifier: MIT
"""What "rows" computes at once: a vector of cells of a row, as a C function."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from controllers.kgt.text.c_lines import block
from controllers.kgt.text.emitter import OPENCL_TYPES, assignments, cell_index, element
from controllers.kgt.text.given import scalars_of
from controllers.kgt.text.lanes import WIDE, Lanes
from controllers.program.dtypes import given_dtype
from controllers.program.expression import Read
from controllers.program.program import Program, Stage

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
_TEXT = """
$wide
typedef $vector kgt_cells;
typedef kgt_cells kgt_unaligned __attribute__((aligned($itemsize)));
#define KGT_NEAR(at) (*(__global const kgt_unaligned *)(at))
#define KGT_STORE(value, at) $store
$others

// $width cells of a row
static inline __attribute__((always_inline)) $kind kgt_value(
    $parameters
{
    $value
    return item_value;
}

// the vector that starts at a cell of the row
#define KGT_AT(at) kgt_value($arguments)

$first
$last
"""


def row_value(program: Program, stage: Stage, lanes: Lanes, streaming: bool) -> list[str]:
    """C lines: `kgt_value`, which computes a vector of cells, and what stores one, or a part.

    Of a stage of several updates it computes a structure of one vector for each.
    streaming: whole vectors are stored past the caches; they are aligned.
    """

    def near(read: Read) -> str:
        return f"KGT_NEAR({read.field} + {element(read, cell_index(read.field, stage))})"

    dtype = program.dtype_of(stage)
    cell = OPENCL_TYPES[dtype]
    sources, indices, others = value_arguments(program, stage)
    shifted = [f"start_{field} + (at)" for field in sources]
    parameters = [f"__global const {cell} *restrict {field}" for field in sources]
    parameters += [f"const long {name}" for name in indices.values()]
    parameters += [f"const {kind} {name}" for name, kind in others.items()]
    kind, several = ("kgt_values", True) if len(stage.updates) > 1 else ("kgt_cells", False)
    return block(
        _TEXT,
        wide=[WIDE], vector=lanes.type(cell), itemsize=np.dtype(dtype).itemsize,
        store=_PAST_CACHES if streaming else _PLAIN, width=lanes.width, kind=kind,
        others=_others(stage, streaming) if several else [],
        value=_values(program, stage, lanes, near),
        parameters=[*(f"{each}," for each in parameters[:-1]),
                    f"{parameters[-1] if parameters else 'void'})"],
        arguments=", ".join([*sources, *shifted, *others]),
        first=_part(dtype, lanes, "first"), last=_part(dtype, lanes, "last"),
    )  # fmt: skip


def _others(stage: Stage, streaming: bool) -> list[str]:
    """C lines: the values of all fields, and what stores a vector of any but the first."""
    members = ", ".join(stage.updates)
    store = block(_PAST_CACHES_IF_ALIGNED) if streaming else [_ANYWHERE]
    return [*store, f"typedef struct {{ kgt_cells {members}; }} kgt_values;"]


def _values(
    program: Program, stage: Stage, lanes: Lanes, near: Callable[[Read], str]
) -> list[str]:
    """C lines: `item_value`, what `kgt_value` returns."""
    if len(stage.updates) == 1:
        targets = dict.fromkeys(stage.updates, "const kgt_cells item_value")
        return assignments(targets, stage, program.dtypes, near, lanes)
    names = {field: f"item_value_{field}" for field in stage.updates}
    targets = {field: f"const kgt_cells {name}" for field, name in names.items()}
    return [
        *assignments(targets, stage, program.dtypes, near, lanes),
        f"const kgt_values item_value = {{{', '.join(names.values())}}};",
    ]


def _part(dtype: str, lanes: Lanes, which: str) -> list[str]:
    """C lines: `kgt_first` or `kgt_last`, which stores as many cells of a vector, less than all."""
    halves, width = [], lanes.width
    while width > 1:
        halves += _half(dtype, width, which)
        width //= 2
    return [*block("""
        // the $which cells of a vector, $from
        static inline __attribute__((always_inline)) void kgt_$which(
            __global $cell *at, const kgt_cells item_$width, const long item_count)
        {
            $halves
        }
    """, which=which, cell=OPENCL_TYPES[dtype], width=lanes.width, halves=halves,
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

    That is the pitches it needs, and scalars.
    """
    sources = list(stage.fields_read)
    indices = {field: cell_index(field, stage) for field in sources}
    steps = {
        (read.field, axis)
        for read in stage.reads for axis, n in enumerate(read.offset[:-1]) if n
    }
    others = {
        f"{field}_pitch_{axis}": "long"
        for field in sources
        for axis in range(program.n_axes - 1)
        if (field, axis) in steps
    }
    others |= dict.fromkeys(scalars_of(stage), OPENCL_TYPES[given_dtype(stage, program.dtypes)])
    return sources, indices, others
