# SPDX-License-Identifier: MIT
"""Plans of chunks: fields that live on the host, of which a device computes one part after another.

A chunk is a place whose tiles are in the device's memory for a while: in a *slot*, through which
the chunks of a controller pass in turn.  A step of the plan is a *pass*: each chunk is uploaded
with a margin as wide as several launches reach, these are computed on boxes that shrink, as in a
round (`plan/rounds/rounds.py`), and what the chunk owns is downloaded.  Of a field that changes the
host has two images, as chunks read around themselves what others have not written over yet.
"""
# docs/decisions/0064-chunks-are-places-in-slots.md
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial, reduce
from typing import Any

from controllers.plan.bundle import Bundle
from controllers.plan.chunks.images import IN_MEMORY, Images
from controllers.plan.chunks.pipeline import Pipeline
from controllers.plan.folding import needed
from controllers.plan.memory import PlanMemory
from controllers.plan.operation import Location, RoomKey, SlotKey, StagingKey, TileKey
from controllers.plan.rounds.rounds import RoundOutline
from controllers.program.program import Program
from controllers.program.sweep import Sweep, Version
from hitmap.halo import HaloPattern
from hitmap.layout import Layout
from hitmap.message import Message
from hitmap.region import Region
from hitmap.shape import Shape
from hitmap.strided import Geometry

SLOTS = 3       # one is uploaded, one computed, one downloaded


