# SPDX-License-Identifier: MIT
"""Tiles for values that no field holds, and values on their way between tiles and all ranks."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.array.source import HeldSource, Source
from controllers.array.streams import Streams
from controllers.engine import Engine
from controllers.executor.executor import Executor
from controllers.memory.tile import Tile
from controllers.placement.placement import failing_together
from controllers.placement.relocation import CHUNK_CELLS
from hitmap.comm import Communicator
from hitmap.conversion import convert, with_one_nan
from hitmap.scatter import everywhere, gather, scatter
from hitmap.section import Section
from hitmap.shape import Shape
from hitmap.strided import consecutive

_Tiles: TypeAlias = "tuple[int, dict[int, Tile]]"


class Store:
    """Tiles that lie as those of the fields of an engine; they are used again and again.

    streams: says where they are, if not on the devices.
    """

    def __init__(
        self, engine: Engine, executors: Mapping[int, Executor], comm: Communicator,
        streams: Streams | None = None,
    ) -> None:  # fmt: skip
        self._engine, self._executors, self._comm = engine, executors, comm
        self._streams = streams
        self._free: dict[tuple[str, str], list[_Tiles]] = {}
        self._every: dict[int, tuple[str, dict[int, Tile]]] = {}    # dtypes and tiles, by number
        self._n_made = 0

    def take(
        self, dtype: str, home: Source, kind: type[HeldSource] = HeldSource
    ) -> HeldSource:
        """Tiles that lie as those of a field do; what they hold is undefined.  Collective."""
        free = self._free.setdefault((dtype, home.home), [])
        if free:
            number, tiles = free.pop(min(range(len(free)), key=lambda n: free[n][0]))
        else:
            tiles = self._made(dtype, home)
            self._n_made = number = self._n_made + 1
            if self._streams is not None:
                self._every[number] = dtype, tiles

        def give_back() -> None:
            free.append((number, tiles))

        return kind(number, dtype, home, tiles, give_back)

    def _made(self, dtype: str, home: Source) -> dict[int, Tile]:
        plan = self._engine.plan
        geometries = {place: plan.geometry(home.home, place) for place in plan.places}
        if self._streams is not None:
            return self._streams.tiles(geometries, dtype)
        with failing_together(self._comm):
            return {
                place: self._executors[place].tile(geometry, np.dtype(dtype))
                for place, geometry in geometries.items()
            }

    def to_host(self) -> None:
        """All values that somebody has go to the host; nothing may be using their tiles."""
        assert self._streams is not None, "arrays of workspaces"
        for free in self._free.values():
            for number, _ in free:
                del self._every[number]
            free.clear()
        for dtype, tiles in self._every.values():
            for place, tile in tiles.items():
                box = tile.geometry.box
                there = tiles[place] = self._streams.on_host(place, tile.geometry, dtype)
                if not box.empty:
                    there.view(box)[...] = self._executors[place].move_from(tile, box)

    def spread(self, array: npt.NDArray[Any], start: tuple[int, ...], home: Source) -> HeldSource:
        """Tiles that hold an array of rank 0, its first element in the cell `start`.  Collective.
        """
        dtype = "uint8" if array.dtype == np.bool_ else array.dtype.name
        source = self.take(dtype, home)
        self.put(source, section_at(start, array.shape), array)
        return source

    def put(
        self, source: HeldSource, section: Section, whole: npt.NDArray[Any] | None
    ) -> None:
        """Set the cells of a section, no axis left out, to an array of rank 0 (None elsewhere).

        ValueError on all ranks, and the cells as they were, if a value does not fit.  Collective.
        """
        layout = section.divided(self._engine.plan.layout_of(source.home))
        given = whole if self._comm.rank == 0 else None
        parts = scatter(given, layout, self._ranks, self._comm, 0, source.dtype)
        for place, values in parts.items():
            if values.size:
                tile, box = source.tiles[place], section.cells(layout.owned[place])
                if box.n_cells == values.size:
                    cells = np.empty(box.extent, source.dtype)
                else:       # what lies between stays as it is
                    cells = self._executors[place].move_from(tile, box)
                cells[section.steps] = values
                self._executors[place].move_to(tile, box, cells)

    def fill(self, source: HeldSource, values: Callable[[Shape], npt.NDArray[Any]]) -> None:
        """Set all cells, each rank its own, so many at a time as may pass through the host.

        ValueError if a value does not fit the dtype.
        """
        layout = self._engine.plan.layout_of(source.home)
        for place, tile in source.tiles.items():
            for box in consecutive(layout.owned[place], CHUNK_CELLS):
                cells = np.empty(box.extent, source.dtype)
                convert(values(box), cells, box.lower)
                self._executors[place].move_to(tile, box, cells)

    def pieces(self, source: Source) -> Iterator[tuple[Shape, npt.NDArray[Any]]]:
        """All cells of the places of this rank, so many at a time as may pass through the host."""
        layout = self._engine.plan.layout_of(source.home)
        for place in self._engine.plan.places:
            for box in consecutive(layout.owned[place], CHUNK_CELLS):
                yield box, with_one_nan(self.part(source, place, box))

    def part(self, source: Source, place: int, box: Shape) -> npt.NDArray[Any]:
        """Some cells of a place of this rank, not to be written: in the tile, or a copy."""
        tile = self.tile(source, place)
        if tile.host is not None:
            return tile.view(box)
        return self._executors[place].move_from(tile, box)

    def gathered(self, source: Source, section: Section) -> npt.NDArray[Any]:
        """The cells of a section of a source on every rank, no axis left out.  Collective."""
        layout = section.divided(self._engine.plan.layout_of(source.home))
        parts = {
            place: with_one_nan(self._cells(source, place, section, layout.owned[place]))
            for place in self._engine.executors
        }
        whole = gather(parts, layout, self._ranks, self._comm, source.dtype)
        return everywhere(whole, layout.domain, source.dtype, self._comm)

    def tile(self, source: Source, place: int) -> Tile:
        """The tile that holds the values of a source now."""
        if isinstance(source, HeldSource):
            return source.tiles[place]
        return self._engine.newest(source.home, place)

    def _cells(
        self, source: Source, place: int, section: Section, positions: Shape
    ) -> npt.NDArray[Any]:
        if positions.empty:
            return np.empty(positions.extent, source.dtype)
        return self.part(source, place, section.cells(positions))[section.steps]

    @property
    def places(self) -> tuple[int, ...]:
        """Those of this rank that have cells."""
        return self._engine.plan.places

    @property
    def _ranks(self) -> tuple[int, ...]:
        return tuple(location.rank for location in self._engine.plan.locations)


def section_at(start: tuple[int, ...], extent: tuple[int, ...]) -> Section:
    """So many cells from `start` on."""
    ranges = tuple(range(first, first + n) for first, n in zip(start, extent))
    return Section(ranges, (False,) * len(ranges))
