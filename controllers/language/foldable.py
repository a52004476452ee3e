# SPDX-License-Identifier: MIT
"""What can be folded over all cells, by its methods and by NumPy's functions, as an array can."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from controllers.language.refusals import Refusals
from controllers.program.fold import FoldKind


class Foldable(Refusals):
    """Folds over all cells, to one number; `where` is a condition of the cells that take part."""

    __slots__ = ()

    def _folded(self, kind: FoldKind, where: Any) -> Any:
        raise NotImplementedError(kind, where)

    def _mean(self, where: Any) -> Any:
        raise NotImplementedError(where)

    def sum(self, axis: None = None, *, where: Any = None) -> Any:
        """The exact sum, rounded once to float64."""
        return self._of_all("sum", axis, where)

    def mean(self, axis: None = None, *, where: Any = None) -> Any:
        """The sum, divided by how many cells take part."""
        _check_axis(axis)
        return self._mean(where)

    def min(self, axis: None = None, *, where: Any = None) -> Any:
        """The least value; NaN where there is one."""
        return self._of_all("min", axis, where)

    def max(self, axis: None = None, *, where: Any = None) -> Any:
        """The largest value; NaN where there is one."""
        return self._of_all("max", axis, where)

    def argmin(self, axis: None = None, *, where: Any = None) -> Any:
        """The number of the first cell, in C order, that has the least value."""
        return self._of_all("argmin", axis, where)

    def argmax(self, axis: None = None, *, where: Any = None) -> Any:
        """The number of the first cell, in C order, that has the largest value."""
        return self._of_all("argmax", axis, where)

    def any(self, axis: None = None, *, where: Any = None) -> Any:
        """Whether the condition holds in a cell."""
        return self._of_all("any", axis, where)

    def all(self, axis: None = None, *, where: Any = None) -> Any:
        """Whether the condition holds in all cells."""
        return self._of_all("all", axis, where)

    def _of_all(self, kind: FoldKind, axis: object, where: Any) -> Any:
        _check_axis(axis)
        return self._folded(kind, where)


def _check_axis(axis: object) -> None:
    if axis is not None:
        raise ValueError(
            f"a fold is over all axes, to one number, got axis={axis!r}; leave it out"
        )


def dot(a: Any, b: Any, *, where: Any = None) -> Any:
    """The sum of the products of two values, in float64."""
    return (_wide(a) * _wide(b)).sum(**_given(where))


def norm(value: Any, *, where: Any = None) -> Any:
    """The square root of the sum of all squares, in float64."""
    wide = _wide(value)
    return np.sqrt((wide * wide).sum(**_given(where)))


def _wide(value: Any) -> Any:
    return value.astype("float64") if hasattr(value, "astype") else value


def _given(where: Any) -> dict[str, Any]:
    return {} if where is None else {"where": where}


def of_numpy(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The fold that a function of NumPy's is; None for all others."""
    return _NUMPYS.get(function)


def folded(
    fold: Callable[..., Any], function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """What a fold of NumPy's is of values; TypeError for what it is not given here."""
    unknown = sorted({*kwargs} - {"axis", "where"})
    if fold is norm and len(args) > 1:
        unknown.append(f"ord={args[1]!r}")
    if unknown:
        raise TypeError(
            f"np.{function.__name__} on a field takes where= next to operands, got "
            f"{', '.join(unknown)}; leave it out"
        )
    return fold(*args, **kwargs)


def _method(name: str) -> Callable[..., Any]:
    def fold(value: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(value, name)(*args, **kwargs)

    return fold


_NAMES = ("sum", "mean", "min", "max", "argmin", "argmax", "any", "all")
_NUMPYS: dict[Callable[..., Any], Callable[..., Any]] = {
    **{getattr(np, name): _method(name) for name in _NAMES},
    np.amin: _method("min"),
    np.amax: _method("max"),
    np.dot: dot,
    np.vdot: dot,
    np.linalg.norm: norm,
}
