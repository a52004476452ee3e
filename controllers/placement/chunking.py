# SPDX-License-Identifier: MIT
"""Chunks: how many parts fields are cut into that do not fit, and how many steps a pass has.

Chunks are skewed, or overlap where that is not possible, or better.
"""
# docs/decisions/0064-chunks-are-places-in-slots.md
# docs/decisions/0065-skewed-chunks.md
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from controllers.memory.ledger import MemoryCapError
from controllers.placement.chunk_model import (
    cuts_of,
    ends,
    expected,
    least_chunks,
    least_skewed,
)
from controllers.placement.placement import Placement
from controllers.plan import Plan
from controllers.plan.chunks.chunk_margins import why_overlapped
from controllers.plan.chunks.chunks import SLOTS
from controllers.plan.chunks.images import Images
from controllers.plan.chunks.pipeline import Pipeline
from controllers.program.maps import Here, Near
from controllers.program.program import Program
from controllers.program.schedule import sweeps_of
from controllers.settings.execution import Execution
from hitmap.layout import Layout

# steps of a pass that may be chosen: four to each power of 2
SPANS = (1, 2, 3, *(n << twice for twice in range(8) for n in (4, 5, 6, 7)), 1024)
WORTH = 0.97            # of the time of a pass: what the fastest has to save beside a shorter one


@dataclass(frozen=True)
class Cutting:
    """How fields pass through a device.

    n_chunks: of each place.  span: time steps of a pass.  why: for people.
    pipeline: what a pass is estimated to take.
    """

    n_chunks: int
    span: int
    n_slots: int
    is_skewed: bool
    why: str = ""
    pipeline: Pipeline | None = None


def why_whole(program: Program, execution: Execution, placement: Placement) -> str:
    """Why fields have to be in the memory of their devices as a whole; "" where they need not."""
    if any(where.shares_host for where in placement.locations):
        return "a device that shares the host's memory has no other one to take chunks from"
    uses = (use for sweep in sweeps_of(program) for use in sweep.uses)
    if not all(isinstance(use.map, (Here, Near)) for use in uses):
        return "chunks are planned for what is read at constant offsets"
    if program.folds and execution.most_steps > 1:
        return "a launch that folds computes one step"
    asked = {
        "the checked mode": execution.checked != "off",
        "tune": execution.tune,
        'devices="auto"': execution.chooses,
        "a balance": execution.balance not in (None, "off"),
        'exchange="auto"': execution.exchange == "auto",
        "a number of steps per launch for each place": execution.each_steps,
    }
    for what, wanted in asked.items():
        if wanted:
            return f"{what} is for fields that stay on their devices"
    return ""


def cut(
    layout: Layout, placement: Placement, n_chunks: int,
    around: Sequence[tuple[int, int]] | None = None,
) -> tuple[Layout, Placement]:  # fmt: skip
    """Each place in so many chunks along axis 0, or as many as it has rows.

    around: of each place, the rows below and above it that come with its chunks at the ends.
    """
    owned, homes = [], []
    for place, box in enumerate(layout.owned):
        cuts = cuts_of(box.extent[0], n_chunks, (0, 0) if around is None else around[place])
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
    single: Plan, placement: Placement, execution: Execution, images: Images, width: int | None,
    per_launch: int, most: int = SPANS[-1],
) -> Iterator[Cutting]:  # fmt: skip
    """Ways to cut, each with the least number of chunks: first the shortest pass that promises
    about as much as the fastest one, then shorter ones.

    single: the plan of the same on whole places, of single steps.  width: the steps of a pass,
    where that is said.  per_launch: steps that kernels best compute at once.  most: steps of a
    pass that there may be.
    """
    n_slots = SLOTS if execution.slots is None else execution.slots
    spans = _spans(execution.most_steps, per_launch, most) if width is None else (width,)
    reason = why_overlapped(single.program, single.layout)
    best: list[tuple[float, Cutting]] = []
    for span in spans:
        at_once = max(n for n in range(1, per_launch + 1) if not span % n)
        for skewed in (False,) if reason else (True, False):
            least = (least_skewed if skewed else least_chunks)(single, placement, span, n_slots)
            if least is None:
                continue
            wanted = n_slots + 1 if execution.n_chunks is None else execution.n_chunks
            cutting = Cutting(max(least, wanted), span, n_slots, skewed)
            pipeline = expected(
                single, placement, images, cutting.n_chunks, span, at_once, skewed=skewed
            )
            waits = any(map(any, ends(single, span)))   # for what the pass before leaves at its end
            seconds = (pipeline.likely_s + waits * pipeline.ends_s(cutting.n_chunks)) / span
            if not best or seconds < best[-1][0]:
                why = _why(least, "" if skewed else reason or "it is faster")
                best.append((seconds, replace(cutting, why=why, pipeline=pipeline)))
    n_shorter = sum(WORTH * seconds > best[-1][0] for seconds, _ in best)
    return (cutting for _, cutting in reversed(best[: n_shorter + 1]))


def _spans(each: int, per_launch: int, most: int) -> Sequence[int]:
    """Steps of a pass to choose from: multiples of `each`, and of what a launch best computes.

    >>> _spans(1, 12, 100)
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 24, 48, 96]
    >>> _spans(4, 7, 20)
    [4, 8, 12, 16, 20]
    """
    every = sorted({*(span for span in SPANS if span < most), most})
    found = [span for span in every if not span % each] or [each]
    whole = [span for span in found if not span % per_launch]
    return [span for span in found if span < per_launch] + whole if whole else found


def _why(least: int, overlap: str) -> str:
    """What was chosen by; `overlap`: why chunks do, if they do."""
    more = f"; chunks overlap: {overlap}" if overlap else ""
    return f"at least {least} of each place are needed{more}"


def refused(error: MemoryCapError | None, why: str) -> Exception:
    """What does not fit, and why it cannot pass through in chunks; or what was asked for."""
    if error is None:
        return ValueError(f"fields cannot pass through their devices in chunks: {why}")
    return MemoryCapError(f"{error}; it cannot pass through in chunks: {why}")
