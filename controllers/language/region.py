# SPDX-License-Identifier: MIT
"""Which cells a step computes, where that is not all: a box, a parity, or a condition."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, and_
from typing import Any, TypeAlias, Union

import numpy as np

from controllers.language.grid import Grid
from controllers.language.half_points import Half, described
from controllers.language.value import Value, node_at
from controllers.program.expression import Expression, Index
from hitmap.argument import wrong
from hitmap.shape import Shape

Given: TypeAlias = Mapping[str, Any]    # fields and coordinates, by name


@dataclass(frozen=True)
class Box:
    """The cells from one index to another, along each axis or those named."""

    slices: tuple[slice, ...] | Mapping[str, slice]

    def condition(
        self, grid: Grid, given: Given, half: Half, points: Sequence[int]
    ) -> Expression | None:
        """Whether a cell is in it, of a field that lies there; None where all cells are.

        points: how many the field has along each axis.
        """
        slices = self._by_axis(grid)
        parts = []
        for axis, (cells, count) in enumerate(zip(slices, points)):
            first, end, stride = cells.indices(count)
            if stride != 1:
                raise ValueError(
                    f"over: a box has all cells from one to another, got {cells} along "
                    f"{grid.axes[axis]!r}; leave the stride out, or use ct.parity(0)"
                )
            index = Index(axis)
            parts += [index >= first] if first > 0 else []
            parts += [index < end] if end < count else []
        return reduce(and_, parts) if parts else None

    def _by_axis(self, grid: Grid) -> tuple[slice, ...]:
        if isinstance(self.slices, Mapping):
            for name in self.slices:
                grid.number(name)
            return tuple(self.slices.get(axis, slice(None)) for axis in grid.axes)
        if len(self.slices) != len(grid.axes):
            raise ValueError(
                f"over: a box needs one slice for each of {', '.join(grid.axes)}, got "
                f"{len(self.slices)}; name those you mean: over=dict({grid.axes[-1]}=slice(1, -1))"
            )
        return self.slices


@dataclass(frozen=True)
class Parity:
    """The cells whose indices add up to an even or an odd number."""

    number: int

    def condition(
        self, grid: Grid, given: Given, half: Half, points: Sequence[int]
    ) -> Expression:
        """Whether a cell is one of them."""
        total = reduce(add, (Index(axis) for axis in range(len(grid.axes))))
        return total % 2 == self.number     # type: ignore[no-any-return]


@dataclass(frozen=True)
class Mask:
    """The cells where a function of fields and coordinates, by their names, gives a condition."""

    function: Callable[..., Any]

    def condition(
        self, grid: Grid, given: Given, half: Half, points: Sequence[int]
    ) -> Expression:
        """Whether a cell is one of them, of a field that lies there."""
        names = [*inspect.signature(self.function).parameters]
        for name in names:
            if name not in given:
                raise ValueError(
                    f"over: the parameters of its function are fields or axes "
                    f"({', '.join(given)}), got {name!r}"
                )
        value = self.function(**{name: given[name] for name in names})
        if isinstance(value, Value) and value.node.is_condition:
            if value.half not in (None, half):
                raise ValueError(
                    f"over: the condition lies {described(value.half, grid.axes)}, and what is "
                    f"computed {described(half, grid.axes)}; write a step for each location"
                )
            return node_at(value, half)
        raise wrong("over", "a condition", value, "compare, as in lambda u: u > 0")


Over: TypeAlias = Union[Box, Parity, Mask]


def region_of(over: object) -> Over | None:
    """The cells as users say them: slices, a `Shape`, `parity(0)`, a function, or None for all."""
    if over is None or isinstance(over, (Box, Parity, Mask)):
        return over
    if isinstance(over, Shape):
        return Box(tuple(slice(a, b) for a, b in zip(over.lower, over.upper)))
    if isinstance(over, slice):
        return Box((over,))
    if isinstance(over, Mapping) and all(isinstance(one, slice) for one in over.values()):
        return Box(dict(over))
    if isinstance(over, Sequence) and all(isinstance(one, slice) for one in over):
        return Box(tuple(over))
    if callable(over):
        return Mask(over)
    if isinstance(over, (np.ndarray, Value)):
        remedy = "make the mask a field, and write over=lambda mask: mask > 0"
    else:
        remedy = "write over=np.s_[1:-1, 1:-1], over=ct.parity(0) or over=lambda mask: mask > 0"
    raise wrong("over", "a box, a parity or a function", over, remedy)
