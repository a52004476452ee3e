# SPDX-License-Identifier: MIT
"""How fields pass through their devices in chunks, as text."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

from controllers.memory.ledger import size
from controllers.plan import ChunkPlan, PartedChunks, SkewedPlan
from controllers.plan.chunks.chunk_size import traffic, traffic_of
from controllers.plan.chunks.pipeline import Pipeline
from controllers.program.segments import formers
from controllers.report.duration import duration
from controllers.report.images import images_text
from hitmap.shape import Shape


def chunks_text(plan: ChunkPlan) -> str:
    """What is split and how, chunks, slots and steps of a pass, and what goes over the link."""
    if isinstance(plan, PartedChunks):
        return "\n".join([*_parts(plan), *_formers(plan), *images_text(plan)])
    return "\n".join(_lines(plan, [*images_text(plan)]))


def _parts(plan: PartedChunks, whole: str = "a step") -> Iterator[str]:
    """Passes of each part; their images are those of the whole."""
    n_parts = len(plan.parts)
    for number, part in enumerate(plan.parts):
        names = ", ".join(dict.fromkeys(stage.name for stage in part.plan.program.stages))
        turns = f", up to {part.repeat.at_most} times" if part.repeat is not None else ""
        yield f"part {number + 1} of {n_parts} of {whole}: {names}{turns}"
        one = part.plan
        assert isinstance(one, ChunkPlan), "parts are of chunks, too"
        lines = _parts(one, "a turn") if isinstance(one, PartedChunks) else _lines(one, [])
        yield from (f"  {line}" for line in lines)


def _formers(plan: PartedChunks) -> Iterator[str]:
    """The fields that only parts of a step know."""
    for field in formers(plan.program):
        was = plan.program.renames[field.name]
        yield f"  field {field.name}: what {was} was as a step began, for parts that read it later"


def _lines(plan: ChunkPlan, images: Sequence[str]) -> Sequence[str]:
    found, n_chunks = traffic(plan), len(plan.places)
    launches = f"{plan.n_launches} launch{'es' * (plan.n_launches > 1)}"
    ways = f"in {plan.n_slots} slots of each device"
    if isinstance(plan, SkewedPlan):
        beside = f"{plan.n_parcels} parcel{'s' * (plan.n_parcels > 1)} each way"
        ways = f"skewed, {plan.depth} rows kept for the next one, {beside} on each device"
    lines = [f"chunks: {n_chunks} {ways}, {plan.step_name} in {launches}"]
    lines += [f"  {plan.why}"] if plan.why else []
    lines += [f"  field {field}: {_split(plan, field)}" for field in plan.kept_fields]
    lines += [
        f"  field {field.name}: of the device alone, made with each chunk"
        for field in plan.program.temporaries
    ]
    lines += images
    share = f", {found.excess / found.least:.1%}" if found.least else ""
    lines.append(
        f"  over the link per pass: {size(found.up)} up and {size(found.down)} down, "
        f"{size(found.excess)} more than the least possible{share}"
    )
    if plan.pipeline is not None:
        most = max(len(plan.chunks(where)) for where in plan.locations)
        lines.append(f"  estimated per pass: {_estimate(plan.pipeline, most)}")
    return lines


def _estimate(pipeline: Pipeline, n_chunks: int) -> str:
    """What bounds a pass, and what it takes at best."""
    disk = f", {duration(pipeline.disk_s)} of the disk" if pipeline.disk_s else ""
    return (
        f"{duration(pipeline.up_s)} up and {duration(pipeline.down_s)} down the link, "
        f"{duration(pipeline.kernels_s)} of kernels{disk}, so that {pipeline.bound} should be the "
        f"bound; ideal: {duration(pipeline.longest_s)}, and {duration(pipeline.ends_s(n_chunks))} "
        f"for both ends of a run"
    )


def _split(plan: ChunkPlan, field: str) -> str:
    changes, images = plan.changes(field), plan.n_images(field)
    below = above = 0
    for place in plan.places:
        own, box = plan.owned(field, place), plan.first_box(field, place) or Shape((), ())
        if box.n_axes:
            below = max(below, own.lower[0] - box.lower[0])
            above = max(above, box.upper[0] - own.upper[0])
    what = "up and down" if changes else "only read, up alone"
    on_host = f"{images} image{'s' * (images > 1)} on the host"
    around = "each row once"
    if below or above:
        around = f"overlapping by up to {below} rows below and {above} above"
    moved = traffic_of(plan, field)
    down = f" and {size(moved.down)} down" if changes else ""
    return f"split, {what}, {around}, {on_host}; {size(moved.up)} up{down}"
