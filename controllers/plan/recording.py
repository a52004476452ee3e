# SPDX-License-Identifier: MIT
"""What a plan records for each sweep: launches, exchanges, fills, and what is carried elsewhere."""
from __future__ import annotations

from collections.abc import Iterable, Mapping

from controllers.plan import exchange
from controllers.plan.bundle import Bundle
from controllers.plan.folding import is_occasional, known, record_folds, record_occasional
from controllers.plan.operation import FoldKey, MemoryCells, TileKey
from controllers.plan.outline import Outline
from controllers.plan.recorder import Recorder
from controllers.program.sweep import Version
from hitmap.region import Region
from hitmap.shape import Shape


def record_step(plan: Outline, recorder: Recorder, phase: int) -> None:
    """All of one step of the period."""
    _fill_opened(plan, recorder, phase, timed=True)
    for numbers in plan.liveness.groups:
        _record_sweeps(plan, recorder, numbers, phase)
    record_occasional(plan, recorder)
    for task in plan.host_tasks:    # with the versions that are left as the step ends
        for place in plan.places:
            read, written = (
                [
                    MemoryCells(plan.newest(f, phase + 1, place), (plan.owned(f, place),))
                    for f in fs
                ]
                for fs in (task.reads, task.writes)
            )
            recorder.add(place, "host", "host", read, written, task=task)


def record_opening(plan: Outline, recorder: Recorder, phase: int) -> None:
    """What fills the halos of the versions that a step begins with, and what never changes."""
    opened = {*plan.liveness.opened.values()}
    exchanges = [
        exchange.Delivery(plan, recorder, part, phase, opens=True)
        for part in (bundle.only(opened) for bundle in plan.bundles)
        if part is not None
    ]
    for one in exchanges:
        one.pack()
    exchange.record(exchanges)
    _fill_opened(plan, recorder, phase, timed=False)
    fill_once(plan, recorder)


def _record_sweeps(
    plan: Outline, recorder: Recorder, numbers: tuple[int, ...], phase: int
) -> None:
    """A sweep, and those that complete it; then what lies outside of what is settled."""
    made = made_by(plan, numbers)
    for version in made:
        _carry(plan, recorder, version, phase)
    record_launches(plan, recorder, numbers, phase, bundles_with(plan, numbers))
    outside = {}
    for version in plan.settled[numbers[-1]]:
        extension = plan.extension(version.field)
        # what depends on scalars is those of the step that reads it, and a step begins with its own
        if extension is not None and (not extension.is_timed or _is_read(plan, version)):
            outside[version] = version
    _fill(plan, recorder, outside, phase)


def made_by(plan: Outline, numbers: Iterable[int]) -> list[Version]:
    """The versions that sweeps make, each once."""
    updates = (update for number in numbers for update in plan.sweeps[number].updates)
    return [*dict.fromkeys(update.version for update in updates)]


def bundles_with(plan: Outline, numbers: tuple[int, ...]) -> list[Bundle]:
    """What leaves with versions in it that can be sent after these sweeps, and not before."""
    return [
        bundle
        for bundle in plan.bundles
        if any(plan.sent_after(transfer.version) in numbers for transfer in bundle.transfers)
    ]


def record_launches(
    plan: Outline,
    recorder: Recorder,
    numbers: tuple[int, ...],
    phase: int,
    leaving: Iterable[Bundle],
) -> None:
    """Borders, then packing, so that it does not queue behind the inner part, then the rest.

    numbers: a sweep, and those that complete it; leaving: of what messages they make parts.
    """
    deliveries = [
        exchange.Delivery(plan, recorder, bundle, phase, numbers[-1]) for bundle in leaving
    ]
    inner = []
    for number in numbers:
        for place in plan.places:
            at = plan.last_of(phase, place)
            first, rest = plan.parts_of(number, at, place)
            for part, (over, folds) in enumerate(first):
                record_launch(plan, recorder, number, at, place, over, part, folds=folds)
            inner.append((number, place, rest, len(first)))
    recorder.launch = plan.n_launches
    for one in deliveries:
        one.pack()
    for number, place, rest, part in inner:
        if not rest.empty:
            at = plan.last_of(phase, place)
            record_launch(plan, recorder, number, at, place, rest, part)
    recorder.launch = plan.n_launches
    for number in numbers:
        record_folds(plan, recorder, number)
    exchange.record(deliveries)


