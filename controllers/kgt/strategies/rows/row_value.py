# SPDX-License-Identifier: MIT
"""What "rows" computes at once: a vector of cells of a row, as a C function."""
from __future__ import annotations

import numpy as np

from controllers.kgt.emitter import INDENT, OPENCL_TYPES, assignment, cell_index, element
from controllers.kgt.lanes import WIDE, Lanes
from controllers.program.expression import Read, reads
from controllers.program.program import Program, Stage

_PLAIN = "*(__global kgt_cells *)(at) = (value)"


def row_value(program: Program, stage: Stage, lanes: Lanes, streaming: bool) -> list[str]:
    """C lines: `kgt_value`, which computes a vector of cells, and what stores one, or a part.

    streaming: whole vectors are stored past the caches; they are aligned.
    """

    def near(read: Read) -> str:
        return f"KGT_NEAR({read.field} + {element(read, cell_index(read.field, stage))})"

    cell = OPENCL_TYPES[program.dtype]
    itemsize = np.dtype(program.dtype).itemsize
    sources, indices, pitches = value_arguments(program, stage)
    shifted = [f"start_{field} + (at)" for field in sources]
    call = f"kgt_value({', '.join([*sources, *shifted, *pitches])})"
    parameters = [f"__global const {cell} *restrict {field}" for field in sources]
    parameters += [f"const long {name}" for name in (*indices.values(), *pitches)]
    store = "__builtin_nontemporal_store(value, (__global kgt_cells *)(at))"
    return [
        WIDE,
        f"typedef {lanes.type(cell)} kgt_cells;",
        f"typedef kgt_cells kgt_unaligned __attribute__((aligned({itemsize})));",
        "#define KGT_NEAR(at) (*(__global const kgt_unaligned *)(at))",
        f"#define KGT_STORE(value, at) {store if streaming else _PLAIN}",
        "",
        f"// {lanes.width} cells of a row",
        "static inline __attribute__((always_inline)) kgt_cells kgt_value(",
        *(f"{INDENT}{parameter}," for parameter in parameters[:-1]),
        f"{INDENT}{parameters[-1] if parameters else 'void'})",
        "{",
        *(
            INDENT + line
            for line in assignment("const kgt_cells item_value", stage, program.dtype, near, lanes)
        ),
        f"{INDENT}return item_value;",
        "}",
        "",
        "// the vector that starts at a cell of the row",
        f"#define KGT_AT(at) {call}",
        "",
        *_part(cell, lanes, itemsize, "first"),
        *_part(cell, lanes, itemsize, "last"),
    ]


def _part(cell: str, lanes: Lanes, itemsize: int, which: str) -> list[str]:
    """C lines: `kgt_first` or `kgt_last`, which stores as many cells of a vector, less than all."""
    first, width = which == "first", lanes.width
    lines = [
        f"// the {which} cells of a vector, " + ("from `at` on" if first else "up to `at`"),
        f"static inline __attribute__((always_inline)) void kgt_{which}(",
        f"{INDENT}__global {cell} *at, const kgt_cells item_{width}, const long item_count)",
        "{",
    ]
    near, far = ("lo", "hi") if first else ("hi", "lo")
    while width > 1:
        half, whole = width // 2, f"item_{width}"
        part = Lanes(half).type(cell)
        if half > 1:
            lines.append(f"{INDENT}typedef {part} kgt_{half} __attribute__((aligned({itemsize})));")
        store = f"*(__global {f'kgt_{half}' if half > 1 else part} *)"
        lines += [
            f"{INDENT}if (item_count & {half}) {{",
            *([] if first else [f"{INDENT * 2}at -= {half};"]),
            f"{INDENT * 2}{store}at = {whole}.{near};",
            *([f"{INDENT * 2}at += {half};"] if first and half > 1 else []),
            f"{INDENT}}}",
        ]
        if half > 1:
            rest = f"item_count & {half} ? {whole}.{far} : {whole}.{near}"
            lines.append(f"{INDENT}const {part} item_{half} = {rest};")
        width = half
    return [*lines, "}", ""]


def value_arguments(program: Program, stage: Stage) -> tuple[list[str], dict[str, str], list[str]]:
    """What `kgt_value` is called with: the fields read, their indices, and the pitches it needs."""
    found = reads(stage.expression)
    sources = list(stage.fields_read)
    indices = {field: cell_index(field, stage) for field in sources}
    steps = {(read.field, axis) for read in found for axis, n in enumerate(read.offset[:-1]) if n}
    pitches = [
        f"{field}_pitch_{axis}"
        for field in sources
        for axis in range(program.n_axes - 1)
        if (field, axis) in steps
    ]
    return sources, indices, pitches
