# SPDX-License-Identifier: MIT
"""Where around a cell a field is read, as users declare it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, Union

from controllers.language.neighbour import MAX_NODES
from controllers.program.offsets import MAX_OFFSET
from hitmap.argument import short, whole, wrong

Around = Union[int, Mapping[str, Any], Sequence[Any]]
Offset = tuple[int, ...]


def offsets_of(around: object, axes: Sequence[str], field: str) -> tuple[Offset, ...]:
    """The offsets that are meant, in C order, on axes of these names; `field` is for messages.

    A number n is all cells at most n away along each axis, a mapping of axes or a tuple of pairs a
    box, a list the offsets themselves.

    >>> offsets_of({"x": (-1, 1)}, ("y", "x"), "u")
    ((0, -1), (0, 0), (0, 1))
    >>> offsets_of([(0, 1), (0, 0)], ("y", "x"), "u")
    ((0, 1), (0, 0))
    """
    what = f"reads: the offsets of {field!r}"
    if isinstance(around, list):
        return tuple(dict.fromkeys(_offset(one, len(axes), what) for one in around))
    ends = _box(around, axes, what)
    count = prod(high - low + 1 for low, high in ends)
    if count > MAX_NODES:
        raise ValueError(
            f"{what} are {count}, the limit is {MAX_NODES}; declare a smaller box, or a list of "
            f"those that are read"
        )
    return tuple(product(*(range(low, high + 1) for low, high in ends)))


def _box(around: object, axes: Sequence[str], what: str) -> list[tuple[int, int]]:
    """The first and the last offset along each axis."""
    if isinstance(around, Mapping):
        for axis in around:
            if axis not in axes:
                raise ValueError(f"{what}: there is no axis {axis!r}; there are {', '.join(axes)}")
        return [_ends(around.get(axis, 0), what) for axis in axes]
    if isinstance(around, tuple):
        pairs = (around,) if len(axes) == 1 and len(around) == 2 else around
        if len(pairs) != len(axes):
            raise ValueError(
                f"{what}: a box has a pair for each of the axes {', '.join(axes)}, got "
                f"{short(around)}; offsets themselves are a list, [(0, 1), (0, 0)]"
            )
        return [_ends(pair, what) for pair in pairs]
    return [_ends(whole(around, what, 0), what)] * len(axes)


def _ends(given: Any, what: str) -> tuple[int, int]:
    if isinstance(given, (tuple, list)) and len(given) == 2:
        low, high = (whole(one, what) for one in given)
    else:
        high = whole(given, what, 0)
        low = -high
    if low > high or max(-low, high) > MAX_OFFSET:
        raise ValueError(
            f"{what}: the first offset is not above the last, and both within {MAX_OFFSET} cells, "
            f"got {short(given)}"
        )
    return low, high


def _offset(given: Any, n_axes: int, what: str) -> Offset:
    steps = (given,) if isinstance(given, int) else given
    if not isinstance(steps, (tuple, list)) or len(steps) != n_axes:
        raise wrong(what, f"a list of offsets of {n_axes} numbers", given, "write [(0, 1), (0, 0)]")
    return tuple(whole(step, what) for step in steps)
