# SPDX-License-Identifier: MIT
"""Indices in brackets, as NumPy's: which box of cells they select."""
from __future__ import annotations

from typing import Any

import numpy as np

from hitmap.argument import short, whole
from hitmap.shape import Shape

_REMEDY = "write slices with step 1, whole numbers and ..., or select(Shape(lower, upper))"


def selected(index: object, box: Shape) -> Shape:
    """The part of `box` that `array[index]` is of an array over it; axes are never dropped.

    Positions count from the first cell of the box, negative ones from its end; a whole number
    selects the one cell at it.  IndexError and TypeError where NumPy raises them, ValueError for
    steps other than 1.

    >>> str(selected((slice(2, 4), -1), Shape((10, 10), (20, 20))))
    '[12:14, 19:20]'
    >>> str(selected((..., slice(None, -5)), Shape((0, 0, 0), (7, 8, 9))))
    '[0:7, 0:8, 0:4]'
    """
    given = index if isinstance(index, tuple) else (index,)
    n_dots = sum(one is ... for one in given)
    if n_dots > 1 or len(given) - n_dots > box.n_axes:
        raise IndexError(
            f"the index {short(index)} has more than {box.n_axes} axes or more than one ..., of "
            f"cells {box}; {_REMEDY}"
        )
    missing = (slice(None),) * (box.n_axes - len(given) + n_dots)
    at = next((n for n, one in enumerate(given) if one is ...), len(given))
    each = (*given[:at], *missing, *given[at + 1 :])
    ends = [_ends(one, n, axis) for axis, (one, n) in enumerate(zip(each, box.extent, strict=True))]
    first = box.lower
    return Shape(
        tuple(lo + start for lo, (start, _) in zip(first, ends, strict=True)),
        tuple(lo + stop for lo, (_, stop) in zip(first, ends, strict=True)),
    )


def _ends(one: Any, n_cells: int, axis: int) -> tuple[int, int]:
    """Where the cells that one axis of an index selects begin and end."""
    if isinstance(one, slice):
        start, stop, step = one.indices(n_cells)
        if step != 1:
            raise ValueError(
                f"the index of axis {axis} has the step {step}; cells that are selected lie side "
                f"by side: {_REMEDY}"
            )
        return start, max(start, stop)
    if isinstance(one, (bool, np.bool_)) or not isinstance(one, (int, np.integer)):
        raise TypeError(f"the index of axis {axis} is {short(one)}; {_REMEDY}")
    position = whole(one, "an index")
    if not -n_cells <= position < n_cells:
        raise IndexError(f"the index {position} of axis {axis} is not among its {n_cells} cells")
    return position % n_cells, position % n_cells + 1
