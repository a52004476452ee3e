# SPDX-License-Identifier: MIT
"""Random array programs: statements that a computation's fields and NumPy's arrays both execute."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, Any]
Value = Callable[[Arrays], Any]     # an expression, of fields or of arrays
DTYPES = {"u": "float64", "v": "float64", "a": "float32", "k": "int32", "b": "uint8"}
_TWO = (np.add, np.subtract, np.multiply, np.minimum, np.maximum)
_COMPARED = (np.less, np.less_equal, np.greater, np.equal, np.not_equal)


def initial(random: np.random.Generator, extent: tuple[int, ...]) -> dict[str, Any]:
    """Values for all fields."""
    return {
        name: random.integers(0, 99, extent).astype(dtype)
        if dtype[0] in "ui" else random.uniform(-2, 2, extent).astype(dtype)
        for name, dtype in DTYPES.items()
    }  # fmt: skip


class Writer:
    """Writes random expressions over boxes of one shape, and statements that assign them."""

    def __init__(self, random: np.random.Generator, extent: tuple[int, ...]) -> None:
        self._random, self._extent = random, extent

    def statement(self) -> Callable[[Arrays], None]:
        """An assignment: to a slice, in place, or by a mask."""
        shape = self._shape()
        target = self._one(["u", "v", "u", "a"])
        box, value = self._box(shape), self.real(shape, 3)
        way = self._random.random()
        if way < 0.2:
            def in_place(arrays: Arrays) -> None:
                np.add(arrays[target][box], value(arrays).astype(DTYPES[target]),
                       out=arrays[target][box])  # fmt: skip
            return in_place
        if way < 0.35:
            mask, number = self.truth(self._extent, 1), float(self._random.normal())

            def masked(arrays: Arrays) -> None:
                arrays[target][mask(arrays)] = number
            return masked

        def assign(arrays: Arrays) -> None:
            arrays[target][box] = value(arrays).astype(DTYPES[target])
        return assign

    def real(self, shape: tuple[int, ...], depth: int) -> Value:
        """An expression of floats."""
        way = self._random.random()
        if depth == 0 or way < 0.15:
            return self._slice(["u", "v", "a"], shape)
        left = self.real(shape, depth - 1)
        if way < 0.45:
            function, right = self._one(_TWO), self.real(shape, depth - 1)
            return lambda arrays: function(left(arrays), right(arrays))
        if way < 0.6:
            function, number = self._one((*_TWO, np.divide)), float(self._random.uniform(1, 9))
            return lambda arrays: function(left(arrays), number)
        if way < 0.7:
            return lambda arrays: np.sqrt(abs(left(arrays)))
        if way < 0.8:
            chosen, right = self.truth(shape, depth - 1), self.real(shape, depth - 1)
            return lambda arrays: np.where(chosen(arrays), left(arrays), right(arrays))
        if way < 0.9:
            whole = self.whole(shape, depth - 1)
            return lambda arrays: left(arrays) + whole(arrays)
        lower = self._random.normal(size=self._lower(shape))
        return lambda arrays: left(arrays) * lower

    def whole(self, shape: tuple[int, ...], depth: int) -> Value:
        """An expression of integers."""
        way = self._random.random()
        if depth == 0 or way < 0.2:
            return self._slice(["k", "b"], shape)
        left = self.whole(shape, depth - 1)
        if way < 0.5:
            function, right = self._one(_TWO), self.whole(shape, depth - 1)
            return lambda arrays: function(left(arrays), right(arrays))
        number = int(self._random.integers(1, 9))
        function = self._one((np.multiply, np.floor_divide, np.remainder, np.bitwise_and))
        return lambda arrays: function(left(arrays), number)

    def truth(self, shape: tuple[int, ...], depth: int) -> Value:
        """A condition."""
        way = self._random.random()
        left, right = self.real(shape, max(0, depth - 1)), self.real(shape, max(0, depth - 1))
        if depth == 0 or way < 0.7:
            function = self._one(_COMPARED)
            return lambda arrays: function(left(arrays), right(arrays))
        one, other = self.truth(shape, depth - 1), self.truth(shape, depth - 1)
        if way < 0.85:
            return lambda arrays: one(arrays) & ~other(arrays)
        return lambda arrays: one(arrays) | other(arrays)

    def _slice(self, names: list[str], shape: tuple[int, ...]) -> Value:
        name, box = self._one(names), self._box(shape)
        if shape == self._extent and self._random.random() < 0.5:
            return lambda arrays: arrays[name] + 0
        if self._random.random() < 0.1:     # the other way round
            back = tuple(slice(None, None, -1) for _ in shape)
            return lambda arrays: arrays[name][box][back]
        return lambda arrays: arrays[name][box]

    def _shape(self) -> tuple[int, ...]:
        less = self._random.integers(0, 4, len(self._extent))
        return tuple(n - int(m) for n, m in zip(self._extent, less))

    def _box(self, shape: tuple[int, ...]) -> tuple[slice, ...]:
        starts = [int(self._random.integers(0, n - m + 1)) for n, m in zip(self._extent, shape)]
        return tuple(slice(start, start + n) for start, n in zip(starts, shape))

    def _lower(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """What is repeated to a shape."""
        first = int(self._random.integers(0, len(shape)))
        return tuple(n if self._random.random() < 0.5 else 1 for n in shape[first:])

    def _one(self, choices: Any) -> Any:
        return choices[int(self._random.integers(len(choices)))]
