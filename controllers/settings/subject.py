# SPDX-License-Identifier: MIT
"""Subjects: what is to be computed, in whichever way a user says it, resolved to one `Program`."""
from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from controllers.language.dtype import dtype_name
from controllers.language.fields_alone import FieldsAlone
from controllers.language.grid import Grid, Labelled
from controllers.language.half_points import Locations
from controllers.language.kinds import DTypes
from controllers.language.step import Method, Repeated, Step, Steps, called
from controllers.language.traced import program_of
from controllers.language.weights import FIELD, Stencil
from controllers.program.program import Math, Program
from controllers.program.scalars import TIME_STEP
from controllers.settings.domain import Boundaries, bounded, extent_of, place_of
from controllers.settings.initial import Given, Initial, Place, initials, is_named
from hitmap.argument import short, sizes_of, wrong
from hitmap.npy import open_npy

Described = Union[Program, Stencil, Steps, FieldsAlone]
Sizes = Union[int, Sequence[int], npt.NDArray[Any], Grid, Labelled]
DEFAULT_DTYPE = "float64"


@dataclass(frozen=True)
class Subject:
    """A program on cells, and what it begins with.

    initial: values of fields; all others are 0, but for those that are `missing`.
    scalars: values of parameters other than their defaults.
    alike: the temporary fields of methods, and which field each begins as.
    """

    program: Program
    sizes: tuple[int, ...]
    initial: tuple[Initial, ...]
    missing: tuple[str, ...]
    scalars: Mapping[str, float]
    alike: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        described: Described,
        sizes: Sizes,
        dtype: DTypes = None,
        boundary: Boundaries = None,
        location: Locations = None,
        dt: float | None = None,
        given: Mapping[str, Any] | None = None,
        math: Math = "strict",
    ) -> Subject:
        """TypeError or ValueError where an argument is wrong by itself.

        given: values of fields and of parameters, by their names.  math: that in which steps are
        to be computed.
        """
        values, scalars = _apart(given or {}, described)
        if dt is not None:
            scalars[TIME_STEP] = dt
        if isinstance(described, (Program, Stencil)):
            if location is not None:
                raise ValueError(
                    f"location: the fields of a program say themselves where they lie, got "
                    f"{short(location)}; make them as Field(..., half=(False, True))"
                )
            return _of_program(described, sizes, dtype, boundary, values, scalars)
        if isinstance(described, (Step, Method, Repeated, list, tuple, FieldsAlone)):
            usual = {"dtype": dtype, "boundary": boundary, "location": location, "math": math}
            return _of_steps(described, sizes, values, scalars, usual)
        remedy = "write Stencil.of(...), or @ct.step above a function"
        raise wrong("program", "a Program or a Stencil or steps", described, remedy)


