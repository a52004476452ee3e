# SPDX-License-Identifier: MIT
"""Where a row of cells is cut: evenly or by weights, anywhere or at multiples of a number only.

Cut points count from the row's lower end; the first is 0 and the last is the number of cells.
Those between are *interior* cuts.  A part between two equal cut points has no cells.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate

import numpy as np

from hitmap.argument import number as real_number
from hitmap.argument import whole, wholes


def split_even(count: int, parts: int, align: int = 1) -> list[int]:
    """Cut points of `count` cells in `parts` parts; interior ones are multiples of `align`.

    Parts differ by at most `align` cells.  The larger ones come first, or last where `count` is
    no multiple of `align`, so that what is left over is in one of them.

    >>> split_even(10, 4)
    [0, 3, 6, 8, 10]
    >>> split_even(10, 2, align=4)
    [0, 4, 10]
    """
    if count < 0 or parts < 1:
        raise ValueError(f"split: 0 or more cells in 1 or more parts, got {count} in {parts}")
    _check_align(align)
    size, n_larger = divmod(-(-count // align), parts)     # in units of `align` cells
    first_larger = 0 if count % align == 0 else parts - n_larger
    cuts = [
        part * size + min(max(0, part - first_larger), n_larger) for part in range(parts + 1)
    ]
    return [min(cut * align, count) for cut in cuts]


def split_weighted(count: int, weights: Sequence[float], align: int = 1) -> list[int]:
    """Cut points of `count` cells in proportion to `weights`; interior ones multiples of `align`.

    Every cut is the allowed one next to its exact place, so that each part is within `align`
    cells of its share, and a small change of the weights moves few cells.  A weight of 0 gives
    no cells; a small one may.

    >>> split_weighted(10, [1, 1, 3])
    [0, 2, 4, 10]
    >>> split_weighted(10, [1, 1, 3], align=4)
    [0, 4, 4, 10]
    """
    if count < 0:
        raise ValueError(f"split: 0 or more cells, got {count}")
    _check_align(align)
    shares = exact_shares(weights)
    return [0, *(_nearest(count * so_far, count, align) for so_far in accumulate(shares))]


def exact_shares(weights: Sequence[float]) -> list[Fraction]:
    """The weights divided by their sum, without rounding or overflow.

    >>> [str(share) for share in exact_shares([1, 0.5, 0])]
    ['2/3', '1/3', '0']
    """
    weights = [real_number(weight, "weights") for weight in weights]
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
        raise ValueError(
            f"weights must be finite and not negative, with a positive sum, got {list(weights)}"
        )
    exact = [Fraction(weight) for weight in weights]
    total = sum(exact)
    return [weight / total for weight in exact]


def per_axis(what: str, number: int | Sequence[int], n_axes: int) -> tuple[int, ...]:
    """A positive whole number for each axis, given one for all of them or one for each.

    >>> per_axis("align", [4], 2), per_axis("align", [1, 8], 2)
    ((4, 4), (1, 8))
    """
    several = isinstance(number, (Sequence, np.ndarray)) and not isinstance(number, str)
    given = [*wholes(number, what)] if several else [whole(number, what)]
    if len(given) == 1:
        given *= n_axes
    if len(given) != n_axes or any(along < 1 for along in given):
        raise ValueError(
            f"{what}: a positive number, or one for each of {n_axes} axes, got {number}"
        )
    return tuple(given)


def _nearest(position: Fraction, count: int, align: int) -> int:
    """The multiple of `align` below `count`, or `count`, that is next to `position`."""
    below = math.floor(position / align) * align
    above = min(below + align, count)
    return above if 2 * position >= below + above else below


def _check_align(align: int) -> None:
    if align < 1:
        raise ValueError(f"align: cuts at multiples of 1 or more cells, got {align}")
