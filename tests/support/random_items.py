# SPDX-License-Identifier: MIT
"""Functions of items at random, of whole numbers, so that sums are exact in any order.

NumPy computes them item by item to the same numbers, whatever order it sums in.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

import controllers as ct
from controllers.language.each import Each

Array = npt.NDArray[Any]
DTYPES = ("float64", "float32", "int64", "int32")
Operation = Callable[[list[Any]], Any]


class RandomItems:
    """One function, its arrays, and what it does: the same whatever it is called with."""

    def __init__(self, seed: int) -> None:
        self._random = random = np.random.default_rng(seed)
        self.n_items, n = int(random.integers(1, 12)), int(random.integers(1, 40))
        self.columns = columns = int(random.integers(1, 5))
        dtype = DTYPES[seed % 4]
        self.arrays: dict[str, Array] = {
            "x": self._numbers((self.n_items, columns), dtype),
            "at": random.integers(0, n, (self.n_items,)).astype("int32"),
            "every": self._numbers((n, columns), dtype),
            "line": self._numbers((n,), DTYPES[int(random.integers(4))]),
            "lines": self._numbers((int(random.integers(1, 30)), self.n_items), dtype),
            "beside": self._numbers((self.n_items, columns), DTYPES[int(random.integers(4))]),
        }
        self.near = ct.Near(-int(random.integers(3)), int(random.integers(3)))
        self.count = n
        self.steps = [int(step) for step in random.integers(0, 2**31, 5)]

    def _numbers(self, shape: tuple[int, ...], dtype: str) -> Array:
        return self._random.integers(-3, 4, shape).astype(dtype)

    @property
    def each(self) -> Each:
        """It, to be called with arrays of all items."""
        steps, near = self.steps, self.near

        def made(
            x: ct.Row, at: ct.Row, every: ct.All, line: ct.All, lines: ct.Column, beside: Any,
            *, a: float = 2, i: ct.Index,
        ) -> ct.Row:
            found = computed(steps, x, at, every, line, lines, beside, a, i)
            return {
                name: ct.accumulate(one) if is_summed(name, one) else one
                for name, one in found.items()
            }

        made.__annotations__["beside"] = near
        return ct.each(made)

    def by_numpy(self, a: float) -> dict[str, Array]:
        """The results, item by item."""
        x, at, every, line, lines, beside = self.arrays.values()
        steps = np.arange(self.near.first, self.near.last + 1)
        found = [
            computed(
                self.steps, x[i], at[i], every, line, lines[:, i],
                beside[np.clip(steps + i, 0, self.n_items - 1)], a, np.int64(i),
            )
            for i in range(self.n_items)
        ]  # fmt: skip
        rows = {name: np.stack([np.asarray(one[name]) for one in found]) for name in found[0]}
        return {
            name: one.sum(axis=0, dtype="float64") if is_summed(name, one[0]) else one
            for name, one in rows.items()
        }


def is_summed(name: str, value: Any) -> bool:
    """Whether a function returns the sum of a value over all items."""
    return name[-1] in "258" and value.size <= 8


def computed(
    steps: list[int], x: Any, at: Any, every: Any, line: Any, lines: Any, beside: Any, a: float,
    i: Any,
) -> dict[str, Any]:
    """Values of one item, each step of one or two that were there before."""
    known = [
        x, every[at], every - x, line, (line - i)[:, None], np.where(every > x, every, a * 1),
        lines, beside - x,
    ]
    for step in steps:
        random = np.random.default_rng(step)
        one, other = (known[int(n)] for n in random.integers(0, len(known), 2))
        known.append(_operation(int(random.integers(7)), one, other, x))
    found = {}
    for number, value in enumerate(known[4:]):
        while value.ndim > 1:
            value = value.sum(axis=0) if number % 2 else value.max(axis=1)
        found[f"result_{number}"] = value.min() if value.ndim and number % 3 else value
    return found


def _operation(which: int, one: Any, other: Any, x: Any) -> Any:
    smaller = np.clip(one, -3, 3)
    axis = -1 if which % 2 else 0
    if which < 2 and one.ndim:
        return smaller.sum(axis=axis)
    if which == 2 and one.ndim:
        return abs(one).argmax(axis=axis) - (one * -1).argmin(axis=axis)
    if which == 3 and one.ndim:
        return np.minimum(one, 2).max(axis=axis)
    if which == 4 and one.ndim == 2 and one.shape[1] == x.shape[0]:
        return np.clip(one, -2, 2) @ x
    if which == 5 and one.ndim:
        return one[::-1] - one[0]
    try:
        np.broadcast_shapes(one.shape, other.shape)
    except ValueError:
        return smaller**2
    return smaller * 2 - np.clip(other, -2, 2)
