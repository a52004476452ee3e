# SPDX-License-Identifier: MIT
"""The body of a "cell" kernel: where the work-item's cell is, and its value."""
from __future__ import annotations

from controllers.kgt.emitter import INDENT, assignment, cell_index, used_fields
from controllers.program.program import Program, Stage


def cell_body(program: Program, stage: Stage) -> list[str]:
    """C lines: the body of the kernel."""
    target = f"{stage.writes}_new[{cell_index(stage.writes, stage)}]"
    return [
        *_group_start(program.n_axes),
        *(
            line
            for field in used_fields(stage)
            for line in _index(field, cell_index(field, stage), program.n_axes)
        ),
        "",
        *assignment(target, stage, program.dtype),
    ]


def _group_start(n_axes: int) -> list[str]:
    """C lines: per axis `start_A`, the first cell of the group in the box."""
    lines = [
        "// The group's first cell; the last group of an axis starts early: it ends with the box."
    ]
    for axis in range(max(0, n_axes - 3), n_axes):
        dimension = n_axes - 1 - axis  # OpenCL dimension 0 is the last axis
        size = f"(long)get_local_size({dimension})"
        if n_axes == 4 and axis == 1:
            lines += [
                "const long start_0 = (long)get_group_id(2) / extent_1;  // axes 0 and 1: one cell",
                "const long start_1 = (long)get_group_id(2) - start_0 * extent_1;",
            ]
            continue
        lines += [
            f"const long group_{axis} = (long)get_group_id({dimension}) * {size};",
            f"const long last_{axis} = extent_{axis} - {size};",
            f"const long start_{axis} = group_{axis} < last_{axis} ? group_{axis} : last_{axis};",
        ]
    return lines


def _index(field: str, name: str, n_axes: int) -> list[str]:
    """C lines: the element index of the work-item's cell in the buffers of `field`."""
    pitches = [f" * {field}_pitch_{axis}" for axis in range(n_axes - 1)] + [""]
    starts = [f"start_{axis}{pitch}" for axis, pitch in enumerate(pitches)]
    locals_ = [
        f"(long)get_local_id({n_axes - 1 - axis}){pitch}" for axis, pitch in enumerate(pitches)
    ]
    if n_axes == 4:
        del locals_[:2]  # axes 0 and 1: one cell per group
    base = f"const long {name} = {' + '.join([f'{field}_first', *starts])}"
    own = f"+ {' + '.join(locals_)};"
    return [f"{base} {own}"] if n_axes == 1 else [base, INDENT + own]
