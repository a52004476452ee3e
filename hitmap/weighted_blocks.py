# SPDX-License-Identifier: MIT
"""Weighted blocks: bands of places along axis 0, each band then divided by itself.

On a grid of places one weight per row and one per column is all that can hold.  Here every band
is cut where the weights of its own places say, so that one weight per *place* holds.  With
three axes or more a band is divided in the same way: in bands along axis 1, and so on.

Which places make a band is chosen for the least area of all cuts, the cells that a halo of width
1 sends one way: exactly among the groups of consecutive places, for what lies inside a band by
an estimate with equal weights.
"""
# After the column-based partitioning of Beaumont et al. 2001, doi:10.1109/71.963416
from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hitmap.cut import split_weighted
from hitmap.shape import Shape

_TIE = 1 + 1e-9     # areas that differ by rounding alone are equal


def weighted_blocks(
    domain: Shape, weights: Sequence[float], align: tuple[int, ...]
) -> list[Shape]:
    """A box per place, whose cells are in proportion to its weight but for the rounding of cuts.

    >>> [str(box) for box in weighted_blocks(Shape.of_extent((8, 6)), [1, 1, 2], (1, 1))]
    ['[0:4, 0:3]', '[0:4, 3:6]', '[4:8, 0:6]']
    """
    split_weighted(0, weights)  # refuses weights that mean nothing
    nothing = Shape(domain.lower, domain.lower)
    largest = max(weights)
    given = (weight / largest for weight in weights)    # their sum does not overflow
    positive = [share for share in given if share > 0]
    boxes = _divided(domain, positive, align, axis=0)
    return [next(boxes) if weight / largest > 0 else nothing for weight in weights]


def _divided(
    box: Shape, weights: Sequence[float], align: tuple[int, ...], axis: int
) -> Iterator[Shape]:
    """The boxes of consecutive places that share `box`, cut along `axis` and the ones after it."""
    is_last = axis == box.n_axes - 1
    ends = range(len(weights) + 1) if is_last else _bands(weights, box.extent[axis:])
    groups = [weights[first:last] for first, last in pairwise(ends)]
    cuts = split_weighted(box.extent[axis], [math.fsum(group) for group in groups], align[axis])
    for group, (lower, upper) in zip(groups, pairwise(cuts), strict=True):
        band = box.slab(axis, box.lower[axis] + lower, box.lower[axis] + upper)
        if is_last:
            yield band
        else:
            yield from _divided(band, group, align, axis + 1)


def _bands(weights: Sequence[float], extent: tuple[int, ...]) -> list[int]:
    """Where the places are divided into bands along the first axis: 0, the ends of all bands.

    The least area of the cuts, by dynamic programming over the places; among equals the one with
    more bands, since a halo between bands is contiguous.
    """
    n_places = len(weights)
    rows = np.concatenate([[0.0], np.cumsum(weights)]) / math.fsum(weights) * extent[0]
    face = float(math.prod(extent[1:]))
    inside = _least_areas(n_places, extent[1:])
    area, start = np.zeros(n_places + 1), [0] * (n_places + 1)
    for end in range(1, n_places + 1):
        costs = area[:end] + face + (rows[end] - rows[:end]) * inside[end:0:-1]
        start[end] = int(np.flatnonzero(costs <= costs.min() * _TIE)[-1])
        area[end] = costs[start[end]]
    ends = [n_places]
    while ends[-1] > 0:
        ends.append(start[ends[-1]])
    return ends[::-1]


def _least_areas(n_places: int, extent: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """The area of the cuts that divide a box in n equal parts, bands of bands, by n.

    >>> _least_areas(4, (9, 9))[1:].tolist()
    [0.0, 9.0, 15.0, 18.0]
    """
    if len(extent) == 1:
        return np.arange(-1, n_places).astype(np.float64)
    inside = _least_areas(n_places, extent[1:])
    face, areas = float(math.prod(extent[1:])), np.zeros(n_places + 1)
    for n in range(1, n_places + 1):
        n_bands = np.arange(1, n + 1)
        in_each, n_larger = np.divmod(n, n_bands)
        larger = np.minimum(in_each + 1, n_places)
        within = n_larger * larger * inside[larger]
        within += (n_bands - n_larger) * in_each * inside[in_each]
        areas[n] = ((n_bands - 1) * face + within * (extent[0] / n)).min()
    return areas
