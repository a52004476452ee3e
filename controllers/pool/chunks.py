# SPDX-License-Identifier: MIT
"""What `map` and `map_reduce` give to tasks: rows of arrays, and results two by two."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from controllers.controller.access import ArrayAccess
from hitmap.argument import whole

_T = TypeVar("_T")


def by_rows(iterables: Sequence[Any], rows: int | None) -> Iterator[tuple[Any, ...]]:
    """The arguments of each task: the items of iterables, or `rows` rows of arrays at a time.

    Other arguments are given to all of them as they are, where there are rows.

    >>> [tuple(map(len, given[:1])) for given in by_rows((np.zeros(5), 2.0), 2)]
    [(2,), (2,), (1,)]
    """
    if rows is None:
        yield from zip(*iterables)
        return
    whole(rows, "rows", 1)
    counts = {len(_array(one)) for one in iterables if _array(one) is not None}
    if len(counts) != 1:
        raise ValueError(
            f"rows={rows} cuts arrays of as many rows, got arrays of {sorted(counts) or 'none'}; "
            f"give other arguments as part of the function"
        )
    for first in range(0, counts.pop(), rows):
        yield tuple(_cut(one, slice(first, first + rows)) for one in iterables)


def pairwise(values: Iterable[_T], combine: Callable[[_T, _T], _T]) -> _T:
    """Neighbours combined, and what comes of that, until one is left; in an order that is fixed.

    >>> pairwise("abcde", lambda a, b: f"({a}{b})")
    '(((ab)(cd))e)'
    """
    left = list(values)
    if not left:
        raise ValueError("there is nothing to reduce; give one item at least")
    while len(left) > 1:
        pairs = [combine(a, b) for a, b in zip(left[::2], left[1::2])]
        left = pairs + left[len(left) - len(left) % 2 :]
    return left[0]


def _array(given: Any) -> Any:
    array = given.array if isinstance(given, ArrayAccess) else given
    return array if isinstance(array, np.ndarray) and array.ndim else None


def _cut(given: Any, rows: slice) -> Any:
    if _array(given) is None:
        return given
    return (
        ArrayAccess(given.array[rows], given.role) if isinstance(given, ArrayAccess)
        else given[rows]
    )  # fmt: skip
