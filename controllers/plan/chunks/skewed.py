# SPDX-License-Identifier: MIT
"""Plans of skewed chunks: no cell is computed, and none is uploaded, for two chunks.

The chunks of a device pass through one *window* of its memory in order, from the lowest rows to the
highest, or the other way; where others have rows between, it begins anew: each *run* of chunks that
follow one another (`plan/chunks/chunk_runs.py`) is by itself.  Each launch lags behind the one
before it (`program/skew.py`); the rows that the next chunk needs of all buffers, its *edge*, stay
in the window and are moved within it.
Rows come to a *parcel* beside the window, and leave it in another one, while it is computed.  All
that a device computes has margins: towards rows of other devices, and beyond ends of rings.
"""
# docs/decisions/0065-skewed-chunks.md
from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, reduce

from controllers.plan.chunks.chunk_plan import ChunkPlan
from controllers.plan.chunks.chunk_runs import is_backward, kept, runs_of
from controllers.plan.field_layouts import alike
from controllers.plan.operation import Parcel, RoomKey, SlotKey, TileKey
from controllers.program.rounds import Round
from controllers.program.skew import Skew
from controllers.program.sweep import Sweep, Version
from hitmap.message import Message
from hitmap.region import Region
from hitmap.shape import Shape
from hitmap.strided import Geometry

FAR = 1 << 60       # rows


