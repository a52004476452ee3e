# SPDX-License-Identifier: MIT
"""Whether launches more pay: of borders first, so that their hand-over hides behind the inner part.

The choice is an estimate from what all ranks hold; a wrong one costs time, never a result.
The constants are orders of magnitude from docs/performance.md, not properties of a device.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from controllers.plan.operation import Location
from controllers.program.program import Program
from hitmap.message import Message
from hitmap.shape import Shape

Overlap = Literal["auto", "on", "off"]

LAUNCH_S = 6e-6             # one more kernel launch
DEVICE_BYTES_PER_S = 2e12   # a sweep over device memory
HAND_OVER_S = 60e-6         # download, message and upload of a small border
LINK_BYTES_PER_S = 20e9     # ... and of a large one

# A launch of a few cells takes as long as moving so many bytes; on two cores, that of PoCL.
LAUNCH_NBYTES = LAUNCH_S * DEVICE_BYTES_PER_S
LAUNCH_NBYTES_ON_HOST = 2.5e5

# Places that share the host's memory, too, hand borders over first where so many additional
# launches are short beside the inner part: none of them waits then for the end of another one's
# launch, which is late by some 5 % and by what the host takes to notice it.
EVENS_OUT = 20

# So much may leave later than it could, with what is made after it: it takes no longer than the
# message that it spares.
LATE_NBYTES = int(HAND_OVER_S * LINK_BYTES_PER_S)


def pays(
    overlap: Overlap,
    location: Location,
    program: Program,
    border: Sequence[Shape],
    inner: Shape,
    leaving: Sequence[Message],
) -> bool:
    """Whether a place computes `border` and `inner` in separate launches.

    `auto`: on a device with memory of its own, when the time hidden exceeds the additional
    launches.  On one that shares the host's memory the hand-over is a copy by the cores that
    also compute, which hides nothing; but places go on without waiting for each other's ends.
    That is for borders of whole rows: kernels for cores compute rows, and several steps of no less.
    """
    if overlap != "auto":
        return overlap == "on"
    computed = inner.n_cells * program.bytes_per_cell
    if location.shares_host:
        rows = all(box.extent[-1] == inner.extent[-1] for box in border)
        return rows and computed > EVENS_OUT * len(border) * LAUNCH_NBYTES_ON_HOST
    n_bytes = sum(message.n_cells for message in leaving) * program.largest_itemsize
    hand_over = HAND_OVER_S + n_bytes / LINK_BYTES_PER_S
    computing = computed / DEVICE_BYTES_PER_S
    return min(hand_over, computing) > len(border) * LAUNCH_S


def launch_nbytes(locations: Sequence[Location]) -> float:
    """How many bytes of a whole domain, divided alike, move while a place launches a few cells."""
    on_host = all(where.shares_host for where in locations)
    return len(locations) * (LAUNCH_NBYTES_ON_HOST if on_host else LAUNCH_NBYTES)
