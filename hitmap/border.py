# SPDX-License-Identifier: MIT
"""Which cells of a box are computed first, because a neighbour waits for them."""
from __future__ import annotations

from collections.abc import Iterable

from hitmap.region import Region
from hitmap.shape import Shape


def split_border(box: Shape, leaving: Iterable[Shape]) -> tuple[tuple[Shape, ...], Shape]:
    """The border of `box` as disjoint boxes that hold all cells of `leaving`, and the inner box.

    The inner box is what remains when, for each leaving box in turn, the side is cut off
    that costs the fewest cells.  Border and inner box together are `box`.

    >>> border, inner = split_border(Shape((0, 0), (9, 5)), [Shape((8, 0), (9, 5))])
    >>> [str(part) for part in border], str(inner)
    (['[8:9, 0:5]'], '[0:8, 0:5]')
    """
    inner = box
    for sent in leaving:
        if (sent & inner).empty:
            continue
        inner = max(_without(inner, sent & inner), key=lambda rest: rest.n_cells)
    return (Region.of([box]) - inner).boxes if not inner.empty else (box,), inner


def _without(box: Shape, part: Shape) -> Iterable[Shape]:
    """`box` with one side cut off, once for each side, so that `part` is gone."""
    for axis in range(box.n_axes):
        yield box.slab(axis, box.lower[axis], part.lower[axis])
        yield box.slab(axis, part.upper[axis], box.upper[axis])
