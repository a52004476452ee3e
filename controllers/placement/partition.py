# SPDX-License-Identifier: MIT
"""The user's words for how a domain is cut and what its boundaries do."""
from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from controllers.program.program import Program
from hitmap.argument import sizes_of
from hitmap.cut import per_axis
from hitmap.layout import Layout
from hitmap.shape import Shape
from hitmap.strided import Geometry

WEIGHTED = ("weighted", "weighted-blocks")
PARTITIONS = ("bands", "blocks", *WEIGHTED, "cyclic")
MAX_BYTES = 2**63       # of a field: positions in it are 64-bit numbers
BOUNDARIES = ("fixed", "periodic")


def make_layout(
    domain: Shape,
    n_places: int,
    partition: str | None,
    weights: Sequence[float] | None,
    align: int | Sequence[int] = 1,
    block: int | Sequence[int] | None = None,
) -> Layout:
    """The layout that `partition` names; None is weighted bands if there are weights, else bands.

    A cyclic one has a place per block, all others have `n_places`.

    >>> make_layout(Shape.of_extent((8, 3)), 2, None, [1, 3]).owned[0].extent
    (2, 3)
    """
    chosen = partition or ("bands" if weights is None else "weighted")
    if chosen not in PARTITIONS:
        raise ValueError(f"partition is one of {', '.join(PARTITIONS)}, got {chosen!r}")
    if (block is not None) != (chosen == "cyclic"):
        raise ValueError(
            f"the extent of a block belongs to the partition 'cyclic', which needs it; got "
            f"partition {chosen!r} with block {block}"
        )
    if (weights is not None) != (chosen in WEIGHTED):
        raise ValueError(
            f"weights belong to the partitions {' and '.join(WEIGHTED)}, which need them; got "
            f"partition {chosen!r} with weights {weights}"
        )
    if weights is not None:
        return _weighted(domain, n_places, chosen, weights, align)
    if block is None:
        return (Layout.bands if chosen == "bands" else Layout.blocks)(domain, n_places, align=align)
    if max(per_axis("align", align, domain.n_axes)) > 1:
        raise ValueError(
            f"align: cyclic cuts are at multiples of the block already, got align {align}; "
            f"give a block that is a multiple of it"
        )
    return Layout.tiled(domain, block)


def _weighted(
    domain: Shape,
    n_places: int,
    partition: str,
    weights: Sequence[float],
    align: int | Sequence[int],
) -> Layout:
    if len(weights) != n_places:
        raise ValueError(
            f"{partition}: {n_places} places need as many weights, got {len(weights)}: "
            f"{list(weights)}; give one per place, in order of rank"
        )
    make = Layout.weighted if partition == "weighted" else Layout.weighted_blocks
    return make(domain, weights, align)


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
    if math.prod(extent) * np.dtype(program.dtype).itemsize >= MAX_BYTES:
        raise ValueError(
            f"a field has less than 2^63 bytes, got {extent} cells of {program.dtype}; "
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


def largest_tile(program: Program, layout: Layout) -> int:
    """Bytes of the largest tile of a field of `program`.

    With its halo on all sides, and rows padded as in the memory of a device.
    """
    low, high = zip(*program.reach)
    tiles = [owned.grow(low, high) for owned in layout.owned if not owned.empty]
    most = max(Geometry.padded(tile).n_elements for tile in tiles)
    return most * np.dtype(program.dtype).itemsize