class ChunkOutline(RoundOutline):
    """What is known of a plan of chunks before its operations are recorded.

    Each place is a chunk; those of one controller share `n_slots` slots.
    """

    computes_alike = True       # images change from pass to pass, slots do not
    sends_boxes = True

    def __init__(
        self, program: Program, layout: Layout, periodic: tuple[bool, ...], *args: Any,
        n_slots: int = SLOTS, why: str = "", images: Images = IN_MEMORY,
        pipeline: Pipeline | None = None, **options: Any,
    ) -> None:  # fmt: skip
        """`why`: what the number of chunks and the steps of a pass were chosen by, for people.

        pipeline: what a pass is estimated to take.
        """
        self.n_slots, self.why, self.images, self.pipeline = n_slots, why, images, pipeline
        reason = self.why_not(program)
        if not reason and program.folds and options.get("steps_per_launch", 1) > 1:
            reason = "a launch that folds computes one step"
        if reason:
            raise ValueError(
                f"program {program.name!r} cannot pass through its devices in chunks: {reason}"
            )
        super().__init__(program, layout, periodic, *args, **options)
        self.n_phases = max(map(self.n_images, self.kept_fields))

    def why_not(self, program: Program) -> str:
        """Why chunks of a program cannot be computed in passes like this; "" where they can."""
        if program.repeats:
            return f"the program repeats {program.repeats[0].name!r} within a step"
        if needed(program):
            return "steps use what they fold, which is known when all chunks have been computed"
        return ""

    @property
    def span(self) -> int:
        return self.halo_width

    @property
    def n_turns(self) -> int:
        return self.n_launches if self.program.changing else 1

    @property
    def step_name(self) -> str:
        return f"pass of {self.span} step{'s' * (self.span > 1)}"

    @property
    def round_name(self) -> str:
        return self.step_name

    @cached_property
    def kept_fields(self) -> tuple[str, ...]:
        """The fields that live on the host: all but those of temporary values."""
        temporary = {field.name for field in self.program.temporaries}
        return tuple(name for name in self.program.dtypes if name not in temporary)

    def n_images(self, field: str) -> int:
        """How many images of a field there are on the host."""
        return 2 if self.changes(field) else 1

    @property
    def n_tiles(self) -> Mapping[str, int]:
        return {field: self.n_images(field) for field in self.kept_fields}

    def image(self, field: str, phase: int, place: int) -> TileKey:
        """The host memory that holds the cells that a place owns, as a pass begins."""
        return TileKey(field, phase % self.n_images(field), place)

    def newest(self, field: str, n_done: int, place: int) -> TileKey:
        return self.image(field, n_done, place)

    def to_set(self, field: str, n_done: int, place: int) -> tuple[TileKey, ...]:
        """The newest image alone: a pass writes all of the other one."""
        return (self.image(field, n_done, place),)

    def tile(self, version: Version, phase: int, place: int) -> SlotKey:
        pool = self.liveness.pools[version.field]
        return self.slot(pool, self.liveness.buffer(version, phase), place)

    def slot(self, field: str, buffer: int, place: int) -> SlotKey:
        """The device memory that holds the cells of a place for a while."""
        chunks = self.chunks(self.locations[place])
        turn = chunks.index(place) % self.n_slots
        room = RoomKey(field, buffer, chunks[0], turn)
        return SlotKey(field, buffer, place, room)

    def chunks(self, where: Location) -> tuple[int, ...]:
        """The places of a controller that hold cells, in the order in which they are computed."""
        return self._chunks[where.rank, where.controller]

    @property
    def order(self) -> Sequence[int]:
        """All places, those of each controller in the order in which they are computed."""
        return range(len(self.locations))

    @cached_property
    def _chunks(self) -> dict[tuple[int, int], tuple[int, ...]]:
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        for place in self.order:
            where = self.locations[place]
            if not self.layout.owned[place].empty:
                key = where.rank, where.controller
                found[key] = (*found.get(key, ()), place)
        return found

    def lies(self, key: TileKey) -> Geometry:
        if isinstance(key, SlotKey):
            return self.geometry(key.field, key.place)
        return Geometry.padded(self.owned(key.field, key.place))

    def first(self, field: str, place: int) -> Region:
        """The cells of a field in the domain, or beyond the ends of rings, that a pass begins with.

        Around what the place owns, and within that: all of it where the field changes, if anything
        of it stays.
        """
        box, own = self.first_box(field, place), self.owned(field, place)
        found = Region.of([] if box is None else [box & self._unrolled[field]])
        if self.changes(field) and not self._is_dropped(field):
            found = found | Region.of([own])
        return found

    def _is_dropped(self, field: str) -> bool:
        """Whether nobody has, under any name, what a field was as a step began."""
        live, before = self.liveness, Version(field, 0)
        kept = any(live.last(name) == before for name in self.kept_fields)
        return field in self.program.renames and not kept and not live.uses(before)

    def brought(self, field: str, place: int) -> Shape:
        """The cells that a place owns and that are uploaded for it."""
        own = self.owned(field, place)
        boxes = [own & box for box in self.first(field, place).boxes]
        boxes += [box for message in self.around(field, place) for box in message.border
                  if message.source == place]  # fmt: skip
        nothing = Shape(own.lower, own.lower)
        return reduce(Shape.hull, (box for box in boxes if not box.empty), nothing)

    def around(self, field: str, place: int) -> tuple[Message, ...]:
        """What a place gets of its neighbours, and of itself beyond the ends of rings."""
        return self.patterns[field].incoming(place)

    def is_near(self, field: str, message: Message) -> bool:
        """Whether a place takes what it gets from images: from those of its own rank."""
        source, target = self.locations[message.source], self.locations[message.target]
        return source.rank == target.rank

    def stays(self, bundle: Bundle) -> bool:
        """Whether cells do not leave their rank, but are kept beside its images."""
        return self.locations[bundle.source].rank == self.locations[bundle.target].rank

    def packs(self, bundle: Bundle) -> bool:
        """Whether cells are packed before they leave: those that are no runs of their images."""
        for transfer in bundle.transfers:
            image = self.image(self.begun_as(transfer.version).field, 0, bundle.source)
            lies = self.lies(image)
            if not all(lies.strided(box).contiguous for box in transfer.message.border):
                return True
        return False

    def steady_cells(self, field: str, place: int) -> Region:
        """The cells of a slot that no sweep computes, and that all its buffers need."""
        if self.liveness.goes_whole(field):     # they go with their version
            return Region.of([])
        return self.first(field, place) - self.changing(field)

    @property
    def memories(self) -> tuple[PlanMemory, ...]:
        return tuple(self.images.placed(self._memories_of_chunks(), self.locations))

    def _memories_of_chunks(self) -> Iterator[PlanMemory]:
        """Images, rows of other ranks, and slots as large as the largest chunk that passes."""
        yield from self._memories_of_images()
        for bundle in self.bundles:
            packed = Geometry.dense(Shape((0,), (bundle.n_elements,)))
            leaves, arrives = StagingKey(bundle.number, "border"), StagingKey(bundle.number, "halo")
            is_packed = not self.stays(bundle) and self.packs(bundle)
            for end, home in ((leaves, bundle.source), (arrives, bundle.target)):
                if home in self.places and (end is arrives or is_packed):
                    yield PlanMemory(
                        end, packed, bundle.dtype, "staging", home, "step", on_device=False
                    )
        for where, chunks in self._chunks.items():
            if self.only_rank not in (None, where[0]):
                continue
            for room, geometry in self._rooms(chunks):
                dtype = self.program.field(room.field).dtype
                yield PlanMemory(room, geometry, dtype, "tile", chunks[0], "step", on_device=True)

    def _memories_of_images(self) -> Iterator[PlanMemory]:
        for field in self.kept_fields:
            dtype = self.program.field(field).dtype
            for number in range(self.n_images(field)):
                for place in self.places:
                    key = TileKey(field, number, place)
                    lies = self.lies(key)
                    yield PlanMemory(key, lies, dtype, "image", place, "plan", on_device=False)

    def _rooms(self, chunks: tuple[int, ...]) -> Iterator[tuple[RoomKey, Geometry]]:
        """The memories through which chunks pass, and what is the largest in each."""
        for field, n_buffers in self.n_buffers.items():
            for slot in range(min(self.n_slots, len(chunks))):
                passing = (self.geometry(field, place) for place in chunks[slot::self.n_slots])
                largest = max(passing, key=lambda one: one.n_elements)
                for buffer in range(n_buffers):
                    yield RoomKey(field, buffer, chunks[0], slot), largest

    def launch_of(self, phase: int, place: int) -> int:
        return phase

    def parts_of(
        self, number: int, phase: int, place: int
    ) -> tuple[list[tuple[Shape, bool]], Shape]:
        """Nothing is handed over before the pass ends: all is launched at once.

        Launches fold in the last one of a pass alone.
        """
        parts, rest = super().parts_of(number, phase, place)
        is_last = phase == self.n_launches - 1
        return [(box, folds and is_last) for box, folds in parts], rest

    def _split(self, sweep: Sweep, updated: Shape, place: int) -> tuple[tuple[Shape, ...], Shape]:
        nothing = Shape(updated.lower, updated.lower)
        return (() if updated.empty else (updated,)), nothing

    def _patterns(
        self, fields: Sequence[str]
    ) -> tuple[dict[str, HaloPattern], dict[Version, HaloPattern]]:
        """What each chunk gets of others; messages of what it does not take from images."""
        patterns, exchanged = super()._patterns(fields)
        far = {
            version: exchanged[version].only(partial(self._is_far, field))
            for field in fields if (version := self.liveness.last(field)) in exchanged
        }  # fmt: skip
        return patterns, {version: pattern for version, pattern in far.items() if pattern.messages}

    def _is_far(self, field: str, message: Message) -> bool:
        return not self.is_near(field, message)
