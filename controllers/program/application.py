# SPDX-License-Identifier: MIT
"""What a sweep gives for a box of cells, in NumPy: the arithmetic of `reference`, by versions."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.program.accumulator import NUMBERED, Accumulator, numbers_of
from controllers.program.dtypes import Dtypes, dtype_of, given_dtype
from controllers.program.expression import Given, Read
from controllers.program.extension import Extension
from controllers.program.fold_values import operand_dtypes, operands
from controllers.program.following import leading
from controllers.program.item_values import ItemValues, item_values
from controllers.program.items import Items, items_of
from controllers.program.program import Program
from controllers.program.reference import values_of
from controllers.program.surroundings import Surroundings
from controllers.program.sweep import Sweep
from hitmap.shape import Shape

Values: TypeAlias = "npt.NDArray[Any]"


def apply_sweep(
    sweep: Sweep,
    cells_of: Callable[[str, Shape], Values],
    over: Shape,
    dtypes: Dtypes,
    around: Surroundings,
) -> Mapping[str, Values]:
    """The cells `over` of each field that `sweep` writes; they may be what `cells_of` gave.

    `cells_of(field, box)` gives the values of the version that is used; it is asked for cells in
    `Sweep.read` alone.  dtypes: of the fields.
    """
    if sweep.count > 1:
        return _several_steps(sweep, cells_of, over, dtypes, around)

    items = items_of(sweep.stage)
    if items is not None:
        found = _of_items(sweep, items, cells_of, over, dtypes, around).results
        return {items.field_of[name]: values for name, values in zip(items.writes, found)}

    def read(node: Read) -> Values:
        return cells_of(node.field, over.shift(node.offset))

    def given(node: Given) -> Any:
        return around.value(node, over, given_dtype(sweep.stage, dtypes))

    return {
        field: values_of(update.expression, read, dtype_of(dtypes, field), given)
        for field, update in zip(sweep.writes, sweep.updates)
    }


def _of_items(
    sweep: Sweep,
    items: Items,
    cells_of: Callable[[str, Shape], Values],
    over: Shape,
    dtypes: Dtypes,
    around: Surroundings,
) -> ItemValues:
    real = given_dtype(sweep.stage, dtypes)
    rows = range(over.lower[0], over.upper[0])
    return item_values(
        items, rows, lambda field: cells_of(field, sweep.where(field, over)),
        lambda name: around.scalar(name, real),
    )  # fmt: skip


def folded(
    program: Program,
    sweep: Sweep,
    cells_of: Callable[[str, Shape], Values],
    over: Shape,
    around: Surroundings,
) -> dict[str, Accumulator]:
    """What `sweep` folds of the cells `over`, by name; `cells_of` as for `apply_sweep`."""
    stage, dtypes = sweep.stage, program.dtypes
    items = items_of(stage)
    if items is not None:
        summed = _of_items(sweep, items, cells_of, over, dtypes, around).summed
        return {part: Accumulator.of("sum", values) for part, values in summed.items()}

    def read(node: Read) -> Values:
        return cells_of(node.field, over.shift(node.offset))

    given = partial(around.value, box=over, dtype=given_dtype(stage, dtypes))
    at = around.positions
    domain = program.boundaries[stage.home].points(at.domain, at.periodic)
    return {
        name: Accumulator.of(
            one.kind, one.values, one.mask,
            numbers_of(over, domain) if one.kind in NUMBERED else None,
        )
        for name, one in operands(stage, over, read, given, dtypes).items()
    }  # fmt: skip


def no_cells(program: Program, sweep: Sweep) -> dict[str, Accumulator]:
    """What `sweep` folds where there is nothing to fold."""
    dtypes = operand_dtypes(sweep.stage, program.dtypes)
    return {name: Accumulator.empty(one.kind, dtypes[name]) for name, one in sweep.folds.items()}


def _several_steps(
    sweep: Sweep,
    cells_of: Callable[[str, Shape], Values],
    over: Shape,
    dtypes: Dtypes,
    around: Surroundings,
) -> dict[str, Values]:
    """What the last of its steps leaves of the field that leads, and of those that follow it."""
    stage = leading(sweep.stage)
    field = stage.writes
    use = sweep.use(field)
    assert use is not None, "several steps need a stage that reads what it writes"
    known = sweep.read(use, over)
    made = {field: np.array(cells_of(field, known))}    # by the steps before, around `over`

    def read(box: Shape, node: Read) -> Values:
        seen = box.shift(node.offset)
        own = made.get(node.field)
        return cells_of(node.field, seen) if own is None else own[seen.slices(known.lower)]

    for n_left in reversed(range(sweep.count)):
        box = sweep.needed(over, n_left)
        given = partial(around.value, box=box, dtype=given_dtype(sweep.stage, dtypes))
        values = values_of(stage.expression, partial(read, box), dtype_of(dtypes, field), given)
        new = made[field].copy()
        new[box.slices(known.lower)] = values
        sweep.mirrors.renew(new, known, sweep.cells)
        made |= dict.fromkeys(sweep.stage.follows, made[field]) | {field: new}
    return {name: values[over.slices(known.lower)] for name, values in made.items()}


def cells_outside(
    extension: Extension,
    cells_of: Callable[[Shape], Values],
    box: Shape,
    dtype: str,
    around: Surroundings | None = None,
) -> Values:
    """The cells `box`, some of them outside the domain; `cells_of` gives cells that are not.

    The last axis first: its cells outside are made of lines along the others that may be outside,
    too.

    >>> from controllers.program.boundary import Boundary
    >>> domain, inside = Shape((0,), (3,)), np.array([1, 2, 3])
    >>> line = Extension("u", Boundary.of(("mirror", "fixed:9"), 1), domain)
    >>> def cells_of(box): return inside[box.slices((0,))]
    >>> cells_outside(line, cells_of, Shape((-2,), (4,)), "int64").tolist()
    [2, 1, 1, 2, 3, 9]
    """

    def values(box: Shape, n_axes: int) -> Values:
        if n_axes == 0:
            return cells_of(box)
        axis, line = n_axes - 1, extension.lines[n_axes - 1]
        first, lower, upper = extension.domain.lower[axis], box.lower[axis], box.upper[axis]
        if not line.extends or (first <= lower and upper <= first + line.length):
            return values(box, axis)
        slabs = [slab(box, at, axis) for at in range(lower - first, upper - first)]
        return np.concatenate(slabs, axis)

    def slab(box: Shape, at: int, axis: int) -> Values:
        line, first = extension.lines[axis], extension.domain.lower[axis] + at
        box = box.slab(axis, first, first + 1)
        if line.is_inside(at):
            return values(box, axis)
        stage = line.stage(at)
        real = given_dtype(stage, dtype)
        given = None if around is None else partial(around.value, box=box, dtype=real)
        made = values_of(
            stage.expression, lambda read: values(box.shift(read.offset), axis + 1), dtype, given
        )
        return np.broadcast_to(made, box.extent)

    return values(box, box.n_axes)