def _is_read(plan: Outline, version: Version) -> bool:
    """Whether a sweep of the step that makes a version reads it, too."""
    return any(use.version == version for sweep in plan.sweeps for use in sweep.uses)


def _fill_opened(plan: Outline, recorder: Recorder, phase: int, *, timed: bool) -> None:
    """Make cells outside the domain of what a step begins with: those that are `timed`, or not."""
    made = {}
    for field, version in plan.liveness.opened.items():
        extension = plan.extension(field)
        if extension is not None and extension.is_timed == timed:
            made[version] = Version(field, 0)
    _fill(plan, recorder, made, phase)


def _fill(
    plan: Outline, recorder: Recorder, made: Mapping[Version, Version], phase: int
) -> None:
    """Make cells outside the domain: what readers of some versions need, if it changes.

    made: what has them, by the version that is read.
    """
    for place in plan.places:
        record_fill(plan, recorder, phase, place, {
            one: plan.outside(version, place) for version, one in made.items()
            if not plan.program.field(version.field).boundary.is_steady
        })  # fmt: skip


def record_fill(
    plan: Outline, recorder: Recorder, phase: int, place: int,
    outside: Mapping[Version, tuple[Shape, ...]],
) -> None:  # fmt: skip
    """Make these cells of some versions outside the domain, if there are any, all at once."""
    read, written = [], {}
    for made, boxes in outside.items():
        extension = plan.extension(made.field)
        if extension is not None and boxes:
            tile = plan.tile(made, phase, place)
            sources = Region.of(part for box in boxes for part in extension.sources(box))
            read += [] if sources.empty else [MemoryCells(tile, sources.boxes)]
            written[made] = MemoryCells(tile, boxes)
    if written:
        recorder.add(place, "fill", "compute", read, written.values(), versions=written)


def fill_once(plan: Outline, recorder: Recorder) -> None:
    """Make the cells outside the domain that never change, in all buffers."""
    for field, n_buffers in plan.liveness.n_buffers.items():
        extension = plan.extension(field)
        if extension is not None and extension.boundary.is_steady:
            for place in plan.places:
                outside = plan.ever_outside(field, place)
                for buffer in range(n_buffers) if outside else ():
                    written = MemoryCells(TileKey(field, buffer, place), outside)
                    version = Version(field, 0)
                    recorder.add(place, "fill", "compute", [], [written], versions=[version])


def record_launch(
    plan: Outline,
    recorder: Recorder,
    number: int,
    phase: int,
    place: int,
    over: Shape,
    part: int,
    *,
    folds: bool = True,
    always: bool = False,
) -> None:
    """One launch; it folds if its sweep does, and `folds`.

    always: it is never left out, so that who writes over what it reads waits for it.
    """
    recorder.launch = launch = plan.launch_of(phase, place)
    sweep = plan.sweep_at(number, launch, place)
    sources = [
        MemoryCells(plan.tile(use.version, phase, place), (sweep.read(use, over),))
        for use in sweep.uses
    ]
    made = [plan.tile(update.version, phase, place) for update in sweep.updates]
    targets = [
        MemoryCells(tile, (sweep.written(update.version.field, over),))
        for tile, update in zip(made, sweep.updates)
    ]
    occasional = not sweep.updates and not always and is_occasional(plan.program, sweep)
    recorder.add(
        place, "launch", "compute", sources, targets, sweep=number, over=over, part=part,
        takes=known(plan, sweep, place), occasional=occasional,
        gives=[FoldKey(number, "launches", place)] if sweep.folds and folds else (),
    )  # fmt: skip


def _carry(plan: Outline, recorder: Recorder, version: Version, phase: int) -> None:
    """Copy what a sweep does not compute to where its field goes on, if it is not there."""
    region = plan.liveness.carried(version, phase)
    for place in plan.places if not region.empty else ():
        record_carry(
            plan, recorder, version, phase, place, region & plan.owned(version.field, place)
        )


def record_carry(
    plan: Outline, recorder: Recorder, version: Version, phase: int, place: int, region: Region
) -> None:
    """Copy cells to the buffer of a version from that of the version before."""
    if not region.empty:
        before = plan.liveness.before(version)
        source = MemoryCells(plan.tile(before, phase, place), region.boxes)
        target = MemoryCells(plan.tile(version, phase, place), region.boxes)
        recorder.add(place, "copy", "compute", [source], [target])
