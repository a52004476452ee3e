# SPDX-License-Identifier: MIT
"""What Python asks of arrays: operators, lengths, truth; of arrays that are distributed.

The most frequent operators take no way round by NumPy.
"""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


class Operators(NDArrayOperatorsMixin):
    """All operators, by NumPy's functions."""

    __slots__ = ()
    __hash__ = object.__hash__      # of `==`, which compares cells

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Cells per axis."""

    @abstractmethod
    def computed(self, function: Callable[..., Any], one: Any, other: Any) -> Any:
        """What a function of NumPy's makes of two operands."""

    def __add__(self, other: Any) -> Any:
        return self.computed(np.add, self, other) if _is_near(other) else super().__add__(other)

    def __radd__(self, other: Any) -> Any:
        return self.computed(np.add, other, self) if _is_near(other) else super().__radd__(other)

    def __sub__(self, other: Any) -> Any:
        if _is_near(other):
            return self.computed(np.subtract, self, other)
        return super().__sub__(other)

    def __rsub__(self, other: Any) -> Any:
        if _is_near(other):
            return self.computed(np.subtract, other, self)
        return super().__rsub__(other)

    def __mul__(self, other: Any) -> Any:
        if _is_near(other):
            return self.computed(np.multiply, self, other)
        return super().__mul__(other)

    def __rmul__(self, other: Any) -> Any:
        if _is_near(other):
            return self.computed(np.multiply, other, self)
        return super().__rmul__(other)

    def __truediv__(self, other: Any) -> Any:
        if _is_near(other):
            return self.computed(np.divide, self, other)
        return super().__truediv__(other)

    def __rtruediv__(self, other: Any) -> Any:
        if _is_near(other):
            return self.computed(np.divide, other, self)
        return super().__rtruediv__(other)

    @property
    def ndim(self) -> int:
        """Axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Cells."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without axes has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        """Of the whole, as it is now."""
        return iter(np.asarray(self))

    def __contains__(self, value: object) -> bool:
        """Whether a cell has this value."""
        return bool(np.any(self == value))

    def __bool__(self) -> bool:
        return bool(self._number_of_one())

    def __float__(self) -> float:
        return float(self._number_of_one())

    def __int__(self) -> int:
        return int(self._number_of_one())

    def _number_of_one(self) -> Any:
        if self.size != 1:
            raise ValueError(
                f"an array of {self.size} cells is neither one number nor true or false; reduce "
                f"it, as u.max() or (u > 0).any(), and choose cell by cell by np.where"
            )
        return np.asarray(self).reshape(())[()]



def _is_near(other: object) -> bool:
    """Whether NumPy need not be asked how it meets a distributed array."""
    return type(other) is float or type(other) is int or isinstance(other, Operators)
