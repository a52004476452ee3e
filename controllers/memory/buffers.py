# SPDX-License-Identifier: MIT
"""Memory for copies of cells that is used again: new pages cost as much as the copying."""
from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[Any]"
_Kind: TypeAlias = "tuple[tuple[int, ...], np.dtype[Any]]"


class Buffers:
    """Arrays that are taken by one thread and given back by another.

    make: a new array of an extent and a dtype.

    >>> buffers = Buffers()
    >>> one = buffers.copied(np.ones(3))
    >>> buffers.give(one)
    >>> buffers.copied(np.zeros(3)) is one
    True
    """

    def __init__(self, make: Callable[[tuple[int, ...], np.dtype[Any]], Array] = np.empty) -> None:
        self._make = make
        self._free: dict[_Kind, deque[Array]] = {}

    def taken(self, extent: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """An array with any values, in C order."""
        free = self._free.setdefault((extent, dtype), deque())
        return free.pop() if free else self._make(extent, dtype)

    def copied(self, cells: Array) -> Array:
        """A copy, in C order."""
        copy = self.taken(cells.shape, cells.dtype)
        np.copyto(copy, cells)
        return copy

    def give(self, array: Array) -> None:
        """Nobody needs it any more."""
        self._free[array.shape, array.dtype].append(array)

    def clear(self) -> None:
        """All that is free goes."""
        self._free.clear()
