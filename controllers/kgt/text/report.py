# SPDX-License-Identifier: MIT
"""How accessors that look before they touch report the first fault of a tile, in OpenCL C."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.program.offsets import MAX_AXES

REPORT = "cell_report_"     # and the name of a tile: the parameter
UNDECLARED, OUTSIDE = 1, 2  # kinds of faults
LINE = 1 + 2 * MAX_AXES     # where the line of the text is; 0 where it is not known
REPORT_LONGS = LINE + 1     # the kind, the cell that is touched, the work-item's own one, the line


def complain(n_axes: int) -> list[str]:
    """The function that writes the first fault: the kind, the cell, the work-item's, the line."""
    axes = range(n_axes)
    cells = ", ".join(f"const long {name}_{axis}" for name in ("i", "own") for axis in axes)
    facts = [(1 + axis, f"i_{axis}") for axis in axes]
    facts += [(1 + MAX_AXES + axis, f"own_{axis}") for axis in axes] + [(LINE, "line")]
    return [
        f"void cell_complain(__global const long *report, const int kind, {cells}, const int line)",
        "{",
        "    if (atomic_cmpxchg((volatile __global int *)report, 0, kind) != 0) return;",
        "    __global long *facts = (__global long *)report;",
        *(f"    facts[{position}] = {name};" for position, name in facts),
        "}",
    ]


def is_declared(declared: Sequence[tuple[int, ...]]) -> str:
    """Whether a cell is at one of the offsets from the work-item's own, in OpenCL C.

    >>> is_declared([(-1,), (0,)])
    '(i_0 - own_0 == -1L) || (i_0 - own_0 == 0L)'
    """
    offsets = (
        " && ".join(f"i_{axis} - own_{axis} == {step}L" for axis, step in enumerate(offset))
        for offset in declared
    )
    return " || ".join(f"({offset})" for offset in offsets) or "0"


def touched(n_axes: int) -> str:
    """The names of the cell that is touched, and of the work-item's own one."""
    return ", ".join(f"{name}_{axis}" for name in ("i", "own") for axis in range(n_axes))
