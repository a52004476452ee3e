# SPDX-License-Identifier: MIT
"""Functions of items launched over rows of arrays, in the memory where these lie.

A function is traced for whole arrays, whichever of their rows are computed: so what lies around the
rows of a part of a task, and the number of an item, are as in the whole.
"""
from __future__ import annotations

from collections.abc import Mapping
from math import prod

import numpy as np

from controllers.executor.executor import Executor, Folding
from controllers.language.each import Each
from controllers.memory.tile import Tile
from controllers.pool.data import Touch
from controllers.pool.launched import Launch
from controllers.program.accumulator import Accumulator, n_words
from controllers.program.fold_values import operand_dtypes
from controllers.program.items import ItemProgram, parts_of
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from controllers.space.whole_tiles import rows_of
from hitmap.shape import Shape
from hitmap.strided import Geometry

Given = Mapping[str, "tuple[Touch, Tile]"]


class ItemLaunch(Launch):
    """One function over some rows, on tiles whose cells are counted from the first of each array.

    Of what is summed over all items an array gets the sums, float64, or where it is a part of them,
    the words of their accumulators, [elements][words].
    """

    def __init__(
        self, executor: Executor, function: Each, given: Given, rows: tuple[int, int] | None
    ) -> None:
        """ValueError where results have another shape or dtype than the function gives."""
        self._executor, self._function = executor, function
        inputs = {name: given[name] for name in function.parameters.uses}
        self._made = made = function.lowered({name: one.kind for name, (one, _) in inputs.items()})
        (stage,) = made.program.stages
        domain = made.program.boundaries[stage.home].points(Shape((0, 0), (1, 1)), (False, False))
        sweep = Sweep.over(stage, domain, (False, False), 1, made.program.boundaries)
        over = sweep.cells if rows is None else sweep.cells.slab(0, *rows)
        _check(function, made, given, over.extent[0])
        self._around = Surroundings.usual(made.program, sweep.cells)
        self._folding = executor.folding(made.program, sweep, [over]) if made.sums else None
        self.has_rest = self._folding is not None
        self._summed = {name: by_rows(*given[name]) for name in made.sums}
        tiles = {name: by_rows(*given[name]) for name in {*stage.fields_read, *sweep.writes}}
        self.command = executor.launch_command(
            made.program, sweep, {name: tiles[name] for name in stage.fields_read},
            {name: tiles[name] for name in sweep.writes}, over, self._around, self._folding,
        )  # fmt: skip

    def tell(self, numbers: Mapping[str, float]) -> None:
        """TypeError for those that the function does not take."""
        asked = self._function.parameters.numbers
        unknown = [name for name in numbers if name not in asked]
        if unknown:
            raise TypeError(
                f"{self._function.__name__!r} takes no number {unknown[0]!r}; it has "
                f"{', '.join(asked) or 'none'}"
            )
        given = {**asked, **numbers}
        self._around.change({name: float(value or 0.0) for name, value in given.items()})

    def end(self) -> None:
        """Set the arrays of sums."""
        if self._folding is None:
            return
        found = _read(self._folding)
        for name, tile in self._summed.items():
            parts = [found[part] for part in parts_of(name, self._made.sums[name])]
            is_part, cells = tile.dtype == np.int64, Shape.of_extent(tile.geometry.box.upper)
            values = np.array([part.words if is_part else part.value for part in parts])
            self._executor.move_to(tile, cells, values.reshape(cells.extent))


def summed_dtype(made: ItemProgram, name: str) -> str:
    """Of what is summed over all items."""
    (stage,) = made.program.stages
    return operand_dtypes(stage, made.program.dtypes)[parts_of(name, made.sums[name])[0]]


def words_shape(made: ItemProgram, name: str) -> tuple[int, int]:
    """Of the accumulators of such sums, one for each element."""
    return prod(made.sums[name]), n_words("sum", summed_dtype(made, name))


def by_rows(touch: Touch, tile: Tile) -> Tile:
    """The tile with all axes but the first one as columns."""
    n, columns = rows_of(Shape.of_extent(touch.origin.shape)).extent
    before = tile.geometry.element((0,) * touch.origin.ndim)
    pitch = tile.geometry.pitches[0]
    low = before // pitch, before % pitch
    box = Shape((-low[0], -low[1]), (n, columns))
    return Tile(Geometry(box, (pitch, 1)), tile.dtype, tile.host, tile.buffer)


def _read(folding: Folding) -> Mapping[str, Accumulator]:
    """What a launch that is complete has summed."""
    folding.reading(None).wait()
    return folding.accumulators


def _check(function: Each, made: ItemProgram, given: Given, n_rows: int) -> None:
    name_of = function.__name__
    missing = sorted({*made.results, *made.sums} - {*given})
    if missing:
        raise ValueError(
            f"{name_of!r} returns {', '.join(missing)}, and the task has no array of this name to "
            f"be written, but {', '.join(given)}; name one so"
        )
    for name, kind in made.results.items():
        touch, extent = given[name][0], kind.extent
        shape, dtype = touch.origin.shape, touch.view.dtype
        if rows_of(Shape.of_extent(shape)).extent != extent or dtype != kind.dtype:
            raise ValueError(
                f"{name_of!r} returns {name!r} as {extent} rows and columns of {kind.dtype}, and "
                f"the array to be written has {shape} of {dtype}; give one like it"
            )
        if len(touch.view) != n_rows:
            raise ValueError(
                f"{name_of!r} returns {name!r} row by row, and parts of it are to be added up; "
                f"return ct.accumulate(...), or cut it by ct.Row"
            )
    for name, shape in made.sums.items():
        view = given[name][0].view
        known = {("float64", shape or (1,)), ("int64", words_shape(made, name))}
        if (view.dtype.name, view.shape) not in known:
            raise ValueError(
                f"{name_of!r} sums {name!r} over all items, to {prod(shape)} of float64 in the "
                f"shape {shape or (1,)}, and the array to be written has {view.shape} of "
                f"{view.dtype}; give one like it"
            )
