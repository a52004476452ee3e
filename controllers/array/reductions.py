# SPDX-License-Identifier: MIT
"""Reductions of distributed arrays to Python numbers, the same on every rank and on any layout.

A sum is the exact one, rounded once; means, dot products and norms are made of sums in float64.
"""
from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from controllers.array.arrays import Arrays
from controllers.array.operand import Frame, Operand
from controllers.array.promotion import converted
from controllers.array.term import Term
from controllers.program.accumulator import Accumulator, numbers_of
from controllers.program.dtypes import CONDITION
from controllers.program.fold import CONDITIONS, FoldKind
from hitmap.shape import Shape

Result: TypeAlias = "float | bool"
_SQUARES = 2, None


class Reduced:
    """What has reductions as NumPy's arrays have; along axes, NumPy computes them."""

    __slots__ = ()

    @property
    @abstractmethod
    def arrays(self) -> Arrays:
        """Where it is computed."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """Cells per axis."""

    @abstractmethod
    def operand(self) -> Operand | None:
        """What it is in expressions; None where its cells do not follow one another."""

    def apply_each(
        self, function: Any, arrays: Mapping[str, Any], numbers: Mapping[str, float]
    ) -> Any:
        """What a function of items (`controllers.each`) makes of arrays, this being one of them."""
        return self.arrays.owner.apply_each(function, arrays, numbers)

    def chosen(self) -> tuple[Term, Frame, Term | None] | None:
        """The same, and where its cells are; None where NumPy has to bring them together."""
        operand = self.operand()
        return None if operand is None else (*operand, None)

    def sum(self, axis: object = None, **more: Any) -> Any:
        """The exact sum, rounded once to float64."""
        return self._reduced("sum", axis, more)

    def mean(self, axis: object = None, **more: Any) -> Any:
        """The sum, divided by the number of cells; ValueError where there are none."""
        if axis is None and [*more] == ["where"] and isinstance(more["where"], Reduced):
            return self.where(more["where"]).mean()
        if axis is not None or more:
            return np.asarray(self).mean(axis=axis, **more)    # type: ignore[call-overload]
        n_cells = self._count()
        if n_cells == 0:
            raise ValueError("the mean of no cells; take a slice or a mask that has some")
        return _folded(self, "sum") / n_cells

    def min(self, axis: object = None, **more: Any) -> Any:
        """The least value; NaN where there is one.  ValueError where there are no cells."""
        return self._reduced("min", axis, more)

    def max(self, axis: object = None, **more: Any) -> Any:
        """The greatest value; NaN where there is one.  ValueError where there are no cells."""
        return self._reduced("max", axis, more)

    def argmin(self, axis: object = None, **more: Any) -> Any:
        """The position of the least value in C order: the first one, or that of a NaN."""
        return self._reduced("argmin", axis, more)

    def argmax(self, axis: object = None, **more: Any) -> Any:
        """The position of the greatest value in C order: the first one, or that of a NaN."""
        return self._reduced("argmax", axis, more)

    def any(self, axis: object = None, **more: Any) -> Any:
        """Whether any cell is true, or not 0."""
        return self._reduced("any", axis, more)

    def all(self, axis: object = None, **more: Any) -> Any:
        """Whether all cells are true, or not 0."""
        return self._reduced("all", axis, more)

    @abstractmethod
    def where(self, mask: Any) -> Reduced:
        """The cells where a mask holds."""

    def _reduced(self, kind: FoldKind, axis: object, more: dict[str, Any]) -> Any:
        if axis is None and [*more] == ["where"] and isinstance(more["where"], Reduced):
            return _folded(self.where(more["where"]), kind)
        if axis is not None or more:
            return getattr(np.asarray(self), kind)(axis=axis, **more)
        return _folded(self, kind)

    def _count(self) -> int:
        return math.prod(self.shape)


def _folded(array: Reduced, kind: FoldKind) -> Any:
    chosen = array.chosen()
    if chosen is None or (chosen[2] is not None and kind.startswith("arg")):
        return of_host(kind, np.asarray(array))
    term, frame, over = chosen
    if kind in CONDITIONS:
        term = converted(term, "bool")
    elif term.kind == CONDITION:
        term = converted(term, "uint8")
    if frame.is_empty:
        return of_host(kind, np.empty(frame.shape, term.kind.dtype))
    return array.arrays.fold(kind, term, frame, over)


def of_host(kind: FoldKind, values: npt.NDArray[Any]) -> Any:
    """The same of an array of the host."""
    if kind in CONDITIONS:
        values = values != 0
    elif values.dtype == np.bool_:
        values = values.astype(np.uint8)
    numbers = None
    if kind.startswith("arg"):
        every = Shape.of_extent((values.size,))
        numbers, values = numbers_of(every, every), values.reshape(-1)
    value = Accumulator.of(kind, values, numbers=numbers).value
    return value.item() if isinstance(value, np.generic) else value


def dot(one: Any, other: Any) -> float:
    """The sum of the products in float64, each rounded once."""
    return float((_real(one) * _real(other)).sum())


def norm(array: Any) -> float:
    """The square root of the sum of squares."""
    real = _real(array)
    return math.sqrt((real * real).sum())


def _real(array: Any) -> Any:
    return (array if isinstance(array, Reduced) else np.asarray(array)).astype("float64")  # type: ignore[union-attr]


def _shape(array: Any) -> tuple[int, ...]:
    return array.shape if isinstance(array, Reduced) else np.shape(array)


def _size(array: Any, *axis: Any, **more: Any) -> int:
    return int(np.size(np.broadcast_to(0, array.shape), *axis, **more))


def _norm(array: Any, ord: object = None, **more: Any) -> Any:
    if more or ord not in _SQUARES or (ord is not None and array.ndim > 1):
        whole: Any = np.asarray(array)
        return np.linalg.norm(whole, ord, **more)  # type: ignore[call-overload]
    return norm(array)


def _dot(one: Any, other: Any) -> Any:
    if np.ndim(one) == np.ndim(other) == 1:
        return dot(one, other)
    return np.dot(np.asarray(one), np.asarray(other))


def _vdot(one: Any, other: Any) -> Any:
    if _shape(one) == _shape(other):
        return dot(one, other)
    return np.vdot(np.asarray(one), np.asarray(other))


def _count_nonzero(array: Any, axis: object = None, *, keepdims: bool = False) -> Any:
    if axis is not None or keepdims:
        return np.count_nonzero(np.asarray(array), axis, keepdims=keepdims)     # type: ignore[call-overload]
    return int(np.not_equal(array, 0).sum())


def _ptp(array: Any, axis: object = None, **more: Any) -> Any:
    if axis is not None or more:
        return np.ptp(np.asarray(array), axis, **more)  # type: ignore[call-overload]
    return array.max() - array.min()


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.sum: lambda a, *more, **rest: a.sum(*more, **rest),
    np.mean: lambda a, *more, **rest: a.mean(*more, **rest),
    np.amin: lambda a, *more, **rest: a.min(*more, **rest),
    np.amax: lambda a, *more, **rest: a.max(*more, **rest),
    np.min: lambda a, *more, **rest: a.min(*more, **rest),
    np.max: lambda a, *more, **rest: a.max(*more, **rest),
    np.argmin: lambda a, *more, **rest: a.argmin(*more, **rest),
    np.argmax: lambda a, *more, **rest: a.argmax(*more, **rest),
    np.any: lambda a, *more, **rest: a.any(*more, **rest),
    np.all: lambda a, *more, **rest: a.all(*more, **rest),
    np.shape: lambda a: a.shape,    # without its cells, as the next ones
    np.ndim: lambda a: len(a.shape),
    np.size: _size,
    np.count_nonzero: _count_nonzero,
    np.ptp: _ptp,
    np.dot: _dot,
    np.vdot: _vdot,
    np.linalg.norm: _norm,
}
