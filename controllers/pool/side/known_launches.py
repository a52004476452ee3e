# SPDX-License-Identifier: MIT
"""Launches that a device has done before: checked and bound once for the same arrays and numbers.

They keep no array and no image of one: a launch is forgotten with the tiles that it was bound to.
"""
from __future__ import annotations

import ctypes
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
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

MOST_KNOWN = 128
Key: TypeAlias = "tuple[int, tuple[object, ...], object, tuple[object, ...]]"


class KnownLaunches:
    """For one thread; tiles may go in any."""

    def __init__(self) -> None:
        self._known: OrderedDict[
            Key, tuple[Launch, Variant, list[Seen], list[weakref.ref[Tile]]]
        ] = OrderedDict()

    def get(
        self, job: Job, tiles: Sequence[Tile], numbers: Mapping[str, Any]
    ) -> tuple[Key, Launch | None]:
        """What a launch depends on, and that launch, if it was done before.

        tiles: of what the job touches.  Numbers count by their bits, but for functions of items.
        """
        assert job.way is not None, "a job that was placed"
        variant = job.way.variant
        cells: tuple[object, ...] = ()
        told: tuple[object, ...] = ()
        for touch, tile in zip(job.touches, tiles):
            cells += touch.name, touch.role, id(touch.at), id(tile)
        if numbers and not isinstance(variant.body, Each):      # which are told them
            told = tuple((name, type(value), repr(value)) for name, value in numbers.items())
        made = id(variant), cells, job.rows, told
        found = self._known.get(made)
        if found is None:
            return made, None
        self._known.move_to_end(made)
        return made, found[0]

    def is_alike(self, key: Key) -> bool:
        """Whether one over other rows, or with other numbers, was done before: it is built."""
        return any(one[:2] == key[:2] for one in self._known)

    def add(self, key: Key, launch: Launch, job: Job, tiles: Sequence[Tile]) -> None:
        """Remember it until one of its tiles goes, or there are many newer ones."""
        if len(self._known) >= MOST_KNOWN:
            self._known.popitem(last=False)
        known = self._known

        def forget(tile: weakref.ref[Tile], key: Key = key) -> None:
            known.pop(key, None)

        seen = [one.at for one in job.touches]      # kept, as no other one may have its id
        known[key] = launch, job.variant, seen, [weakref.ref(tile, forget) for tile in tiles]


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
