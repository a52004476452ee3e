# SPDX-License-Identifier: MIT
"""Folds for steps: `ct.max(np.abs(u))` is one number of all cells, in each step.

Their names are NumPy's, and so are their results, but for sums, which are exact and rounded once.
"""
from __future__ import annotations

from typing import Any

from controllers.language import foldable
from controllers.language.struct import Struct, of_parts
from hitmap.argument import wrong


def sum(value: Any, *, where: Any = None) -> Any:
    """The exact sum over all cells, rounded once to float64; of a condition, how often it holds.

    where: a condition; only the cells where it holds take part, of all folds.
    """
    return _folded("sum", value, where)


def mean(value: Any, *, where: Any = None) -> Any:
    """The exact sum over all cells, divided by how many cells take part."""
    return _folded("mean", value, where)


def min(value: Any, *, where: Any = None) -> Any:
    """The least value of all cells; NaN where there is one."""
    return _folded("min", value, where)


def max(value: Any, *, where: Any = None) -> Any:
    """The largest value of all cells; NaN where there is one."""
    return _folded("max", value, where)


def argmin(value: Any, *, where: Any = None) -> Any:
    """The number, in C order, of the first cell that has the least value, or NaN."""
    return _folded("argmin", value, where)


def argmax(value: Any, *, where: Any = None) -> Any:
    """The number, in C order, of the first cell that has the largest value, or NaN."""
    return _folded("argmax", value, where)


def any(condition: Any, *, where: Any = None) -> Any:
    """Whether a condition holds in some cell."""
    return _folded("any", condition, where)


def all(condition: Any, *, where: Any = None) -> Any:
    """Whether a condition holds in all cells."""
    return _folded("all", condition, where)


def dot(a: Any, b: Any, *, where: Any = None) -> Any:
    """The sum of the products of two values over all cells, in float64."""
    for value in (a, b):
        _check("dot", value)
    if isinstance(a, Struct) or isinstance(b, Struct):
        raise wrong("ct.dot", "values of all cells", "a struct", "multiply its components")
    return foldable.dot(a, b, where=where)


def norm(value: Any, *, where: Any = None) -> Any:
    """The square root of the sum of all squares, in float64; that of a struct by component."""
    _check("norm", value)
    if isinstance(value, Struct):
        return of_parts(lambda part: norm(part, where=where), value)
    return foldable.norm(value, where=where)


def _folded(name: str, value: Any, where: Any) -> Any:
    _check(name, value)
    if isinstance(value, Struct):
        return of_parts(lambda part: _folded(name, part, where), value)
    return getattr(value, name)(**({} if where is None else {"where": where}))


def _check(name: str, value: Any) -> None:
    if not hasattr(value, "astype") and not isinstance(value, Struct):
        remedy = "numbers among themselves are Python's"
        raise wrong(f"ct.{name}", "values of all cells", value, remedy)
