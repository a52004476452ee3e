# SPDX-License-Identifier: MIT
"""The cells of fields in the tiles of an engine: looked at, and set, a place at a time."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.engine import Engine
from controllers.engine.file_use import changed, wanted
from controllers.memory.scratch_file import AHEAD
from controllers.memory.tile import Tile, TileView
from controllers.placement.relocation import CHUNK_CELLS
from hitmap.conversion import convert
from hitmap.section import Section
from hitmap.shape import Shape
from hitmap.strided import consecutive

# The values of the cells of a box, by field: whatever repeats to all of them.
ValuesOf = Callable[[Shape], Mapping[str, npt.ArrayLike]]


def dtype_of(engine: Engine, field: str) -> np.dtype[Any]:
    """What each cell of a field holds."""
    return np.dtype(engine.plan.program.field(field).dtype)


def cells_of(engine: Engine, field: str, place: int, box: Shape) -> npt.NDArray[Any]:
    """Some of the cells that a place owns: in the tile, or a copy."""
    tile = None if box.empty else engine.newest(field, place)
    if tile is None or tile.host is not None:
        return _view(engine, field, place, tile, box)
    return engine.executors[place].move_from(tile, box)


def section_of(
    engine: Engine, field: str, place: int, section: Section, positions: Shape
) -> npt.NDArray[Any]:
    """The cells at these positions of a section, which a place owns: in the tile, or a copy."""
    if positions.empty:
        return np.empty(positions.extent, dtype_of(engine, field))
    return cells_of(engine, field, place, section.cells(positions))[section.steps]


def put_section(
    engine: Engine,
    field: str,
    place: int,
    section: Section,
    positions: Shape,
    values: npt.NDArray[Any],
) -> None:
    """Set the cells at these positions of a section, which a place owns."""
    if positions.empty:
        return
    box = section.cells(positions)
    tiles = engine.to_set(field, place)
    if box.n_cells == positions.n_cells:
        cells = _view(engine, field, place, tiles[0], box)
    else:       # what lies between stays as it is
        cells = cells_of(engine, field, place, box)
    cells[section.steps] = values
    _put(engine, field, place, tiles, box, cells)


def put_cells(
    engine: Engine, field: str, place: int, box: Shape, cells: npt.NDArray[Any]
) -> None:
    """Set some cells that a place owns, from values of the field's dtype."""
    tiles = engine.to_set(field, place)
    own = _view(engine, field, place, tiles[0], box)
    own[...] = cells
    _put(engine, field, place, tiles, box, own)


def put_values(
    engine: Engine, sources: Mapping[str, str], place: int, values_of: ValuesOf
) -> None:
    """Set all cells that a place owns, some at a time; ValueError where a value does not fit.

    sources: by field, by which name its values are given.  All have one location.
    """
    for box in consecutive(engine.plan.owned(next(iter(sources)), place), CHUNK_CELLS):
        values = values_of(box)
        for field, source in sources.items():
            tiles = engine.to_set(field, place)
            try:
                cells = _fitting(engine, field, place, tiles[0], box, values[source])
            except ValueError as error:
                raise ValueError(f"{source}: {error}") from None
            _put(engine, field, place, tiles, box, cells)


def _fitting(
    engine: Engine, field: str, place: int, tile: Tile, box: Shape, values: npt.ArrayLike
) -> npt.NDArray[Any]:
    """The cells [*box.extent]: `values` where a device reads them as they are, or a copy.

    ValueError where a value does not fit.
    """
    given = _repeated(values, box)
    is_read = tile.host is None and all((wall & box).empty for wall in engine.plan.walls(field))
    if is_read and given.dtype == tile.dtype and given.flags.c_contiguous:
        return given
    cells = _view(engine, field, place, tile, box)
    convert(given, cells, box.lower)
    return cells


def _repeated(values: npt.ArrayLike, box: Shape) -> npt.NDArray[Any]:
    array = np.asarray(values)
    try:
        return np.broadcast_to(array, box.extent)
    except ValueError:
        raise ValueError(
            f"values of the shape {array.shape} do not fit the cells {box.extent} that they are "
            f"for; give a number, or an array that NumPy repeats to that shape"
        ) from None


def put_by(
    engine: Engine, sources: Mapping[str, str], place: int, init: Callable[[TileView], None]
) -> None:
    """`init` sets the cells that a place owns, zeroed before.

    sources: by field, itself, or that whose cells it gets.
    """
    owned = {field: engine.plan.owned(field, place) for field in sources}
    tiles = {f: [] if box.empty else engine.to_set(f, place) for f, box in owned.items()}
    arrays = {
        field: _view(engine, field, place, buffers[0] if buffers else None, owned[field])
        for field, buffers in tiles.items()
    }
    for array in arrays.values():
        array[...] = 0
    init(tile_view(engine, {f: arrays[f] for f in sources if sources[f] == f}, place))
    for field, array in arrays.items():
        if sources[field] != field:
            array[...] = arrays[sources[field]]
        _put(engine, field, place, tiles[field], owned[field], array)


def tile_view(engine: Engine, arrays: Mapping[str, npt.NDArray[Any]], place: int) -> TileView:
    """The cells that a place owns, of some fields, as users see them."""
    layouts = {field: engine.plan.layout_of(field) for field in arrays}
    boxes = {field: (own.owned[place], own.domain.extent) for field, own in layouts.items()}
    usual = engine.plan.layout.owned[place], engine.plan.layout.domain.extent
    box, domain = next(iter(boxes.values())) if len({*boxes.values()}) == 1 else usual
    return TileView(arrays, box, domain, place, boxes)


def pieces(engine: Engine, field: str) -> Iterator[tuple[Shape, npt.NDArray[Any]]]:
    """All cells of the places of this rank, so many at a time as may pass through the host."""
    every = [
        (place, box) for place in engine.executors
        for box in consecutive(engine.plan.owned(field, place), CHUNK_CELLS) if not box.empty
    ]  # fmt: skip
    for number, (place, box) in enumerate(every):
        for home, later in every[number + AHEAD * (number > 0) : number + AHEAD + 1]:
            wanted(engine.newest(field, home), later)
        yield box, cells_of(engine, field, place, box)


def _put(
    engine: Engine,
    field: str,
    place: int,
    tiles: Sequence[Tile],
    box: Shape,
    cells: npt.NDArray[Any],
) -> None:
    """Into all buffers, as a step writes no boundary cells; `cells` may be the first one's own.

    On walls the field is 0, whatever is given.
    """
    for wall in engine.plan.walls(field):
        if not (wall & box).empty:
            cells[(wall & box).slices(box.lower)] = 0
    for tile in tiles:
        if tile.host is None or tile is not tiles[0]:
            engine.executors[place].move_to(tile, box, cells)
        changed(tile, box)


def _view(
    engine: Engine, field: str, place: int, tile: Tile | None, box: Shape
) -> npt.NDArray[Any]:
    """The cells of `tile` in place, or a new array if they are not in host memory."""
    if tile is not None and tile.host is not None:
        return tile.view(box)
    array = np.empty(box.extent, dtype_of(engine, field))
    engine.executors[place].ledger.hold(array, array.nbytes, "host images")
    return array
