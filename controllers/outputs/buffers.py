# SPDX-License-Identifier: MIT
"""Memory for copies of cells that is used again: new pages cost as much as the copying."""
from __future__ import annotations

from collections import deque
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

_Kind: TypeAlias = "tuple[tuple[int, ...], np.dtype[Any]]"


class Buffers:
    """Arrays that are taken by one thread and given back by another.

    >>> buffers = Buffers()
    >>> one = buffers.copied(np.ones(3))
    >>> buffers.give(one)
    >>> buffers.copied(np.zeros(3)) is one
    True
    """

    def __init__(self) -> None:
        self._free: dict[_Kind, deque[npt.NDArray[Any]]] = {}

    def copied(self, cells: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A copy, in C order."""
        free = self._free.setdefault((cells.shape, cells.dtype), deque())
        copy = free.pop() if free else np.empty(cells.shape, cells.dtype)
        np.copyto(copy, cells)
        return copy

    def give(self, copy: npt.NDArray[Any]) -> None:
        """Nobody needs it any more."""
        self._free[copy.shape, copy.dtype].append(copy)

    def clear(self) -> None:
        """All that is free goes."""
        self._free.clear()
