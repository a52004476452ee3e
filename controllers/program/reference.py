# SPDX-License-Identifier: MIT
"""The NumPy reference: the executable specification of the arithmetic and of the boundaries.

Everything is computed as the expression says, one correctly rounded operation after another, each
in the dtype that NumPy 2 gives it (`controllers.program.dtypes`); integers wrap at each result.
Kernels must give the same bits.  It is written to be read, not to be fast.
"""
from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from controllers.program.boundary import closed
from controllers.program.fold_values import Result
from controllers.program.program import Program
from controllers.program.reference_step import ReferenceStep
from controllers.program.scalars import TIME_STEP
from controllers.program.surroundings import Positions, Surroundings
from controllers.program.values import values_of as values_of
from hitmap.argument import instance, sequence, whole, wrong
from hitmap.shape import Shape


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

    >>> from controllers.program.expression import Read
    >>> from controllers.program.program import Field, Stage
    >>> u, old, next_u = Read("u", (0,)), Read("old", (0,)), Read("u", (1,))
    >>> leap = Stage("leap", {"u": old + next_u}, ((0, 1),))
    >>> fields = Field("u", "int32"), Field("old", "int32")
    >>> program = Program("wave", fields, (leap,), renames={"old": "u"})
    >>> start = {"u": np.int32([1, 2, 3]), "old": np.int32([10, 20, 30])}
    >>> {name: array.tolist() for name, array in reference_run(program, start, 1, (False,)).items()}
    {'u': [12, 23, 3], 'old': [1, 2, 3]}
    """
    several = isinstance(arrays, Mapping)
    _check_program(program)
    state = arrays if isinstance(arrays, Mapping) else _only(program, arrays)
    n_steps = whole(n_steps, "n_steps")
    if n_steps < 0:
        raise ValueError(f"the number of steps cannot be negative, got {n_steps}")
    state = _checked(program, state)
    for now in reference_steps(program, state, periodic, scalars, dt, n_steps=n_steps):
        state = now.fields
    return state if several else state[program.fields[0].name]


class ReferenceState(NamedTuple):
    """What there is after a step of the reference.

    results: of the program, by name.  counts: by repeat, how often its stages were done.
    """

    step: int
    time: float
    fields: dict[str, npt.NDArray[Any]]
    results: dict[str, Result]
    counts: dict[str, int]


def reference_steps(
    program: Program,
    arrays: Mapping[str, npt.NDArray[Any]],
    periodic: tuple[bool, ...] | None = None,
    scalars: Mapping[str, float] = MappingProxyType({}),
    dt: float | None = None,
    *,
    n_steps: int | None = None,
    until: float | None = None,
) -> Iterator[ReferenceState]:
    """What there is after each step; see `reference_run`.

    n_steps: how many, as many as are asked for by default.  until: a time; no step begins at it or
    later, and the last one ends there if `dt` is computed in the step.

    >>> from controllers.program.expression import Read
    >>> from controllers.program.fold import Fold
    >>> from controllers.program.program import Field, Stage
    >>> u = Read("u", (0,))
    >>> halve = Stage("halve", {"u": u / 2}, ((0, 0),), {"largest": Fold("max", u)})
    >>> program = Program("halve", (Field("u", "float64"),), (halve,))
    >>> for now in reference_steps(program, {"u": np.array([1.0, 8.0])}, n_steps=2):
    ...     print(now.step, float(now.results["largest"]), now.fields["u"].tolist())
    1 8.0 [0.5, 4.0]
    2 4.0 [0.25, 2.0]
    """
    _check_program(program)
    fields = _checked(program, arrays)
    if periodic is not None:
        periodic = tuple(sequence(periodic, "periodic", "True or False, one per axis"))
    periodic = closed(periodic, program.boundaries, program.n_axes)
    known = {**scalars, **({} if dt is None else {TIME_STEP: dt})}
    parameters = program.rules.complete(program.rules.given(known))
    domain = _domain(program, fields, periodic)
    for name, array in fields.items():
        for axis, upper in program.boundaries[name].walls:
            array[(slice(None),) * axis + (-upper,)] = 0
    positions = Positions(domain, periodic, program.grid)
    end, time = math.inf if until is None else float(until), 0.0
    for number in count() if n_steps is None else range(n_steps):
        if time >= end:
            break
        around = Surroundings(positions, program.rules.at(parameters, time))
        step = ReferenceStep(program, fields, around, number, end - time)
        step.run()
        fields = step.now
        time = time + step.dt if program.rules.time_is_folded else (number + 1) * step.dt
        yield ReferenceState(number + 1, time, fields, step.results, step.counts)


def _check_program(program: Program) -> None:
    if not isinstance(program, Program):
        raise wrong("program", "a Program", program, 'of a stencil it is .program("float32")')


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
