# SPDX-License-Identifier: MIT
"""The NumPy reference: the executable specification of the arithmetic and of the boundaries.

Everything is computed in the field's dtype, one correctly rounded operation after another, exactly
as the expression says; integers in int64, which wraps, and the result wraps to the dtype.
Kernels must give the same bits.  It is written to be read, not to be fast.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.program.expression import Read, Symbol, evaluate
from controllers.program.functions import FUNCTIONS
from controllers.program.program import INTEGERS, Program, Stage
from controllers.program.steps import Steps
from hitmap.argument import instance, sequence, whole, wrong
from hitmap.shape import Shape


def apply_stage(
    stage: Stage, read: Callable[[Read], npt.NDArray[Any]], dtype: str
) -> npt.NDArray[Any]:
    """The new values of a box of cells.

    `read` returns, for each read, the array of the old values that the cells of the box see there:
    all of the box's extent and of `dtype`.  The result may be one of these arrays
    itself.  Overflow, NaN and division by zero follow IEEE 754, without warnings; integers wrap.
    """
    if dtype in INTEGERS:
        return _apply_to_integers(stage, read).astype(dtype)
    scalar = np.dtype(
        dtype
    ).type  # typed constants: Python floats would be promoted differently by old NumPy
    with np.errstate(all="ignore"):
        result = evaluate(stage.expression, read, scalar, _on_floats)
    assert result.dtype == dtype, f"computed in {result.dtype} instead of {dtype}"
    return np.asarray(result)


def apply_steps(
    stage: Stage,
    cells_of: Callable[[str, Shape], npt.NDArray[Any]],
    over: Shape,
    steps: Steps,
    dtype: str,
) -> npt.NDArray[Any]:
    """The cells `over` of the field that the stage writes, after `steps`.

    `cells_of(field, box)` gives the old values; it is asked for cells in `Steps.read` alone.
    """
    if steps.count == 1:
        return apply_stage(
            stage, lambda node: cells_of(node.field, over.shift(node.offset)), dtype
        )
    known = steps.read(stage, stage.writes, over)
    own = np.array(cells_of(stage.writes, known))

    def read(box: Shape, node: Read) -> npt.NDArray[Any]:
        seen = box.shift(node.offset)
        if node.field != stage.writes:
            return cells_of(node.field, seen)
        return own[seen.slices(known.lower)]

    for n_left in reversed(range(steps.count)):
        box = steps.needed(stage, over, n_left)
        own[box.slices(known.lower)] = apply_stage(stage, partial(read, box), dtype).copy()
    return own[over.slices(known.lower)]


def _apply_to_integers(
    stage: Stage, read: Callable[[Read], npt.NDArray[Any]]
) -> npt.NDArray[np.int64]:
    with np.errstate(all="ignore"):
        result = evaluate(
            stage.expression,
            lambda node: read(node).astype(np.int64),
            lambda value: np.asarray(value, np.int64),
            _on_integers,
        )
    assert result.dtype == np.int64, f"computed in {result.dtype} instead of int64"
    return result


def _on_floats(symbol: Symbol, *operands: Any) -> Any:
    return FUNCTIONS[symbol].computed(whole=False)(*operands)


def _on_integers(symbol: Symbol, *operands: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.asarray(FUNCTIONS[symbol].computed(whole=True)(*operands))


def reference_run(
    program: Program, array: npt.NDArray[Any], n_steps: int, periodic: tuple[bool, ...]
) -> npt.NDArray[Any]:
    """A new array: the field `array` (C order, its boundary cells included) after `n_steps` steps.

    Per axis, `periodic` closes it to a ring, for any reach; otherwise it is fixed: a cell whose
    declared stencil shape leaves the array keeps its value.  For programs of one field and one
    stage.

    >>> from controllers.language.weights import Stencil
    >>> mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float64")
    >>> reference_run(mean, np.array([0., 4., 0., 8.]), 1, (False,)).tolist()
    [0.0, 0.0, 6.0, 8.0]
    >>> reference_run(mean, np.array([0., 4., 0., 8.]), 1, (True,)).tolist()
    [6.0, 0.0, 6.0, 0.0]
    """
    if not isinstance(program, Program):
        raise wrong("program", "a Program", program, 'of a stencil it is .program("float32")')
    if len(program.fields) != 1 or len(program.stages) != 1:
        raise ValueError(
            f"program {program.name!r}: the reference runs one field and one stage so far"
        )
    instance(array, np.ndarray, "array", "use numpy.asarray")
    if array.dtype != program.dtype:
        raise ValueError(
            f"the array holds {array.dtype}, the program computes in {program.dtype}; convert it"
        )
    n_steps = whole(n_steps, "n_steps")
    if n_steps < 0:
        raise ValueError(f"the number of steps cannot be negative, got {n_steps}")
    periodic = tuple(sequence(periodic, "periodic", "True or False, one per axis"))
    (stage,) = program.stages
    updated = program.updated(Shape.of_extent(array.shape), periodic)
    result: npt.NDArray[Any] = array.copy()
    for _ in range(n_steps):
        old = result.copy()
        read = partial(neighbours, old, updated, periodic)
        result[updated.slices((0,) * array.ndim)] = apply_stage(stage, read, program.dtype)
    return result


def neighbours(
    array: npt.NDArray[Any], box: Shape, periodic: tuple[bool, ...], read: Read
) -> npt.NDArray[Any]:
    """What the cells of `box` see in `array` at the offset of `read`; a periodic axis wraps.

    >>> neighbours(np.array([1, 2, 3]), Shape((0,), (3,)), (True,), Read("u", (-1,))).tolist()
    [3, 1, 2]
    """
    ends = zip(box.lower, box.upper, read.offset)
    indices = [np.arange(lower + step, upper + step) for lower, upper, step in ends]
    for axis, wraps in enumerate(periodic):
        if wraps:
            indices[axis] %= array.shape[axis]
    seen: npt.NDArray[Any] = array[np.ix_(*indices)]
    return seen
