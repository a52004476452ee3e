# SPDX-License-Identifier: MIT
"""Launches that a device has done before: checked and bound once for the same arrays and numbers.

They keep no array and no image of one: a launch is forgotten with the tiles that it was bound to.
"""
from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.executor.opencl import OpenCLExecutor
from controllers.language.each import Each
from controllers.memory.tile import Tile
from controllers.pool.data import Datum, Seen
from controllers.pool.job import Job
from controllers.pool.launched import Launch
from controllers.pool.variant import Variant
from hitmap.strided import Geometry

MOST_KNOWN = 64
Key: TypeAlias = "tuple[object, ...]"


class KnownLaunches:
    """For one thread; tiles may go in any."""

    def __init__(self) -> None:
        self._known: dict[Key, tuple[Launch, Variant, list[Seen], list[weakref.ref[Tile]]]] = {}

    @staticmethod
    def key(job: Job, tiles: Mapping[Datum, Tile], numbers: Mapping[str, Any]) -> Key:
        """What a launch depends on; of numbers their bits, too, but for functions of items."""
        of_tiles = [
            (one.name, one.role, id(one.at), id(tiles[one.datum])) for one in job.touches
        ]
        if isinstance(job.variant.body, Each):      # which are told them
            return id(job.variant), job.rows, *of_tiles
        of_numbers = [(name, type(value), repr(value)) for name, value in numbers.items()]
        return id(job.variant), job.rows, *of_tiles, *of_numbers

    def get(self, key: Key) -> Launch | None:
        """The launch, if it was done before."""
        found = self._known.get(key)
        return None if found is None else found[0]

    def add(self, key: Key, launch: Launch, job: Job, tiles: Iterable[Tile]) -> None:
        """Remember it until one of its tiles goes, or there are too many."""
        if len(self._known) >= MOST_KNOWN:
            self._known.clear()
        known = self._known

        def forget(tile: weakref.ref[Tile], key: Key = key) -> None:
            known.pop(key, None)

        seen = [one.at for one in job.touches]      # kept, as no other one may have its id
        known[key] = launch, job.variant, seen, [weakref.ref(tile, forget) for tile in tiles]


class TilesInPlace:
    """Tiles of the memory of arrays, which they do not keep, as long as somebody has these."""

    def __init__(self, executor: OpenCLExecutor) -> None:
        self._executor = executor
        self._known: weakref.WeakKeyDictionary[Datum, Tile] = weakref.WeakKeyDictionary()

    def of(self, datum: Datum) -> Tile:
        """To be called while somebody has the array; made once."""
        tile = self._known.get(datum)
        owner = datum.owner()
        assert owner is not None, "an array that somebody has"
        if tile is None or tile.host is None or tile.host.flags.writeable < owner.flags.writeable:
            made = self._executor.tile_in_place(Geometry.dense(datum.box), _unowned(datum.flat))
            tile = self._known[datum] = made
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
