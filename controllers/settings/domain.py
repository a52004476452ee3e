# SPDX-License-Identifier: MIT
"""The domain of a program: all cells of its fields, and what its boundaries do."""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Union

from controllers.program.boundary import Boundary, Spelling
from controllers.program.fold import EXTREMES
from controllers.program.program import Program
from controllers.settings.initial import Place
from hitmap.argument import sizes_of
from hitmap.shape import Shape

MAX_BYTES = 2**63       # of a field: positions in it are 64-bit numbers
Boundaries = Union[Spelling, Mapping[str, Any], None]


def bounded(program: Program, boundary: Boundaries, axes: Sequence[str] | None = None) -> Program:
    """`program` with the boundary that a user gives; None leaves its own.

    boundary: what `Boundary.of` takes, for all fields, or a mapping of fields to that; the fields
        left out keep theirs.  axes: names of the axes, where they have some.

    >>> from controllers.language.weights import Stencil
    >>> mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
    >>> print(bounded(mean, {"u": ("mirror", "keep")}).field("u").boundary)
    (mirror(), keep)
    """
    if boundary is None:
        return program
    names = axes or program.n_axes
    fields = [field.name for field in program.fields]
    if isinstance(boundary, Mapping) and boundary and {*boundary} <= {*fields}:
        if axes and {*boundary} <= {*axes}:
            raise ValueError(
                f"boundary: {', '.join(boundary)} are names of fields and of axes; give a mapping "
                f"of fields to mappings of axes"
            )
        return program.with_boundaries({f: Boundary.of(boundary[f], names) for f in boundary})
    return program.with_boundaries(dict.fromkeys(fields, Boundary.of(boundary, names)))


def domain_of(program: Program, sizes: int | Sequence[int]) -> Shape:
    """The box of all cells of a program's fields; no axis may be empty, nor a fold without cells.
    """
    extent = sizes_of(sizes)
    if len(extent) != program.n_axes:
        raise ValueError(
            f"the stencil {program.name!r} has {program.n_axes} axes but the field has "
            f"{len(extent)}: {extent}; give one size per axis"
        )
    if min(extent) < 1:
        raise ValueError(f"every axis of a field needs at least one cell, got {extent}")
    if math.prod(extent) * program.largest_itemsize >= MAX_BYTES:
        raise ValueError(
            f"a field has less than 2^63 bytes, got {extent} cells of {program.dtype_text}; "
            f"use a smaller one"
        )
    domain = Shape.of_extent(extent)
    _check_some_folded(program, domain)
    return domain


def place_of(program: Program, field: str, extent: tuple[int, ...]) -> Place:
    """Where the values of a field belong, which has so many cells or points."""
    half = program.field(field).half or (False,) * len(extent)
    return Place(extent, program.grid, half)


def extent_of(program: Program, field: str, cells: tuple[int, ...]) -> tuple[int, ...]:
    """How many cells or points a field has per axis, over so many cells."""
    domain = Shape.of_extent(cells)
    if len(cells) != program.n_axes:    # which is said elsewhere
        return cells
    return program.field(field).boundary.points(domain, program.periodic).extent


def check_some_computed(program: Program, domain: Shape, periodic: tuple[bool, ...]) -> None:
    """ValueError where a step changes no cell at all, since the domain is too small for that."""
    for axis, length in enumerate(program.updated(domain, periodic).extent):
        if length == 0:
            low, high = program.stages[0].offsets[axis]
            raise ValueError(
                f"the stencil {program.name!r} reaches from {low} to {high} on axis {axis}, where "
                f"the field has {domain.extent[axis]} cells, so that no cell would be computed; "
                f"use a larger field, or a periodic boundary"
            )


def _check_some_folded(program: Program, domain: Shape) -> None:
    """ValueError where a stage takes an extreme of no cells, since the domain is too small."""
    for parts in program.by_location:
        stage = parts[0]
        extremes = [name for name, fold in stage.folds.items() if fold.kind in EXTREMES]
        if extremes and stage.updated(domain, program.periodic, program.boundaries).empty:
            raise ValueError(
                f"the fold {extremes[0]!r} of stage {stage.name!r} is the "
                f"{stage.folds[extremes[0]].kind} of no cells, as it reads from "
                f"{' x '.join(f'{low} to {high}' for low, high in stage.offsets)} in a domain of "
                f"{' x '.join(map(str, domain.extent))}; use a larger one, or a boundary that says "
                f"what lies beyond"
            )
