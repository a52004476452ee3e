# SPDX-License-Identifier: MIT
"""Plans of arrays that live on the host and pass through their devices in chunks of rows.

As in a plan of chunks (`plan/chunks/chunks.py`) a chunk is a place whose tiles lie in slots for a
while, but nothing is computed twice: one sweep reads rows, writes rows, and reads other arrays as a
whole, which stay on the device. Arrays have one image each, as no chunk reads what another one
writes.
"""
# docs/decisions/0067-calls-pass-through-in-chunks.md
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, reduce

import numpy as np

from controllers.plan.folding import record_folds, record_occasional
from controllers.plan.memory import PlanMemory
from controllers.plan.operation import Location, MemoryCells, RoomKey, SlotKey, TileKey
from controllers.plan.plan import Plan
from controllers.plan.recorder import Recorder
from controllers.plan.recording import record_launch
from controllers.program.program import Program
from controllers.program.sweep import Version
from hitmap.halo import HaloPattern
from hitmap.layout import Layout
from hitmap.shape import Shape
from hitmap.strided import Geometry


class StreamPlan(Plan):
    """A step of a program of one sweep, chunk by chunk; each place is a chunk.

    wholes: how the arrays lie that stay on the device.  images: by place, how those lie on the host
    that pass through.  apart: the layouts of fields with extents of their own.
    ValueError where a place of this rank reads rows that another rank has.
    """

    def __init__(
        self, program: Program, layout: Layout, periodic: tuple[bool, ...],
        locations: Sequence[Location], *, wholes: Mapping[str, Geometry],
        images: Mapping[str, Mapping[int, Geometry]], apart: Mapping[str, Layout], n_slots: int,
        only_rank: int,
    ) -> None:  # fmt: skip
        self.n_slots, self._wholes, self._images, self._apart = n_slots, wholes, images, apart
        super().__init__(
            program, layout, periodic, locations, overlap="off", only_rank=only_rank
        )
        assert len(self.sweeps) == 1, "one sweep, whose results it does not read elsewhere"
        assert self.n_phases == 1, "each array is written once"
        for field in self.split_fields:
            for place in self.places:
                self._sources(field, self.brought(field, place), place)

    def _patterns(
        self, fields: Sequence[str]
    ) -> tuple[dict[str, HaloPattern], dict[Version, HaloPattern]]:
        """Nothing is a message: what a chunk reads comes from the host."""
        return {field: self._pattern(field, ()) for field in fields}, {}

    def layout_apart(self, field: str, domain: Shape) -> Layout:
        """That of the array as it is given."""
        return self._apart[field]

    @cached_property
    def split_fields(self) -> tuple[str, ...]:
        """Those that pass through."""
        return tuple(name for name in self.program.dtypes if name not in self._wholes)

    @cached_property
    def chunks(self) -> Mapping[tuple[int, int], tuple[int, ...]]:
        """By rank and controller the places that pass through it, in order."""
        found: dict[tuple[int, int], tuple[int, ...]] = {}
        for place in self.places:
            where = self.locations[place]
            key = where.rank, where.controller
            found[key] = (*found.get(key, ()), place)
        return found

    @cached_property
    def _turns(self) -> Mapping[int, tuple[int, int]]:
        """Of each place the first one of its device, and the slot through which it passes."""
        return {
            place: (chunks[0], number % self.n_slots)
            for chunks in self.chunks.values() for number, place in enumerate(chunks)
        }  # fmt: skip

    def tile(self, version: Version, phase: int, place: int) -> TileKey:
        field = version.field
        if field in self._wholes:
            return TileKey(field, 0, place)
        return SlotKey(field, 0, place, RoomKey(field, 0, *self._turns[place]))

    def image(self, field: str, place: int) -> TileKey:
        """The host memory that holds the rows of a place."""
        return TileKey(field, 0, place)

    def rooms(self, chunks: Sequence[int]) -> Iterator[dict[RoomKey, Geometry]]:
        """What each slot of a device holds, as large as the largest chunk that passes through."""
        for slot in range(min(self.n_slots, len(chunks))):
            passing = chunks[slot :: self.n_slots]
            yield {
                RoomKey(field, 0, chunks[0], slot): max(
                    (self.geometry(field, place) for place in passing),
                    key=lambda one: one.n_elements,
                )
                for field in self.split_fields
            }

    @property
    def memories(self) -> tuple[PlanMemory, ...]:
        """None of its own: all tiles are given."""
        return ()

    def geometry(self, field: str, place: int) -> Geometry:
        """Without gaps between rows, so that a chunk crosses the link as one run of memory."""
        return self._wholes.get(field) or Geometry.dense(self.full(field, place))

    def lies(self, key: TileKey) -> Geometry:
        if isinstance(key, SlotKey) or key.field in self._wholes:
            return self.geometry(key.field, key.place)
        return self._images[key.field][key.place]

    def full(self, field: str, place: int) -> Shape:
        """What a chunk has of a field: what is read, what is written, and the cells launched."""
        (sweep,), own = self.sweeps, self.owned(field, place)
        over = self.updated(sweep, place)
        if over.empty or field not in sweep.fields:
            return Shape(own.lower, own.lower)
        return sweep.where(field, over).hull(self.brought(field, place))

    def brought(self, field: str, place: int) -> Shape:
        """The cells of a field that a chunk reads."""
        (sweep,), own = self.sweeps, self.owned(field, place)
        over, use = self.updated(sweep, place), sweep.use(field)
        if over.empty or use is None:
            return Shape(own.lower, own.lower)
        return sweep.read(use, over)

    def taken(self, field: str, place: int) -> Shape:
        """The cells of a field that a chunk writes."""
        (sweep,), own = self.sweeps, self.owned(field, place)
        over = self.updated(sweep, place)
        if over.empty or field not in sweep.writes:
            return Shape(own.lower, own.lower)
        return sweep.written(field, over)

    def _sources(self, field: str, cells: Shape, place: int) -> list[tuple[int, Shape]]:
        """The places whose images have these cells, and which of them."""
        if cells.empty or cells in self.owned(field, place):
            return [] if cells.empty else [(place, cells)]
        parts = [(one, cells & self.owned(field, one)) for one in self.places]
        found = [(one, part) for one, part in parts if not part.empty]
        if sum(part.n_cells for _, part in found) < cells.n_cells:
            raise ValueError(
                f"rows {cells.lower[0]} to {cells.upper[0] - 1} of an array that passes through "
                f"its devices in chunks are read where rows "
                f"{self.owned(field, place).lower[0]} and on are computed, and another rank has "
                f"them; take the slice as an array first, by np.asarray"
            )
        return found

    def _split(self, sweep: object, updated: Shape, place: int) -> tuple[tuple[Shape, ...], Shape]:
        return (() if updated.empty else (updated,)), Shape(updated.lower, updated.lower)

    def _record_step(self, recorder: Recorder, phase: int) -> None:
        for place in self.places:
            for field in self.split_fields:
                self._upload(recorder, field, place)
            for part, (over, folds) in enumerate(self.parts_of(0, phase, place)[0]):
                record_launch(
                    self, recorder, 0, phase, place, over, part, folds=folds, always=True
                )
            for field in self.split_fields:
                self._download(recorder, field, place)
        record_folds(self, recorder, 0)
        record_occasional(self, recorder)

    def _record_opening(self, recorder: Recorder, phase: int) -> None:
        """Nothing."""

    def _upload(self, recorder: Recorder, field: str, place: int) -> None:
        room, found = self.tile(Version(field, 0), 0, place), []
        for source, cells in self._sources(field, self.brought(field, place), place):
            found.append((MemoryCells(self.image(field, source), (cells,)),
                          MemoryCells(room, (cells,))))  # fmt: skip
        if found:
            recorder.add(place, "upload", "transfer", *zip(*found))

    def _download(self, recorder: Recorder, field: str, place: int) -> None:
        cells = self.taken(field, place)
        if not cells.empty:
            room = MemoryCells(self.tile(Version(field, 1), 0, place), (cells,))
            image = MemoryCells(self.image(field, place), (cells,))
            recorder.add(place, "download", "retrieve", [room], [image])

    def nbytes(self, chunks: Sequence[int]) -> tuple[int, int]:
        """Bytes that these chunks take to their device in a call, and back."""
        up = down = 0
        for field in self.split_fields:
            itemsize = np.dtype(self.program.field(field).dtype).itemsize
            up += itemsize * sum(self.brought(field, place).n_cells for place in chunks)
            down += itemsize * sum(self.taken(field, place).n_cells for place in chunks)
        return up, down

    @cached_property
    def halo_rows(self) -> int:
        """Rows that a chunk has beside those it computes, at the most: its overlap."""
        first = self.sweeps[0]
        return max((
            reduce(max, (self.full(field, place).extent[0] for field in self.split_fields), 0)
            - self.updated(first, place).extent[0] for place in self.places
        ), default=0)  # fmt: skip
