# SPDX-License-Identifier: MIT
"""The domain of a program: all cells of its fields, and what its boundaries do."""
from __future__ import annotations

import math
from collections.abc import Sequence

from controllers.program.program import Program
from hitmap.argument import sizes_of
from hitmap.shape import Shape

MAX_BYTES = 2**63       # of a field: positions in it are 64-bit numbers
BOUNDARIES = ("fixed", "periodic")


def periodic_axes(boundary: str | Sequence[str], n_axes: int) -> tuple[bool, ...]:
    """Which axes are periodic; `boundary` is one word for all axes or one per axis.

    >>> periodic_axes("fixed", 2), periodic_axes(["fixed", "periodic"], 2)
    ((False, False), (False, True))
    """
    words = [boundary] if isinstance(boundary, str) else list(boundary)
    for word in words:
        if word not in BOUNDARIES:
            raise ValueError(f"a boundary is one of {', '.join(BOUNDARIES)}, got {word!r}")
    if len(words) == 1:
        words *= n_axes
    if len(words) != n_axes:
        raise ValueError(
            f"{n_axes} axes need one boundary, or one each, got {len(words)}: {', '.join(words)}"
        )
    return tuple(word == "periodic" for word in words)


def domain_of(program: Program, sizes: int | Sequence[int]) -> Shape:
    """The box of all cells of a program's fields; no axis may be empty."""
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
    return Shape.of_extent(extent)


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
