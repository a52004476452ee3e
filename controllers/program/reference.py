# SPDX-License-Identifier: MIT
"""The NumPy reference: the executable specification of the arithmetic and of the boundaries.

Everything is computed as the expression says, one correctly rounded operation after another, each
in the dtype that NumPy 2 gives it (`controllers.program.dtypes`); integers wrap at each result.
Kernels must give the same bits.  It is written to be read, not to be fast.
"""
from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from controllers.program.boundary import Boundary, closed
from controllers.program.dtypes import given_dtype
from controllers.program.expression import Given, Read
from controllers.program.extension import Line
from controllers.program.offsets import Offsets
from controllers.program.program import Program
from controllers.program.scalars import TIME_STEP
from controllers.program.stage import Stage
from controllers.program.surroundings import Positions, Surroundings
from controllers.program.values import values_of as values_of
from hitmap.argument import instance, sequence, whole, wrong
from hitmap.shape import Shape

Seen = Mapping[str, tuple[npt.NDArray[Any], tuple[int, ...]]]


@overload
def reference_run(
    program: Program,
    arrays: npt.NDArray[Any],
    n_steps: int,
    periodic: tuple[bool, ...] | None = None,
    scalars: Mapping[str, float] = ...,
    dt: float | None = ...,
) -> npt.NDArray[Any]: ...


@overload
def reference_run(
    program: Program,
    arrays: Mapping[str, npt.NDArray[Any]],
    n_steps: int,
    periodic: tuple[bool, ...] | None = None,
    scalars: Mapping[str, float] = ...,
    dt: float | None = ...,
) -> dict[str, npt.NDArray[Any]]: ...


def reference_run(
    program: Program,
    arrays: npt.NDArray[Any] | Mapping[str, npt.NDArray[Any]],
    n_steps: int,
    periodic: tuple[bool, ...] | None = None,
    scalars: Mapping[str, float] = MappingProxyType({}),
    dt: float | None = None,
) -> npt.NDArray[Any] | dict[str, npt.NDArray[Any]]:
    """New arrays: the fields `arrays` (their boundary cells included) after `n_steps` steps.

    One array for a program of one field, else one for each name.  Per axis, `periodic` closes it
    to a ring, for any reach, as the program's own boundaries may do.  Where they are keep, a cell
    where the declared offsets of a stage leave the array keeps its value; other rules say what lies
    beyond it.  `scalars` are values of parameters other than their defaults, `dt` is the one of
    that name; the time of the first step is 0.

    >>> from controllers.language.weights import Stencil
    >>> mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float64")
    >>> reference_run(mean, np.array([0., 4., 0., 8.]), 1, (False,)).tolist()
    [0.0, 0.0, 6.0, 8.0]
    >>> reference_run(mean, np.array([0., 4., 0., 8.]), 1, (True,)).tolist()
    [6.0, 0.0, 6.0, 0.0]
    >>> from controllers.program.boundary import Boundary, closed
    >>> walls = mean.with_boundaries({"u": Boundary.of(("mirror", "fixed:2"), 1)})
    >>> reference_run(walls, np.array([0., 4., 0., 8.]), 1).tolist()
    [2.0, 0.0, 6.0, 1.0]

    The stages of a step run in order, the updates of one stage at once; then fields are renamed.

    >>> from controllers.program.program import Field, Stage
    >>> u, old, next_u = Read("u", (0,)), Read("old", (0,)), Read("u", (1,))
    >>> leap = Stage("leap", {"u": old + next_u}, ((0, 1),))
    >>> fields = Field("u", "int32"), Field("old", "int32")
    >>> program = Program("wave", fields, (leap,), renames={"old": "u"})
    >>> start = {"u": np.int32([1, 2, 3]), "old": np.int32([10, 20, 30])}
    >>> {name: array.tolist() for name, array in reference_run(program, start, 1, (False,)).items()}
    {'u': [12, 23, 3], 'old': [1, 2, 3]}
    """
    if not isinstance(program, Program):
        raise wrong("program", "a Program", program, 'of a stencil it is .program("float32")')
    several = isinstance(arrays, Mapping)
    state = _checked(program, arrays if isinstance(arrays, Mapping) else _only(program, arrays))
    n_steps = whole(n_steps, "n_steps")
    if n_steps < 0:
        raise ValueError(f"the number of steps cannot be negative, got {n_steps}")
    if periodic is not None:
        periodic = tuple(sequence(periodic, "periodic", "True or False, one per axis"))
    periodic = closed(periodic, program.boundaries, program.n_axes)
    known = {**scalars, **({} if dt is None else {TIME_STEP: dt})}
    parameters = program.rules.complete(program.rules.given(known))
    domain = _domain(program, state, periodic)
    for name, array in state.items():
        for axis, upper in program.boundaries[name].walls:
            array[(slice(None),) * axis + (-upper,)] = 0
    positions = Positions(domain, periodic, program.grid)
    for step in range(n_steps):
        numbers = program.rules.at(parameters, step * parameters.get(TIME_STEP, 0.0))
        state = _after_step(program, state, Surroundings(positions, numbers))
    return state if several else state[program.fields[0].name]


def _only(program: Program, array: npt.NDArray[Any]) -> dict[str, npt.NDArray[Any]]:
    if len(program.fields) > 1:
        names = ", ".join(field.name for field in program.fields)
        raise ValueError(
            f"program {program.name!r} has the fields {names}, got one array; give one for each "
            f"name, {{{program.fields[0].name!r}: ..., ...}}"
        )
    return {program.fields[0].name: array}


