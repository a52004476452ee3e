# SPDX-License-Identifier: MIT
"""What chunks take of a device's memory, and of its time: estimated before anything is measured.

The least number of chunks is that of COSP (Sabne, Sakdhnagool, Eigenmann 2013, equation 1): what
passes through in slots, with the overlap of chunks, next to what stays, has to fit.
"""
# docs/decisions/0064-chunks-are-places-in-slots.md
from __future__ import annotations

from collections import Counter
from math import prod

import numpy as np

from controllers.executor.executor import Executor
from controllers.placement.placement import Placement
from controllers.plan import Plan
from controllers.plan.chunks.images import Images
from controllers.plan.chunks.pipeline import Pipeline
from controllers.program.program import Program
from controllers.program.segments import formers
from controllers.program.skew import Skew
from hitmap.cut import split_even
from hitmap.shape import Shape
from hitmap.strided import whole_vectors

# Times that launches of several steps use what they have read, at most, by the number of axes: what
# fields that fit have of single sweeps on an H200 (docs/chunks.md).
REUSED = {1: 5, 2: 5, 3: 2}
# Bytes per second over the link of a device, each way while the other one is busy, and of its own
# memory: what a choice is made by before anything has been measured.
LINK = {"gpu": 4.8e10, "cpu": 2.5e9}
MEMORY = {"gpu": 4e12, "cpu": 2e10}
DISK = 1e9      # ... and of a disk, reads and writes together


