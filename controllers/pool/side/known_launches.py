# SPDX-License-Identifier: MIT
"""Launches that a device has done before: checked and bound once for the same arrays and numbers.

They keep no array and no image of one: a launch is forgotten with the tiles that it was bound to.
"""
from __future__ import annotations

import ctypes
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.executor.opencl import OpenCLExecutor
from controllers.language.each import Each
from controllers.memory.tile import Tile
from controllers.pool.data import Datum
from controllers.pool.job import Job
from controllers.pool.launched import Launch
from hitmap.strided import Geometry

MOST_KNOWN = 128    # launches
# Which variant it is of, and for each array the name, the role, where it is, and its tile.
Cells: TypeAlias = "tuple[object, ...]"
Given: TypeAlias = "tuple[object, ...]"     # the rows, and what is told of numbers


class Bound:
    """Launches of a variant that are bound to the same tiles, by what else they are given.

    tiles: their ids, which count while there are launches.  variant, seen: kept, as no other ones
    may have their ids.  forget: called when a tile goes; it takes all launches.
    """

    def __init__(
        self, cells: Cells, job: Job, tiles: Sequence[Tile], forget: Callable[[Bound], None]
    ) -> None:
        self.cells, self.variant = cells, job.variant
        self.seen = [touch.at for touch in job.touches]
        self.launches: dict[Given, Launch] = {}
        self.tiles = tuple(map(id, tiles))
        self._watched = [weakref.ref(tile, lambda _: forget(self)) for tile in tiles]


class KnownLaunches:
    """For one thread; tiles may go in any."""

    def __init__(self) -> None:
        self._bound: dict[Cells, Bound] = {}
        self._newest: OrderedDict[tuple[Bound, Given], None] = OrderedDict()    # the newest last

    def get(
        self, job: Job, tiles: Sequence[Tile], numbers: Mapping[str, Any]
    ) -> tuple[Bound, Given, Launch | None]:
        """What a launch is bound to, and given, and that launch, if it was done before.

        tiles: of what the job touches.  Numbers count by their bits, but for functions of items.
        A job whose call was looked at before knows what it was bound to.
        """
        assert job.way is not None, "a job that was placed"
        told: tuple[object, ...] = ()
        if numbers and not isinstance(job.way.variant.body, Each):      # which are told them
            told = tuple((name, type(value), repr(value)) for name, value in numbers.items())
        bound = None if job.call is None else job.call.bound.get(job.way)
        if bound is None or not bound.launches or bound.tiles != tuple(map(id, tiles)):
            bound = self._bound_to(job, tiles)
        given = job.rows, told
        launch = bound.launches.get(given)
        if launch is not None:
            self._newest.move_to_end((bound, given))
        return bound, given, launch

    def _bound_to(self, job: Job, tiles: Sequence[Tile]) -> Bound:
        cells: Cells = (id(job.variant),)
        for touch, tile in zip(job.touches, tiles):
            cells += touch.name, touch.role, id(touch.at), id(tile)
        found = self._bound.get(cells)
        return Bound(cells, job, tiles, self._forget) if found is None else found

    def add(self, bound: Bound, given: Given, launch: Launch, job: Job) -> None:
        """Remember it until one of its tiles goes, or there are many newer ones."""
        if len(self._newest) >= MOST_KNOWN:
            (old, of), _ = self._newest.popitem(last=False)
            old.launches.pop(of, None)
            if not old.launches:
                self._bound.pop(old.cells, None)
        self._bound[bound.cells] = bound
        bound.launches[given] = launch
        self._newest[bound, given] = None
        if job.call is not None:
            job.call.bound[job.way] = bound

    def _forget(self, bound: Bound) -> None:
        """A tile of it has gone, in whatever thread."""
        self._bound.pop(bound.cells, None)
        for given in list(bound.launches):
            bound.launches.pop(given, None)
            self._newest.pop((bound, given), None)


class TilesInPlace:
    """Tiles of the memory of arrays, which they do not keep, as long as somebody has these."""

    def __init__(self, executor: OpenCLExecutor) -> None:
        self._executor = executor

    def of(self, datum: Datum) -> Tile:
        """To be called while somebody has the array; made once."""
        tile = datum.in_place.get(self)
        owner = datum.owner()
        assert owner is not None, "an array that somebody has"
        if tile is None or tile.host is None or tile.host.flags.writeable < owner.flags.writeable:
            made = self._executor.tile_in_place(Geometry.dense(datum.box), _unowned(datum.flat))
            tile = datum.in_place[self] = made
        return tile


def _unowned(flat: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The same memory, which goes when others let it go."""
    if flat.dtype.hasobject:    # no kernel takes it, as it will be told
        return flat
    memory: Any = (ctypes.c_char * flat.nbytes).from_address(
        flat.__array_interface__["data"][0]
    )
    found: npt.NDArray[Any] = np.ndarray(flat.shape, flat.dtype, memory)
    found.flags.writeable = flat.flags.writeable
    return found
