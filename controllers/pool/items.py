# SPDX-License-Identifier: MIT
"""Functions of items on one device, given tiles: copied to tiles of their own and back.

Such a function is bound to the tiles that it computes with, which takes long; so it is bound once
for the shapes and dtypes of its arrays, and those come to it.
"""
from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np

from controllers.array.mapped import MappedRun, Placed
from controllers.device.event import wait_for_all
from controllers.executor.opencl import OpenCLExecutor
from controllers.language.each import Each
from controllers.memory.tile import Tile
from controllers.plan import Location
from controllers.pool.data import Touch
from controllers.program.items import ArrayKind
from controllers.space.whole_tiles import rows_of
from hitmap.comm import SerialCommunicator
from hitmap.layout import Layout
from hitmap.shape import Shape
from hitmap.strided import Geometry, Strided

MOST_BOUND = 16     # functions with shapes

_Kinds = tuple[tuple[str, ArrayKind], ...]


class ItemRuns:
    """Those that are bound, the one used last at the end."""

    def __init__(self, executor: OpenCLExecutor) -> None:
        self._executor = executor
        self._bound: OrderedDict[
            tuple[Each, _Kinds], tuple[MappedRun, dict[str, Tile]]
        ] = OrderedDict()

    def run(
        self, function: Each, given: Mapping[str, tuple[Touch, Tile]], numbers: Mapping[str, float]
    ) -> float:
        """Compute the results, which are among `given`; seconds, when they are there.

        ValueError where they have another shape or dtype than the function gives.
        """
        unknown = [name for name in numbers if name not in function.parameters.numbers]
        if unknown:
            raise TypeError(
                f"{function.__name__!r} takes no number {unknown[0]!r}; it has "
                f"{', '.join(function.parameters.numbers) or 'none'}"
            )
        inputs = {name: given[name] for name in function.parameters.uses}
        kinds = tuple((name, touch.kind) for name, (touch, _) in inputs.items())
        key = function, kinds
        if key not in self._bound:
            self._bound[key] = self._made(function, dict(kinds))
            if len(self._bound) > MOST_BOUND:
                self._bound.popitem(last=False)[1][0].close()
        self._bound.move_to_end(key)
        run, tiles = self._bound[key]
        outputs = {name: given[name] for name in tiles if name not in inputs if name in given}
        self._check(function, tiles, outputs, [*given])
        begin_s = time.perf_counter()   # it has been built by now
        self._copy([(inputs[name], tiles[name]) for name in inputs], into=True)
        asked = {**function.parameters.numbers, **numbers}
        wait_for_all(run.run({name: float(value or 0.0) for name, value in asked.items()}))
        self._copy([(one, tiles[name]) for name, one in outputs.items()], into=False)
        return time.perf_counter() - begin_s

    def _made(
        self, function: Each, kinds: Mapping[str, ArrayKind]
    ) -> tuple[MappedRun, dict[str, Tile]]:
        made = function.lowered(kinds)
        if made.sums:
            raise ValueError(
                f"{function.__name__!r} sums over all items, which a task cannot return from a "
                f"device; return what is summed, and sum it in another task"
            )
        placed, tiles = {}, {}
        for name, kind in {**kinds, **made.results}.items():
            box = Shape.of_extent(kind.extent)
            tiles[name] = self._executor.tile(Geometry.dense(box), np.dtype(kind.dtype))
            placed[name] = Placed(Layout.bands(box, 1), {0: tiles[name]})
        shares = self._executor.shares_host
        location = Location(0, 0, shares, self._executor.device.name, self._executor.device.kind)
        executors = {0: self._executor}
        return MappedRun(made, placed, executors, [location], SerialCommunicator()), tiles

    def _check(
        self, function: Each, tiles: Mapping[str, Tile],
        outputs: Mapping[str, tuple[Touch, Tile]], names: list[str],
    ) -> None:  # fmt: skip
        missing = set(tiles) - set(function.parameters.uses) - set(outputs)
        if missing:
            raise ValueError(
                f"{function.__name__!r} returns {', '.join(sorted(missing))}, and the task has no "
                f"array of this name to be written, but {', '.join(names)}; name one so"
            )
        for name, (touch, _) in outputs.items():
            tile, cells = tiles[name], rows_of(Shape.of_extent(touch.view.shape))
            if cells != tile.geometry.box or touch.view.dtype != tile.dtype:
                raise ValueError(
                    f"{function.__name__!r} returns {name!r} as {tile.geometry.box.extent} rows "
                    f"and columns of {tile.dtype}, and the array to be written has "
                    f"{touch.view.shape} of {touch.view.dtype}; give one like it"
                )

    def _copy(self, pairs: list[tuple[tuple[Touch, Tile], Tile]], *, into: bool) -> None:
        events = []
        for (touch, tile), own in pairs:
            there = tile.strided(Shape.of_extent(touch.view.shape))
            here = Strided(0, Geometry.dense(Shape.of_extent(there.extent)).pitches, there.extent)
            ends = (tile.linear, own.linear) if into else (own.linear, tile.linear)
            move = (there, here) if into else (here, there)
            events.append(self._executor.copy_command(*ends, own.dtype.itemsize, move)(None))
        self._executor.flush()
        wait_for_all(events)

    def close(self) -> None:
        """Give back what belongs to the bound ones."""
        for run, _ in self._bound.values():
            run.close()
        self._bound.clear()
