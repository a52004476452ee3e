# SPDX-License-Identifier: MIT
"""What a plan of chunks records for a pass: of each one its way up, launches, its way down."""
from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from controllers.plan.chunks.chunk_messages import record_arrival, record_messages
from controllers.plan.chunks.chunks import ChunkOutline
from controllers.plan.folding import record_folds, record_occasional
from controllers.plan.operation import MemoryCells, TileKey
from controllers.plan.recorder import Recorder
from controllers.plan.recording import record_carry, record_fill, record_launch
from controllers.program.sweep import Version

Chunks = TypeVar("Chunks", bound=ChunkOutline)


def record_pass(
    plan: Chunks, recorder: Recorder, phase: int,
    bring: Callable[[Chunks, Recorder, int, int], None],
    take: Callable[[Chunks, Recorder, str, int, int], None],
) -> None:  # fmt: skip
    """All of one pass; `phase` says which images it begins with.

    bring, take: what records how a chunk, and each field of it, comes and leaves.
    """
    places = {*plan.places}
    for place in (one for one in plan.order if one in places):
        bring(plan, recorder, phase, place)
        for field in plan.kept_fields:
            _spread(plan, recorder, field, place)
        _fill_steady(plan, recorder, place)
        for launch in range(plan.n_launches):
            recorder.turn = launch % plan.n_turns
            _fill_first(plan, recorder, launch, place)
            for numbers in plan.liveness.groups:
                _record_sweeps(plan, recorder, numbers, launch, place)
        recorder.turn = 0
        for field in plan.kept_fields:
            if plan.changes(field):
                take(plan, recorder, field, phase, place)
    for number in range(len(plan.sweeps)):
        record_folds(plan, recorder, number)
    record_messages(plan, recorder, phase + 1)
    record_occasional(plan, recorder)


def upload(plan: ChunkOutline, recorder: Recorder, phase: int, place: int) -> None:
    """All fields of a chunk, to its slot."""
    for field in plan.kept_fields:
        _upload(plan, recorder, field, phase, place)


def _upload(plan: ChunkOutline, recorder: Recorder, field: str, phase: int, place: int) -> None:
    """What a place owns and what is around it; beyond the end of a ring, of its own, by a copy."""
    first = Version(field, 0)
    room = plan.tile(first, 0, place)
    own = plan.brought(field, place)
    sources, targets, wrapped = [], [], []
    if not own.empty:
        sources.append(MemoryCells(plan.image(field, phase, place), (own,)))
        targets.append(MemoryCells(room, (own,)))
    for message in plan.around(field, place):
        if message.source == place:
            wrapped.append(message)
            continue
        if not plan.is_near(field, message):
            record_arrival(plan, recorder, field, message, room, place)
            continue
        sources.append(MemoryCells(plan.image(field, phase, message.source), message.border))
        targets.append(MemoryCells(room, message.halo))
    if sources:
        recorder.add(place, "upload", "transfer", sources, targets)
    for message in wrapped:
        cells = [MemoryCells(room, message.border)], [MemoryCells(room, message.halo)]
        recorder.add(place, "copy", "compute", *cells)


def _spread(plan: ChunkOutline, recorder: Recorder, field: str, place: int) -> None:
    """Copy what no sweep computes to the buffers in which nothing has been brought."""
    region = plan.steady_cells(field, place)
    room = plan.tile(Version(field, 0), 0, place)
    for buffer in range(plan.liveness.n_buffers[field]) if not region.empty else ():
        if buffer != room.buffer:
            source = MemoryCells(room, region.boxes)
            target = MemoryCells(plan.slot(field, buffer, place), region.boxes)
            recorder.add(place, "copy", "compute", [source], [target])


def _fill_steady(plan: ChunkOutline, recorder: Recorder, place: int) -> None:
    """Make the cells outside the domain that never change, in all buffers."""
    for field, n_buffers in plan.liveness.n_buffers.items():
        extension = plan.extension(field)
        if extension is None or not extension.boundary.is_steady:
            continue
        outside = plan.ever_outside(field, place)
        for buffer in range(n_buffers) if outside else ():
            written: TileKey = plan.slot(field, buffer, place)
            cells = [MemoryCells(written, outside)]
            recorder.add(place, "fill", "compute", [], cells, versions=[Version(field, 0)])


def _fill_first(plan: ChunkOutline, recorder: Recorder, launch: int, place: int) -> None:
    """Make the cells outside the domain of what a launch begins with."""
    outside = {}
    for field in plan.patterns:
        extension, first = plan.extension(field), Version(field, 0)
        if extension is None or extension.boundary.is_steady:
            continue
        if launch and not (extension.is_timed or plan.changes(field)):
            continue    # as it was when it was brought
        outside[first] = plan.made_outside(first, launch, place)
    record_fill(plan, recorder, launch, place, outside)


def _record_sweeps(
    plan: ChunkOutline, recorder: Recorder, numbers: tuple[int, ...], launch: int, place: int
) -> None:
    """A sweep, and those that complete it."""
    made = dict.fromkeys(
        update.version for number in numbers for update in plan.sweeps[number].updates
    )
    for version in made:
        region = plan.kept(version, launch, place)
        record_carry(plan, recorder, version, launch, place, region)
    for number in numbers:
        parts, _ = plan.parts_of(number, launch, place)
        for part, (over, folds) in enumerate(parts):
            record_launch(
                plan, recorder, number, launch, place, over, part, folds=folds, always=True
            )
    read = {use.version for sweep in plan.sweeps for use in sweep.uses}
    record_fill(plan, recorder, launch, place, {
        version: plan.made_outside(version, launch, place) for version in made
        if version in read and not plan.program.field(version.field).boundary.is_steady
    })  # fmt: skip


def download(plan: ChunkOutline, recorder: Recorder, field: str, phase: int, place: int) -> None:
    """What a place owns, to the other image: all of it, which is one run of memory."""
    own = plan.owned(field, place)
    room = plan.tile(Version(field, 0), plan.n_launches, place)
    target = plan.image(field, phase + 1, place)
    if not own.empty:
        cells = [MemoryCells(room, (own,))], [MemoryCells(target, (own,))]
        recorder.add(place, "download", "retrieve", *cells)
