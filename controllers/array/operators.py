# SPDX-License-Identifier: MIT
"""Python's operators on distributed arrays; the most frequent ones go no way round by NumPy."""
from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


class Operators(NDArrayOperatorsMixin):
    """All operators, by NumPy's functions."""

    __slots__ = ()
    __hash__ = object.__hash__      # of `==`, which compares cells

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


def _is_near(other: object) -> bool:
    """Whether NumPy need not be asked how it meets a distributed array."""
    return type(other) is float or type(other) is int or isinstance(other, Operators)
