# SPDX-License-Identifier: MIT
"""What is wrong with cells that an operation touches, in words."""
from __future__ import annotations

import numpy as np

from controllers.check.cells import NEVER, Bits
from controllers.check.finding import Complaint, FaultKind
from controllers.check.part import Touched
from controllers.check.versions import Versions
from controllers.plan import Operation


def first_cell(part: Touched, wrong: Bits, versions: Versions) -> tuple[int, ...]:
    """The global index of the first cell of a part that is `wrong`."""
    at = np.unravel_index(int(np.argmax(wrong)), part.box.extent)
    return versions.wrapped(tuple(int(n) + a for n, a in zip(at, part.box.lower)))


def misplaced(part: Touched, time: int, who: str, versions: Versions) -> Complaint | None:
    """Where the cells of `part` do not hold what they must at `time`."""
    expected = versions.stamps(part.field, part.box, time)
    got = part.where.view(part.cells.stamps)
    wrong = got != expected
    if not wrong.any():
        return None
    cell, at = first_cell(part, wrong, versions), int(np.argmax(wrong))
    stamp, needed = int(got.flat[at]), versions.describe(int(expected.flat[at]))
    kind: FaultKind = "unwritten" if stamp == NEVER else "stale"
    held = "nobody has written" if stamp == NEVER else f"holds {versions.describe(stamp)}"
    what = f"{who} {part.field} at {cell}, which {held}; it needs {needed}"
    return Complaint(kind, what, part.field, cell)


def unordered(
    operation: Operation, part: Touched, early: Bits, versions: Versions
) -> Complaint | None:
    """Where an operation is `early`: it need not come after what it depends on."""
    if not early.any():
        return None
    cell = first_cell(part, early, versions)
    what = (
        f"the {operation.verb} of place {operation.place} does not wait for an earlier "
        f"command on {part.field} at {cell}: nothing enforces their order"
    )
    return Complaint("unordered", what, part.field, cell)


def garbled(part: Touched, wrong: Bits, place: int, versions: Versions) -> Complaint | None:
    """Where the cells of `part` have the `wrong` bits."""
    if not wrong.any():
        return None
    cell = first_cell(part, wrong, versions)
    what = (
        f"{part.field} at {cell} has other bits at place {place} than were computed, loaded or "
        f"sent there"
    )
    return Complaint("corrupt", what, part.field, cell)