def names_of(described: object) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The fields and the parameters of a description, as users call them."""
    if isinstance(described, Stencil):
        return (FIELD,), ()
    if isinstance(described, FieldsAlone):
        return described.names, ()
    if isinstance(described, Program):
        return tuple(field.name for field in described.fields), tuple(described.rules.parameters)
    if not isinstance(described, (Step, Method, Repeated, list, tuple)):
        return (), ()
    parts = called(described)
    own = {name for one in parts for name in one.temporaries}
    fields = dict.fromkeys(name for one in parts for name in one.signature.fields)
    scalars = dict.fromkeys(name for one in parts for name in one.signature.scalars)
    return tuple(name for name in fields if name not in own), tuple(scalars)


def _apart(
    given: Mapping[str, Any], described: object
) -> tuple[dict[str, Given], dict[str, Any]]:
    """The values of fields, and those of parameters."""
    fields, parameters = names_of(described)
    values: dict[str, Given] = {}
    scalars: dict[str, Any] = {}
    for name, value in given.items():
        if is_named(name, fields):
            values[name] = value
        elif name in parameters:
            scalars[name] = value
        else:
            close = get_close_matches(name, [*fields, *parameters], 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise ValueError(
                f"init: there is no field or parameter {name!r}{meant} (there are "
                f"{', '.join([*fields, *parameters])})"
            )
    return values, scalars


def _of_program(
    described: Program | Stencil,
    sizes: Sizes,
    dtype: DTypes,
    boundary: Boundaries,
    values: dict[str, Given],
    scalars: Mapping[str, Any],
) -> Subject:
    grid = _grid_of(sizes)
    array = np.asarray(sizes) if isinstance(sizes, (np.ndarray, Labelled)) else None
    if array is not None and array.ndim != described.n_axes:
        array = None        # extents
    fields, _ = names_of(described)
    if array is not None:
        values = _with_whole(values, fields, array)
    program = _program(described, dtype, values)
    if grid is not None and program.grid is None:
        program = replace(program, grid=grid.places)
    usual: Any = None if grid is None else grid.boundary
    axes = None if program.grid is None else program.grid.axes
    program = bounded(program, usual if boundary is None else boundary, axes)
    shaped = grid if array is None else array
    extent = _extent(sizes) if shaped is None else shaped.shape
    found = [
        one
        for name, value in values.items()
        for one in initials({name: value}, fields, _place(program, name, extent))
    ]
    return Subject(program, extent, tuple(found), (), program.rules.given(scalars))


def _of_steps(
    steps: Steps | FieldsAlone,
    sizes: Sizes,
    values: dict[str, Given],
    scalars: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Subject:
    """`options` are those of `program_of`."""
    fields, _ = names_of(steps)
    grid = _grid_of(sizes)
    if isinstance(sizes, (np.ndarray, Labelled)):
        values = _with_whole(values, fields, sizes)
    if grid is None:
        grid = Grid.of(sizes if isinstance(sizes, np.ndarray) else _extent(sizes))
    dtypes = {name: _dtype_of(value) for name, value in values.items()}
    trace = steps.program if isinstance(steps, FieldsAlone) else partial(program_of, steps)
    traced = trace(grid, dt=scalars.get(TIME_STEP), fields=dtypes, **options)
    missing = tuple(name for name in fields if name not in values)
    found = [
        one
        for name, value in values.items()
        for one in initials(
            {name: value},
            [*traced.parts(name).values()],
            _place(traced.program, name, grid.shape),
        )
    ]
    known = traced.program.rules.given(scalars)
    alike = {
        one: traced.parts(name)[part]
        for own, name in traced.alike.items()
        for part, one in traced.parts(own).items()
    }
    return Subject(traced.program, grid.shape, tuple(found), missing, known, alike)


def _place(program: Program, name: str, cells: tuple[int, ...]) -> Place:
    """Where the values of a field belong, or of structs whose components are fields."""
    field = next(f.name for f in program.fields if is_named(name, [f.name]))
    return place_of(program, field, extent_of(program, field, cells))


def _grid_of(sizes: Sizes) -> Grid | None:
    """The grid that is given, or that of an array with named axes."""
    if isinstance(sizes, Grid):
        return sizes
    return Grid.of(sizes) if isinstance(sizes, Labelled) else None


def _with_whole(
    values: dict[str, Given], fields: Sequence[str], whole: Given
) -> dict[str, Given]:
    """`values`, and those of the one field that were given in place of the sizes."""
    if len(fields) > 1:
        raise ValueError(
            f"sizes: an array is for programs of one field, and there are {', '.join(fields)}; "
            f"give the extents, and the values of each field by its name, such as {fields[0]}=..."
        )
    if fields[0] in values:
        raise ValueError(
            f"sizes: an array gives the values of {fields[0]}, got {fields[0]}=... too; leave one "
            f"of them out"
        )
    return {fields[0]: whole}


def _program(
    described: Program | Stencil, dtype: Any, values: Mapping[str, Given]
) -> Program:
    if isinstance(described, Stencil):
        known = [one for one in map(_dtype_of, values.values()) if one is not None]
        wanted = dtype if dtype is not None else known[0] if known else DEFAULT_DTYPE
        return described.program(wanted)
    if dtype is not None and {dtype_name(dtype)} != {*described.dtypes.values()}:
        raise ValueError(
            f"dtype: the fields of the program {described.name!r} are {described.dtype_text}, got "
            f"{dtype_name(dtype)}; leave it out, or make the program of this dtype"
        )
    return described


def _dtype_of(value: Given) -> np.dtype[Any] | None:
    """That of an array or of a file; None of what has none of its own."""
    try:
        if isinstance(value, (str, os.PathLike)):
            return open_npy(value).dtype
        if isinstance(value, (list, tuple)) or hasattr(value, "__array__"):
            known = getattr(value, "dtype", None)       # of what lies in a file, without its cells
            return known if isinstance(known, np.dtype) else np.asarray(value).dtype
    except (OSError, ValueError):       # which is said when it is read
        return None
    return None


def _extent(sizes: Any) -> tuple[int, ...]:
    if isinstance(sizes, np.ndarray) and sizes.ndim > 1:
        raise ValueError(
            f"sizes: an array has as many axes as the program, got one of {sizes.ndim}; give the "
            f"extents, or the initial field"
        )
    try:
        return sizes_of(sizes)
    except TypeError as error:
        nested = isinstance(sizes, (list, tuple)) and any(
            isinstance(row, (list, tuple)) for row in sizes
        )
        hint = "; an initial field is a NumPy array: write np.asarray(...)" if nested else ""
        raise TypeError(f"{error}{hint}") from None
