# SPDX-License-Identifier: MIT
"""Functions of items on the tiles of several places, from arrays of NumPy and back."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.array.mapped import MappedRun, Placed
from controllers.device import find_devices
from controllers.executor.executor import Executor
from controllers.executor.opencl import OpenCLExecutor
from controllers.executor.reference import ReferenceExecutor
from controllers.language.each import Each
from controllers.memory.tile import Tile
from controllers.placement.placement import one_device
from controllers.plan import Location
from controllers.program.items import ArrayKind
from hitmap import SerialCommunicator
from hitmap.comm import Communicator
from hitmap.layout import Layout
from hitmap.shape import Shape
from hitmap.strided import Geometry

Array = npt.NDArray[Any]
SERIAL = SerialCommunicator()
KINDS = sorted({device.kind for device in find_devices()} - {"reference"})


def opened(selector: str, zero_copy: bool = True) -> Executor:
    """An executor of a device."""
    device = one_device(selector)
    if selector == "reference":
        return ReferenceExecutor(device)
    return OpenCLExecutor(device, zero_copy=zero_copy)


class ItemRun:
    """A function of items whose arrays lie on places, these on executors in turn."""

    def __init__(
        self, function: Each, arrays: Mapping[str, Array], executors: Sequence[Executor],
        ranks: Sequence[int] = (0,), weights: Sequence[float] = (1, 1, 1),
        copied: Sequence[str] = (), comm: Communicator = SERIAL,
    ) -> None:  # fmt: skip
        self.function, self.comm = function, comm
        kinds = {
            name: ArrayKind(array.shape, array.dtype.name, name in copied)
            for name, array in arrays.items()
        }
        self.made = function.lowered(kinds)
        self._weights, places = weights, range(len(weights))
        self._used = {
            place for kind in (*kinds.values(), *self.made.results.values())
            for place, box in enumerate(self._layout(kind).owned) if not box.empty
        }
        rank_of = [ranks[place % len(ranks)] for place in places]
        mine = [place for place in places if rank_of[place] == comm.rank]
        self.executors = {p: executors[n % len(executors)] for n, p in enumerate(mine)}
        shares = executors[0].shares_host
        locations = [
            Location(rank_of[p], p // len(ranks) % len(executors), shares) for p in places
        ]
        given = {name: self._given(name, array, kinds[name]) for name, array in arrays.items()}
        self._results = {
            name: self._placed(kind, whole=False) for name, kind in self.made.results.items()
        }
        self.run = MappedRun(
            self.made, given | self._results, self.executors, locations, comm
        )

    def results(self, **numbers: float) -> dict[str, Array]:
        """Do it once; the rows of this rank, those of others being 0, and the sums."""
        _, known = self.function.bound([None] * len(self.made.uses), numbers)
        self.run.run(known)
        for executor in self.executors.values():
            executor.wait()
        found = {}
        for name, one in self._results.items():
            kind = self.made.results[name]
            whole = np.zeros(kind.extent, kind.dtype)
            for place, tile in one.tiles.items():
                box = one.layout.owned[place]
                whole[box.slices((0, 0))] = self.executors[place].move_from(tile, box)
            found[name] = whole.reshape(kind.shape)
        sums = self.made.summed(self.run.folds) if self.made.sums else {}
        return found | {name: np.asarray(value) for name, value in sums.items()}

    def _given(self, name: str, array: Array, kind: ArrayKind) -> Placed:
        whole = self.made.uses[name] != "row"
        placed = self._placed(kind, whole)
        rows = array.reshape(kind.extent)
        for place, tile in placed.tiles.items():
            owned = placed.layout.owned[place]
            box = tile.geometry.box if kind.copied else owned
            if box.empty:
                continue
            values = np.ascontiguousarray(rows[box.slices((0, 0))])
            self.executors[place].move_to(tile, box, values)
        return placed

    def _placed(self, kind: ArrayKind, whole: bool) -> Placed:
        layout = self._layout(kind)
        tiles: dict[int, Tile] = {}
        for place, executor in self.executors.items():
            box = layout.domain if whole else layout.owned[place]
            if place in self._used and not box.empty:
                tiles[place] = executor.tile(Geometry.dense(box), np.dtype(kind.dtype))
        return Placed(layout, tiles)

    def _layout(self, kind: ArrayKind) -> Layout:
        return Layout.weighted(Shape.of_extent(kind.extent), self._weights)