class SkewedOutline(ChunkPlan):
    """What is known of a plan of skewed chunks before its operations are recorded."""

    @property
    def n_parcels(self) -> int:
        """How many there are of each field on their way in one direction."""
        return max(1, self.n_slots // 2)

    def round(self, place: int) -> Round:
        """Of what its device computes, the rows that are computed with this chunk."""
        if place not in self._rounds:
            whole, skew = self._whole(place), self.skew_of(place)
            computed = tuple(
                tuple(
                    _rows(box, *self._ends(place, skew.lag(launch, number)))
                    for number, box in enumerate(boxes)
                )
                for launch, boxes in enumerate(whole.computed)
            )
            needed = []
            for launch, versions in enumerate(whole.needed):
                found = {
                    version: _rows(box, *self._ends(place, skew.made(launch, version)))
                    for version, box in versions.items()
                }
                needed.append({version: box for version, box in found.items() if not box.empty})
            self._rounds[place] = Round(computed, tuple(needed))
        return self._rounds[place]

    def first_box(self, field: str, place: int) -> Shape | None:
        box = self._whole(place).first(field)
        if box is None:
            return None
        box &= self._unrolled[field]    # rules make the others, of rows that may come later
        box = _rows(box, *self._ends(place, 0, held=False))
        return None if box.empty else box

    def updated(self, sweep: Sweep, place: int) -> Shape:
        """The cells that a sweep folds with this chunk, in the last launch of a pass."""
        home = sweep.stage.home
        every = [self.owned(home, one) for one in self.run_of(place)]
        own = sweep.of_place(reduce(Shape.hull, every))
        return own & self.computed(self._number(sweep), self.n_launches - 1, place)

    def parts_of(
        self, number: int, phase: int, place: int
    ) -> tuple[list[tuple[Shape, bool]], Shape]:
        sweep, over = self.sweeps[number], self.computed(number, phase, place)
        nothing = Shape(over.lower, over.lower)
        if over.empty:
            return [], nothing
        if not sweep.folds or phase < self.n_launches - 1:
            return [(over, False)], nothing
        own = self.updated(sweep, place)
        rest = (Region.of([over]) - own).boxes
        return [*([] if own.empty else [(own, True)]), *((box, False) for box in rest)], nothing

    def is_near(self, field: str, message: Message) -> bool:
        """Those of its own rank that no pass changes; others have left their images before."""
        is_own = message.source == message.target
        return super().is_near(field, message) and (is_own or not self.changes(field))

    def n_images(self, field: str) -> int:
        return 1

    def run_of(self, place: int) -> tuple[int, ...]:
        """The chunks of its device that follow one another, it among them, as they are computed."""
        return self._run_of[place]

    @cached_property
    def _run_of(self) -> dict[int, tuple[int, ...]]:
        return {place: run for run in self._runs for place in run}

    @cached_property
    def _runs(self) -> tuple[tuple[int, ...], ...]:
        return runs_of(self.layout, self.locations)

    @cached_property
    def order(self) -> Sequence[int]:
        found = [*range(len(self.locations))]
        for run in self._runs:
            for at, place in zip(sorted(run), run, strict=True):
                found[at] = place
        return found

    def before(self, place: int) -> int | None:
        """The chunk before one in its window, of which an edge stays for it."""
        run = self.run_of(place)
        at = run.index(place)
        return run[at - 1] if at else None

    def slot(self, field: str, buffer: int, place: int) -> SlotKey:
        room = RoomKey(field, buffer, self.chunks(self.locations[place])[0], 0)
        return SlotKey(field, buffer, place, room)

    def arrival(self, field: str, place: int) -> SlotKey:
        """What holds the cells that come for a chunk."""
        chunks = self.chunks(self.locations[place])
        number = chunks.index(place) % self.n_parcels
        return SlotKey(field, 0, place, RoomKey(field, 0, chunks[0], number, "arrival"))

    def leaving(self, field: str, place: int) -> Iterator[tuple[SlotKey, dict[int, Shape]]]:
        """What is downloaded with a chunk, in parts that a parcel holds.

        Of each part its parcel and, by the place whose image they go to, the cells.
        """
        chunks = self.chunks(self.locations[place])
        ends = self._ends(place, self.skew_of(place).made(self.n_launches, Version(field, 0)))
        owned = {home: _rows(self.owned(field, home), *ends) for home in self.run_of(place)}
        boxes = [box for box in owned.values() if not box.empty]
        low = min((box.lower[0] for box in boxes), default=0)
        high = max((box.upper[0] for box in boxes), default=0)
        most = self._most_rows(field, chunks)
        for part, first in enumerate(range(low, high, most)):
            number = (chunks.index(place) + part) % self.n_parcels
            room = RoomKey(field, 0, chunks[0], number, "departure")
            found = {home: _rows(box, first, first + most) for home, box in owned.items()}
            cells = {home: box for home, box in found.items() if not box.empty}
            yield SlotKey(field, part, place, room), cells

    def _most_rows(self, field: str, chunks: tuple[int, ...]) -> int:
        """Those of the largest chunk."""
        return max(self.owned(field, place).extent[0] for place in chunks)

    def edges(self, field: str, place: int) -> Iterator[Shape]:
        """What stays for a chunk of the one before it, in parts that are moved in order."""
        before = self.before(place)
        if before is None:
            return
        box, then = self.geometry(field, place).box, self.geometry(field, before).box
        yield from kept(box, self.layout.owned[place], box.lower[0] - then.lower[0])

    def geometry(self, field: str, place: int) -> Geometry:
        own = self.layout.owned[place]
        if own.empty:
            return Geometry.padded(own)
        box, run, depth = self._room(place)[field], self.run_of(place), self.skew_of(place).depth
        lowest, highest = place == min(run), place == max(run)
        below, above = (0, depth) if is_backward(self.run_of(place)) else (depth, 0)
        low = box.lower[0] if lowest else own.lower[0] - below
        high = box.upper[0] if highest else own.upper[0] + above
        return Geometry.padded(_rows(box, low, high))

    def full(self, field: str, place: int) -> Shape:
        return self.geometry(field, place).box

    def lies(self, key: TileKey) -> Geometry:
        if not isinstance(key, SlotKey) or key.room.what == "window":
            return super().lies(key)
        field, place = key.field, key.place
        if key.room.what == "departure":
            boxes = [*dict(self.leaving(field, place))[key].values()]
        else:
            messages = (m for m in self.around(field, place) if m.source != place)
            boxes = [self.brought(field, place), *(b for m in messages for b in m.halo)]
        own = self.owned(field, place)
        boxes = [box for box in boxes if not box.empty] or [Shape(own.lower, own.lower)]
        return Geometry.padded(reduce(Shape.hull, boxes))

    def _rooms(self, chunks: tuple[int, ...]) -> Iterator[tuple[RoomKey, Geometry]]:
        for field, n_buffers in self.n_buffers.items():
            largest = _largest(self.geometry(field, place) for place in chunks)
            for buffer in range(n_buffers):
                yield RoomKey(field, buffer, chunks[0], 0), largest
        for field in self.kept_fields:
            found: dict[Parcel, Geometry]
            found = {"arrival": _largest(self.lies(self.arrival(field, one)) for one in chunks)}
            if self.changes(field):     # of shorter passes each chunk may be the largest
                found["departure"] = _largest(
                    Geometry.padded(self.owned(field, place)) for place in chunks
                )
            for what, largest in found.items():
                for number in range(self.n_parcels if largest.n_elements else 0):
                    yield RoomKey(field, 0, chunks[0], number, what), largest

    def _ends(self, place: int, lag: int, *, held: bool = True) -> tuple[int, int]:
        """From which row to which a chunk is computed by what lags so far."""
        run, before = self.run_of(place), self.before(place)
        begin = None if before is None else self._cut(before, lag, held)
        end = None if place == run[-1] else self._cut(place, lag, held)
        low, high = (end, begin) if is_backward(run) else (begin, end)
        return -FAR if low is None else low, FAR if high is None else high

    def _cut(self, place: int, lag: int, held: bool) -> int:
        """The row between a chunk and the one after it, by what lags so far."""
        own, domain = self.layout.owned[place], self.layout.domain
        hold = self.skew_of(place).hold if held else 0
        if is_backward(self.run_of(place)):
            cut = own.lower[0] + lag
            return cut if not hold or cut <= domain.upper[0] - hold else FAR
        cut = own.upper[0] - lag
        return cut if not hold or cut >= domain.lower[0] + hold else -FAR

    def _whole(self, place: int) -> Round:
        """The round of all that the run of a chunk owns."""
        run = self.run_of(place)
        if run not in self._wholes:
            owned = {
                field: reduce(Shape.hull, (self.owned(field, one) for one in run))
                for field in self._unrolled
            }
            self._wholes[run] = self._surveyor.round(owned, [self.sweeps] * self.n_launches)
        return self._wholes[run]

    @cached_property
    def _wholes(self) -> dict[tuple[int, ...], Round]:
        return {}

    def skew_of(self, place: int) -> Skew:
        """How far launches lag behind, in the run of a chunk."""
        return self._skews[is_backward(self.run_of(place))]

    @property
    def depth(self) -> int:
        """The most rows that are kept for a chunk."""
        return max(skew.depth for skew in self._skews.values())

    @cached_property
    def _skews(self) -> dict[bool, Skew]:
        extensions = {field: self.extension(field) for field in self._unrolled}
        return {
            backward: Skew(self.liveness, self.n_launches, extensions, is_backward=backward)
            for backward in {is_backward(run) for run in self._runs}
        }

    def _room(self, place: int) -> dict[str, Shape]:
        """The boxes of tiles that would hold all rows of a run, of all fields alike."""
        run = self.run_of(place)
        if run not in self._all:
            whole, found = self._whole(place), {}
            for field in self._unrolled:
                boxes = [self.owned(field, one) for one in run]
                boxes += [] if (box := whole.hull(field)) is None else [box]
                boxes += [
                    box for launch in whole.computed for box, sweep in zip(launch, self.sweeps)
                    if field in sweep.fields
                ]  # fmt: skip
                found[field] = reduce(Shape.hull, (box for box in boxes if not box.empty))
            low = min(box.lower[0] for box in found.values())
            high = max(box.upper[0] for box in found.values())
            found = {
                field: reduce(Shape.hull, (found[one] for one in self._sharing(field)))
                .slab(0, low, high) for field in found
            }  # fmt: skip
            every = [*found.values()]
            first = self.layout.owned[place].lower[-1]
            self._all[run] = {field: alike(box, every, first) for field, box in found.items()}
        return self._all[run]

    @cached_property
    def _all(self) -> dict[tuple[int, ...], dict[str, Shape]]:
        return {}


def _rows(box: Shape, low: int, high: int) -> Shape:
    """Those of a box between two rows."""
    first, last = box.lower[0], box.upper[0]
    low, high = (min(max(row, first), last) for row in (low, high))
    return box.slab(0, low, max(low, high))


def _largest(geometries: Iterator[Geometry]) -> Geometry:
    return max(geometries, key=lambda one: one.n_elements)
