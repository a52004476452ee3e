# SPDX-License-Identifier: MIT
"""The strategy "cell": one cell per work-item, without a bounds test, for CPUs and GPUs alike.

A bounds test would stop the vectoriser of CPU drivers.  Instead the number of groups is rounded up
and the last group of an axis starts early, so that it ends with the box: the cells it shares with
the group before are written twice, with the same value, since old and new level are different
buffers.  The index of a cell is a base, the same for the whole group, plus the local ids, which
vectorises.
"""
from __future__ import annotations

from controllers.kgt import frame
from controllers.kgt.emitter import INDENT, assignment, cell_index, used_fields
from controllers.kgt.kernel import GeneratedKernel
from controllers.program.program import Program, Stage

# Work-groups: items along the last axis, and items in all where that axis is short.  Measured on
# PoCL (2 cores; 2d4, 2d9c, 2d9s, 3d7; 62^2 to 4096^2, 256^3): 4 rows of 512 are as fast as the
# driver's own choice or faster, in cache and beyond it, which other sizes are not; small boxes
# want few large groups.  NVIDIA H200: 256 items, 64 of them in a row.
CPU_ROW, CPU_ITEMS = 512, 1024
GPU_ROW, GPU_ITEMS = 64, 256
MIN_ROWS = 4
MAX_LOCAL_Z = 64  # NVIDIA's limit on OpenCL dimension 2


def cell_kernel(program: Program, stage: Stage) -> GeneratedKernel:
    """The kernel of `stage` that computes one cell per work-item."""
    target = f"{stage.writes}_new[{cell_index(stage.writes, stage)}]"
    body = [
        *_group_start(program.n_axes),
        *(
            line
            for field in used_fields(stage)
            for line in _index(field, cell_index(field, stage), program.n_axes)
        ),
        "",
        *assignment(target, stage, program.dtype),
    ]
    return frame.kernel(program, stage, "one cell per work-item", body, work_sizes)


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


def work_sizes(extent: tuple[int, ...], is_cpu: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Global and local size, in OpenCL order, for a box; no local size exceeds its `extent`.

    Local sizes are powers of two, so that few variants are compiled.

    >>> work_sizes((4096, 4096), is_cpu=True)
    ((4096, 4096), (512, 4))
    >>> work_sizes((100, 3), is_cpu=False)
    ((4, 128), (2, 64))
    """
    if min(extent) < 1:
        raise ValueError(
            f"a launch needs at least one cell per axis, got the extent {extent}; skip empty boxes"
        )
    row, max_items = (CPU_ROW, CPU_ITEMS) if is_cpu else (GPU_ROW, GPU_ITEMS)
    x, y, z = (*extent[:-4:-1], 1, 1)[:3]
    shared = extent[0] if len(extent) == 4 else 1  # axes 0 and 1 are both in z, one cell per group
    local_z_limit = 1 if len(extent) == 4 else MAX_LOCAL_Z
    local_x = _power_of_two(min(max(row, max_items // min(y, max_items)), x))
    local_y = _power_of_two(min(max(MIN_ROWS, max_items // local_x), y))
    local_z = _power_of_two(min(max(1, max_items // (local_x * local_y)), z, local_z_limit))
    local = (local_x, local_y, local_z)
    rounded = tuple(-(-cells // size) * size for cells, size in zip((x, y, z), local))
    n_dimensions = min(3, len(extent))
    return (*rounded[:2], rounded[2] * shared)[:n_dimensions], local[:n_dimensions]


def _power_of_two(limit: int) -> int:
    return 1 << (limit.bit_length() - 1)