def _checked(
    program: Program, arrays: Mapping[str, npt.NDArray[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Copies of the arrays of all fields, in the program's order."""
    names = [field.name for field in program.fields]
    if sorted(arrays) != sorted(names):
        raise ValueError(
            f"program {program.name!r} has the fields {', '.join(names)}, got arrays of "
            f"{', '.join(map(str, arrays)) or 'none'}; give one for each"
        )
    for name, array in arrays.items():
        instance(array, np.ndarray, "array", "use numpy.asarray")
        if array.dtype != program.dtypes[name]:
            raise ValueError(
                f"the array holds {array.dtype}, the field {name!r} {program.dtypes[name]}; "
                f"convert it"
            )
    return {name: arrays[name].copy() for name in names}


def _domain(
    program: Program, arrays: Mapping[str, npt.NDArray[Any]], periodic: tuple[bool, ...]
) -> Shape:
    """The cells of the arrays, of which those at half points have one more along an axis."""
    unit, boundaries = Shape.of_extent((0,) * program.n_axes), program.boundaries
    more = {name: boundaries[name].points(unit, periodic).upper for name in arrays}
    cells = {
        tuple(n - one for n, one in zip(array.shape, more[name])) if array.ndim == program.n_axes
        else array.shape
        for name, array in arrays.items()
    }  # fmt: skip
    if len(cells) > 1:
        shapes = ", ".join(f"{name}: {array.shape}" for name, array in arrays.items())
        points = any(any(one) for one in more.values())
        remedy = "one more along the axes where they lie at half points" if points else (
            "give all fields the same one"
        )
        raise ValueError(f"the arrays have unlike shapes ({shapes}); {remedy}")
    return Shape.of_extent(cells.pop())


def _after_step(
    program: Program, before: Mapping[str, npt.NDArray[Any]], around: Surroundings
) -> dict[str, npt.NDArray[Any]]:
    """The fields after a step; no array of `before` is changed, but some are handed on."""
    now, boundaries = dict(before), program.boundaries
    domain, periodic = around.positions.domain, around.positions.periodic
    for parts in program.by_location:
        values: dict[str, tuple[Shape, npt.NDArray[Any]]] = {}
        for stage in parts:
            box = stage.updated(domain, periodic, boundaries)
            made = _made(program, stage, box, now, around)
            values |= {field: (box, value) for field, value in made.items()}
        for field, (box, value) in values.items():  # only now: all updates read the old values
            now[field] = now[field].copy()
            now[field][box.slices(domain.lower)] = value
    return {**now, **{new: before[old] for new, old in program.renames.items()}}


def _made(
    program: Program,
    stage: Stage,
    box: Shape,
    now: Mapping[str, npt.NDArray[Any]],
    around: Surroundings,
) -> dict[str, npt.NDArray[Any]]:
    """What the cells of `box` become in the fields that a stage updates."""
    boundaries, periodic = program.boundaries, around.positions.periodic
    seen: Seen = {
        field: extended(
            now[field], field, boundaries[field], stage.ends(field, boundaries), around
        )
        for field in stage.fields_read
    }

    def read(node: Read) -> npt.NDArray[Any]:
        array, first = seen[node.field]
        return neighbours(array, box.shift(first), periodic, node)

    def given(node: Given) -> Any:
        return around.value(node, box, given_dtype(stage, program.dtypes))

    return {
        field: values_of(expression, read, program.dtypes[field], given)
        for field, expression in stage.updates.items()
    }


def extended(
    array: npt.NDArray[Any],
    field: str,
    boundary: Boundary,
    ends: Offsets,
    around: Surroundings | None = None,
) -> tuple[npt.NDArray[Any], tuple[int, ...]]:
    """A field with the cells outside from the first to the last offset, and where it begins then.

    Axis 0 is extended first, then axis 1 over that, and so on.

    >>> corner = Boundary.of([("mirror", "keep"), ("fixed:9", "keep")], 2)
    >>> wide, first = extended(np.array([[1, 2], [3, 4]]), "u", corner, ((-1, 1), (-1, 1)))
    >>> wide.tolist(), first
    ([[9, 1, 2], [9, 1, 2], [9, 3, 4]], (1, 1))
    """
    first = [0] * array.ndim
    for axis, (low, high) in enumerate(ends):
        line = Line(field, axis, array.ndim, array.shape[axis], boundary.side(axis))
        below = max(0, -low) if line.has(-1) else 0
        above = max(0, high) if line.has(line.length) else 0
        if below or above:
            array = _longer(array, line, below, above, tuple(first), around)
        first[axis] = below
    return array, tuple(first)


def _longer(
    array: npt.NDArray[Any],
    line: Line,
    below: int,
    above: int,
    first: tuple[int, ...],
    around: Surroundings | None,
) -> npt.NDArray[Any]:
    """`array`, which has so many cells `first`, with more below and above along one axis."""
    box, dtype = Shape.of_extent(array.shape).shift(tuple(-n for n in first)), str(array.dtype)
    slabs = {at: array.take([at], line.axis) for at in range(line.length)}

    def slab(at: int) -> npt.NDArray[Any]:
        if at not in slabs:
            stage, here = line.stage(at), box.slab(line.axis, at, at + 1)
            real = given_dtype(stage, dtype)
            given = None if around is None else partial(around.value, box=here, dtype=real)
            made = values_of(
                stage.expression, lambda r: slab(at + r.offset[line.axis]), dtype, given
            )
            slabs[at] = np.broadcast_to(made, slabs[0].shape)
        return slabs[at]

    return np.concatenate([slab(at) for at in range(-below, line.length + above)], line.axis)


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
