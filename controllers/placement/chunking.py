# SPDX-License-Identifier: MIT
"""Chunks: how many parts fields are cut into that do not fit, and how many steps a pass has.

The least number of chunks is that of COSP (Sabne, Sakdhnagool, Eigenmann 2013, equation 1): what
passes through in slots, with the overlap of chunks, next to what stays, has to fit.
"""
# docs/decisions/0064-chunks-are-places-in-slots.md
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from controllers.executor.executor import Executor
from controllers.kernel.registry import KernelChoice
from controllers.kernel.variant import Kernel
from controllers.memory.ledger import MemoryCapError
from controllers.placement.placement import Placement
from controllers.plan import Plan
from controllers.plan.chunks import SLOTS, why_as_a_whole
from controllers.program.program import Program
from controllers.program.schedule import sweeps_of
from controllers.program.sweep import Here, Near
from controllers.settings.execution import Execution
from hitmap.cut import split_even
from hitmap.layout import Layout
from hitmap.shape import Shape
from hitmap.strided import whole_vectors

# steps of a pass that may be chosen
SPANS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
REUSED = 5      # times that launches of several steps use what they have read, at most
WORTH = 0.95            # a longer pass, with more margin and larger plans, has to save so much
# Bytes per second over the link of a device, each way while the other one is busy, and of its own
# memory: what a choice is made by before anything has been measured.
LINK = {"gpu": 4.8e10, "cpu": 2.5e9}
MEMORY = {"gpu": 4e12, "cpu": 2e10}


@dataclass(frozen=True)
class Cutting:
    """How fields pass through a device.

    n_chunks: of each place.  span: time steps of a pass.  why: for people.
    """

    n_chunks: int
    span: int
    n_slots: int
    why: str = ""


def why_whole(
    program: Program, execution: Execution, kernel: KernelChoice, placement: Placement
) -> str:
    """Why fields have to be in the memory of their devices as a whole; "" where they need not."""
    if any(where.shares_host for where in placement.locations):
        return "a device that shares the host's memory has no other one to take chunks from"
    uses = (use for sweep in sweeps_of(program) for use in sweep.uses)
    if not all(isinstance(use.map, (Here, Near)) for use in uses):
        return "chunks are planned for what is read at constant offsets"
    if program.folds and (execution.steps_per_launch or 1) > 1:
        return "a launch that folds computes one step"
    if isinstance(kernel, Kernel) and any(program.periodic):
        return "kernels of users are not launched beyond the ends of a ring"
    asked = {
        "the checked mode": execution.checked != "off",
        "tune": execution.tune,
        'devices="auto"': execution.chooses,
        "a balance": execution.balance not in (None, "off"),
        'exchange="auto"': execution.exchange == "auto",
        "a search for the halo width": execution.halo_width_search,
    }
    for what, wanted in asked.items():
        if wanted:
            return f"{what} is for fields that stay on their devices"
    return why_as_a_whole(program)


def cut(layout: Layout, placement: Placement, n_chunks: int) -> tuple[Layout, Placement]:
    """Each place in so many chunks along axis 0, or as many as it has rows."""
    owned, homes = [], []
    for place, box in enumerate(layout.owned):
        rows = box.extent[0]
        cuts = split_even(rows, max(1, min(n_chunks, rows)))
        for low, high in zip(cuts, cuts[1:]):
            owned.append(box.slab(0, box.lower[0] + low, box.lower[0] + high))
            homes.append(place)
    chunks = Layout(layout.domain, tuple(owned))
    locations = tuple(placement.locations[home] for home in homes)
    executors = {
        chunk: placement.executors[home]
        for chunk, home in enumerate(homes)
        if home in placement.executors
    }
    return chunks, replace(placement, locations=locations, executors=executors)


def cuttings(
    single: Plan, placement: Placement, execution: Execution, width: int | None, per_launch: int
) -> Iterator[Cutting]:
    """Ways to cut, the one that promises most first, each with the least number of chunks.

    single: the plan of the same on whole places, of single steps.  width: the steps of a pass,
    where that is said.  per_launch: steps that kernels best compute at once.
    """
    n_slots = SLOTS if execution.slots is None else execution.slots
    each = execution.steps_per_launch or 1
    spans = tuple(span for span in SPANS if not span % each) or (each,)
    if width is not None:
        spans = (width,)
    best: list[tuple[float, Cutting]] = []
    for span in spans:
        least = least_chunks(single, placement, span, n_slots)
        if least is None:
            break
        wanted = n_slots + 1 if execution.chunks is None else execution.chunks
        cutting = Cutting(max(least, wanted), span, n_slots)
        link_s, kernels_s = expected_s(single, placement, cutting, min(span, per_launch))
        bound, seconds = max(("the link", link_s), ("kernels", kernels_s), key=lambda one: one[1])
        if not best or seconds < WORTH * best[-1][0]:
            why = (
                f"at least {least} of each place are needed; estimated per step: "
                f"{link_s * 1e3:.3g} ms of the link, {kernels_s * 1e3:.3g} ms of kernels, so that "
                f"{bound} should be the bound"
            )
            best.append((seconds, replace(cutting, why=why)))
    return (cutting for _, cutting in reversed(best))


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
    for field, count in plan.n_buffers.items():
        across = [
            n + ring * sum(beyond[axis]) + 2 * plan.program.field(field).boundary.extends
            for axis, (n, ring) in enumerate(
                zip(plan.owned(field, place).extent, plan.periodic)
            ) if axis
        ]  # fmt: skip
        if across:
            across[-1] = whole_vectors(across[-1])
        total += count * prod(across) * np.dtype(plan.program.field(field).dtype).itemsize
    return total


def expected_s(
    plan: Plan, placement: Placement, cutting: Cutting, per_launch: int
) -> tuple[float, float]:
    """What a time step is estimated to take: seconds of the link and of kernels.

    They work at the same time; those of the device that takes longest.
    """
    program, span = plan.program, cutting.span
    below, above = margins(program, span)[0]
    seconds: dict[Executor, tuple[float, float]] = {}
    for place, box in enumerate(plan.layout.owned):
        executor = placement.executors[place]
        kind = executor.device.kind
        rows, extra = box.extent[0], cutting.n_chunks * (below + above)
        up = sum(_row(program, box, f.name) for f in program.fields) * (rows + extra)
        down = sum(_row(program, box, name) for name in program.written) * rows
        link_s = max(up, down) / LINK.get(kind, LINK["cpu"])
        moved = sum(
            _row(program, box, name) for stage in program.stages
            for name in (*stage.fields_read, *stage.updates)
        )  # fmt: skip
        each_s = moved * (rows + extra / 2) / MEMORY.get(kind, MEMORY["cpu"])
        before = seconds.get(executor, (0.0, 0.0))
        each_s /= min(per_launch, REUSED)
        seconds[executor] = before[0] + link_s / span, before[1] + each_s
    return max(seconds.values(), key=max)


def _row(program: Program, box: Shape, field: str) -> int:
    return prod(box.extent[1:]) * np.dtype(program.field(field).dtype).itemsize


def refused(error: MemoryCapError | None, why: str) -> Exception:
    """What does not fit, and why it cannot pass through in chunks; or what was asked for."""
    if error is None:
        return ValueError(f"fields cannot pass through their devices in chunks: {why}")
    return MemoryCapError(f"{error}; it cannot pass through in chunks: {why}")
