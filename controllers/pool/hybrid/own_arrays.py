# SPDX-License-Identifier: MIT
"""Arrays for what parts of hybrid tasks give, kept for the next time that they are submitted."""
from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

from controllers.pool.hybrid.hybrid import Hybrid, Series


class OwnArrays:
    """As long as somebody has the task; for who holds the pool's lock."""

    def __init__(self) -> None:
        self._own: weakref.WeakKeyDictionary[Hybrid | Series, dict[object, npt.NDArray[Any]]] = (
            weakref.WeakKeyDictionary()
        )

    def of(
        self, given: Hybrid | Series, key: object, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> npt.NDArray[Any]:
        """That of a key; it holds anything."""
        own = self._own.setdefault(given, {})
        known = own.get(key)
        if known is None or known.shape != shape or known.dtype != dtype:
            known = own[key] = np.empty(shape, dtype)
        return known