def least_chunks(plan: Plan, placement: Placement, span: int, n_slots: int) -> int | None:
    """The least number of chunks of each place; None where not even a row fits.

    (rows of a chunk + margins) x bytes of a row in all buffers x slots <= what is free.
    """
    below, above = margins(plan.program, span)[0]
    most = 1
    for place, box in enumerate(plan.layout.owned):
        executor = placement.executors[place]
        mates = sum(one is executor for one in placement.executors.values())
        free = (executor.ledger.cap_bytes - executor.ledger.on_device) // mates
        rows = free // (n_slots * row_nbytes(plan, place, span)) - below - above
        if rows < 1:
            return None
        most = max(most, -(-box.extent[0] // rows))
    return most


def margins(program: Program, span: int) -> list[tuple[int, int]]:
    """How far so many steps read below and above a cell, by axis."""
    return [
        (
            span * sum(max(0, -stage.offsets[axis][0]) for stage in program.stages),
            span * sum(max(0, stage.offsets[axis][1]) for stage in program.stages),
        )
        for axis in range(program.n_axes)
    ]


def row_nbytes(plan: Plan, place: int, span: int) -> int:
    """Bytes that a row of cells along axis 0 takes in all buffers of a chunk."""
    beyond = margins(plan.program, span)
    total = 0
    for field, count in plan.n_rooms.items():
        outside = plan.program.field(field).boundary.extends
        sides = [
            (ring * low + outside, n + ring * high + outside)
            for n, ring, (low, high) in zip(
                plan.owned(field, place).extent, plan.periodic, beyond
            )
        ][1:]  # fmt: skip
        if sides:
            low, high = sides[-1]
            sides[-1] = 0, whole_vectors(whole_vectors(low) + high)
        across = [low + high for low, high in sides]
        total += count * prod(across) * np.dtype(plan.program.field(field).dtype).itemsize
    return total


def least_skewed(plan: Plan, placement: Placement, span: int, n_slots: int) -> int | None:
    """The same of skewed chunks, which share a window: the rows that are kept are there once.

    (rows of a chunk + rows kept) x bytes of a row in all buffers + rows x bytes in parcels <= free.
    Rows of neighbours come with a chunk at the end, of a row at least, which may be thicker than
    the others with them.
    """
    depth, parcels, most = depth_of(plan, span), max(1, n_slots // 2), 1
    around = ends(plan, span)
    for place, box in enumerate(plan.layout.owned):
        executor = placement.executors[place]
        row = row_nbytes(plan, place, span)
        free = executor.ledger.cap_bytes - executor.ledger.on_device - row * depth
        come, leave = (parcels * nbytes for nbytes in _moved(plan.program, box))
        rows = free // (row + come + leave)
        end = max(around[place]) + 1
        if any(around[place]) and rows < end:
            left = free - (row + come) * end
            rows = -1 if left < 0 else min(end, left // leave) if leave else end
        if rows < 1:
            return None
        most = max(most, n_parts(box.extent[0], rows, around[place]))
    return most


def n_parts(n_rows: int, most: int, around: tuple[int, int]) -> int:
    """Chunks of so many rows at most, with the rows of neighbours that come at both ends.

    >>> n_parts(100, 20, (0, 0)), n_parts(100, 20, (0, 10)), n_parts(100, 20, (30, 30))
    (5, 6, 7)
    """
    if most > max(around):
        return -(-(n_rows + sum(around)) // most)
    n_ends = sum(map(bool, around))
    return n_ends + -(-max(0, n_rows - n_ends) // most)


def cuts_of(n_rows: int, n_chunks: int, around: tuple[int, int]) -> list[int]:
    """Where a place is cut: where rows of neighbours come, too, less of its own are in a chunk.

    >>> cuts_of(100, 5, (0, 0)), cuts_of(100, 5, (0, 10)), cuts_of(100, 5, (30, 0))
    ([0, 20, 40, 60, 80, 100], [0, 22, 44, 66, 88, 100], [0, 1, 26, 51, 76, 100])
    """
    n_ends = sum(map(bool, around))
    n_chunks = max(1, min(n_chunks, n_rows))
    if n_chunks <= n_ends:
        return split_even(n_rows, n_chunks)
    size = -(-(n_rows + sum(around)) // n_chunks)
    first, last = (max(1, size - rows) if rows else 0 for rows in around)
    between = split_even(n_rows - first - last, n_chunks - n_ends)
    return [*[0] * bool(first), *(first + cut for cut in between), *[n_rows] * bool(last)]


def depth_of(plan: Plan, span: int) -> int:
    """Rows that are kept for the next chunk, given a plan of single steps."""
    extensions = {field: plan.extension(field) for field in plan.program.dtypes}
    ways = (False, True) if len(plan.locations) > 1 else (False,)
    return max(Skew(plan.liveness, span, extensions, is_backward=way).depth for way in ways)


def ends(plan: Plan, span: int) -> list[tuple[int, int]]:
    """By place, rows below and above it that come with its first and its last chunk.

    Where another device goes on, or the domain is a ring.
    """
    low, high = margins(plan.program, span)[0]
    owned = plan.layout.owned
    begins = {box.lower[0]: place for place, box in enumerate(owned) if not box.empty}
    finishes = {box.upper[0]: place for place, box in enumerate(owned) if not box.empty}

    def is_other(place: int, next_one: int | None) -> bool:
        if next_one is None:
            return plan.periodic[0]
        return not plan.locations[place].same_controller(plan.locations[next_one])

    return [
        (
            low * is_other(place, finishes.get(box.lower[0])),
            high * is_other(place, begins.get(box.upper[0])),
        )
        for place, box in enumerate(owned)
    ]


def expected(
    plan: Plan, placement: Placement, images: Images, n_chunks: int, span: int, per_launch: int,
    *, skewed: bool,
) -> Pipeline:  # fmt: skip
    """What a pass is estimated to take, of the device that takes longest."""
    program = plan.program
    reused = REUSED.get(program.n_axes, REUSED[2])
    kept = depth_of(plan, span) if skewed else 0
    overlap = sum(margins(program, span)[0]) * n_chunks
    each_around = [sum(pair) if skewed else overlap for pair in ends(plan, span)]
    found: dict[Executor, tuple[float, float, float]] = {}
    for place, box in enumerate(plan.layout.owned):
        executor = placement.executors[place]
        link, memory = (of.get(executor.device.kind, of["cpu"]) for of in (LINK, MEMORY))
        rows, around = box.extent[0], each_around[place]
        come, leave = _moved(program, box)
        up_s, down_s = come * (rows + around) / link, leave * rows / link
        computed = sum(
            _row(program, box, name) for stage in program.stages
            for name in (*stage.fields_read, *stage.updates)
        )  # fmt: skip
        # what launches of several steps compute twice, at both ends of their rows
        twice = n_chunks * sum(margins(program, per_launch - 1)[0])
        each_s = computed * (rows + (around + twice) / 2) / memory / min(per_launch, reused)
        kernels_s = each_s * span
        if skewed:
            copied = kept * n_chunks * row_nbytes(plan, place, span) + (come + leave) * rows
            kernels_s += 2 * copied / memory
        before = found.get(executor, (0.0, 0.0, 0.0))
        found[executor] = before[0] + up_s, before[1] + down_s, before[2] + kernels_s
    disk_s = disk_nbytes(plan, images, doubled=not skewed) / DISK
    return Pipeline(*max(found.values(), key=max), disk_s)


def disk_nbytes(plan: Plan, images: Images, *, doubled: bool) -> float:
    """Bytes that a pass reads from files of images and writes to them, of the rank with the most.

    doubled: fields that change have two images.
    """
    if images.cap_bytes is None:
        return 0.0
    kept, moved = Counter[int](), Counter[int]()
    for box, where in zip(plan.layout.owned, plan.locations, strict=True):
        come, leave = (one * box.extent[0] for one in _moved(plan.program, box))
        kept[where.rank] += come + leave * doubled
        moved[where.rank] += come + leave
    return max(
        moved[rank] * max(0.0, 1 - images.cap_bytes / max(1, nbytes))
        for rank, nbytes in kept.items()
    )


def _moved(program: Program, box: Shape) -> tuple[int, int]:
    """Bytes of a row that come, of all fields, and that leave, of those that change."""
    come, leave = (
        sum(_row(program, box, name) for name in names)
        for names in (
            [field.name for field in (*program.fields, *formers(program))],
            {*program.written, *program.renames},
        )
    )
    return come, leave


def _row(program: Program, box: Shape, field: str) -> int:
    return prod(box.extent[1:]) * np.dtype(program.field(field).dtype).itemsize
