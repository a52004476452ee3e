# SPDX-License-Identifier: MIT
"""What sweeps may write over: versions that nobody else needs, cell by cell as they are read."""
# docs/decisions/0045-in-place-where-a-cell-is-computed-once.md
from __future__ import annotations

from collections.abc import Sequence

from controllers.program.maps import Here
from controllers.program.sweep import Sweep, Use, Version


def spares(sweep: Sweep, use: Use) -> bool:
    """Whether a cell of what a sweep reads is needed no more once that cell is computed.

    Several steps at once and folds read more than the cell; nobody looks into OpenCL C.
    """
    return (
        isinstance(use.map, Here)
        and sweep.count == 1
        and not sweep.folds
        and not sweep.stage.elements
    )


def spared(group: Sequence[Sweep], field: str) -> set[Version]:
    """What sweeps that complete each other read, and `field` may be written over.

    Each reads it where it writes the field, whose other cells may be copied there before.
    """
    used = [(sweep, use) for sweep in group for use in sweep.uses]
    kept = {u.version for s, u in used if not (spares(s, u) and field in s.writes)}
    return {use.version for _, use in used} - kept
