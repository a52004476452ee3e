# SPDX-License-Identifier: MIT
"""What a plan of skewed chunks records of each one: its edge, how it comes, and how it leaves."""
from __future__ import annotations

from itertools import zip_longest

from controllers.plan.chunks.chunk_messages import record_arrival
from controllers.plan.chunks.skewed import SkewedOutline
from controllers.plan.operation import MemoryCells
from controllers.plan.recorder import Recorder
from controllers.program.sweep import Version
from hitmap.shape import Shape


def bring(plan: SkewedOutline, recorder: Recorder, phase: int, place: int) -> None:
    """Keep the edge of the chunk before; bring the rows that are new, by a parcel.

    The next chunk's are sent for as soon as there is a parcel, before anything is computed: what is
    enqueued after launches waits for all of these in some drivers, whatever it is told to wait for.
    """
    chunks = plan.chunks(plan.locations[place])
    at = chunks.index(place)
    for early in chunks[: plan.n_parcels] if not at else ():
        _arrive_all(plan, recorder, phase, place, early)
    _move_edges(plan, recorder, place)
    for field in plan.kept_fields:
        _unpack(plan, recorder, field, place)
    for late in chunks[at + plan.n_parcels : at + plan.n_parcels + 1]:
        _arrive_all(plan, recorder, phase, place, late)


def take(plan: SkewedOutline, recorder: Recorder, field: str, phase: int, place: int) -> None:
    """Bring the rows that are finished to the host, by a parcel."""
    room = plan.tile(Version(field, 0), plan.n_launches, place)
    for parcel, leaving in plan.leaving(field, place):
        boxes = tuple(leaving.values())
        cells = [MemoryCells(room, boxes)], [MemoryCells(parcel, boxes)]
        recorder.add(place, "copy", "compute", *cells)
        sources = [MemoryCells(parcel, (box,)) for box in boxes]
        images = [plan.image(field, phase + 1, home) for home in leaving]
        targets = [MemoryCells(image, (box,)) for image, box in zip(images, boxes)]
        recorder.add(place, "download", "retrieve", sources, targets)


def _arrive_all(
    plan: SkewedOutline, recorder: Recorder, phase: int, now: int, place: int
) -> None:  # fmt: skip
    """All fields of a chunk, while another one is in the window."""
    for field in plan.kept_fields:
        _arrive(plan, recorder, field, phase, now, place)


def _arrive(
    plan: SkewedOutline, recorder: Recorder, field: str, phase: int, now: int, place: int
) -> None:  # fmt: skip
    """What a place owns and, at the ends of what its device has, what is around it."""
    parcel, own = plan.arrival(field, place), plan.brought(field, place)
    boxes: tuple[Shape, ...] = () if own.empty else (own,)
    moves = [(plan.image(field, phase, place), boxes, boxes)] if boxes else []
    for message in plan.around(field, place):
        if not plan.is_near(field, message):
            record_arrival(plan, recorder, field, message, parcel, now)
        elif message.source != place:
            image = plan.image(field, phase, message.source)
            moves.append((image, message.border, message.halo))
    if moves:
        sources = [MemoryCells(image, boxes) for image, boxes, _ in moves]
        targets = [MemoryCells(parcel, boxes) for _, _, boxes in moves]
        recorder.add(now, "upload", "transfer", sources, targets)


def _move_edges(plan: SkewedOutline, recorder: Recorder, place: int) -> None:
    """To the beginning of the window: in parts, as memory is not copied over itself."""
    before = plan.before(place)
    if before is None:
        return
    every = [
        [(plan.slot(field, buffer, before), plan.slot(field, buffer, place), part)
         for part in plan.edges(field, place)]
        for field, n_buffers in plan.liveness.n_buffers.items() for buffer in range(n_buffers)
    ]  # fmt: skip
    for parts in zip_longest(*every):
        moves = [part for part in parts if part is not None]
        sources = [MemoryCells(then, (box,)) for then, _, box in moves]
        targets = [MemoryCells(now, (box,)) for _, now, box in moves]
        recorder.add(place, "copy", "compute", sources, targets)


def _unpack(plan: SkewedOutline, recorder: Recorder, field: str, place: int) -> None:
    """From the parcel to the window; cells beyond the ends of rings are copied within it."""
    parcel, own = plan.arrival(field, place), plan.brought(field, place)
    room = plan.tile(Version(field, 0), 0, place)
    boxes = [] if own.empty else [own]
    wrapped = []
    for message in plan.around(field, place):
        if message.source == place:
            wrapped.append(message)
        else:
            boxes += message.halo
    if boxes:
        cells = [MemoryCells(parcel, tuple(boxes))], [MemoryCells(room, tuple(boxes))]
        recorder.add(place, "copy", "compute", *cells)
    for message in wrapped:
        cells = [MemoryCells(room, message.border)], [MemoryCells(room, message.halo)]
        recorder.add(place, "copy", "compute", *cells)
