# SPDX-License-Identifier: MIT
"""Derivatives as weighted sums of neighbours, by central differences with exact coefficients.

Coefficients are fractions, divided by the spacing as a fraction, and rounded once; the sum is
written as that of a pattern of weights: in C order, without products by 0 and 1.
"""
from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import TypeVar, cast

from controllers.language.struct import Struct
from controllers.language.value import Value, along, places_of
from controllers.program.coordinates import Coordinates
from hitmap.argument import whole, wrong

MOST = 16   # of order and accuracy
V = TypeVar("V", Value, Struct)


@cache
def coefficients(order: int, accuracy: int = 2) -> tuple[Fraction, ...]:
    """Those of the cells -n to n: of a derivative, with an error of the spacing to `accuracy`.

    >>> [str(one) for one in coefficients(2, 4)]
    ['-1/12', '4/3', '-5/2', '4/3', '-1/12']
    """
    whole(order, "order", 1)
    if whole(accuracy, "accuracy", 2) % 2 or max(order, accuracy) > MOST:
        raise ValueError(
            f"the accuracy of a derivative is an even number, and it and the order are at most "
            f"{MOST}, got order {order} and accuracy {accuracy}; use 2, 4, 6 or 8"
        )
    n = (order + 1) // 2 - 1 + accuracy // 2
    points = range(-n, n + 1)
    rows = [
        [Fraction(k) ** power for k in points]
        + [Fraction(math.factorial(order) if power == order else 0)]
        for power in range(2 * n + 1)
    ]
    return _solution(rows)


def derivative(f: V, axis: str, order: int = 1, accuracy: int = 2) -> V:
    """The derivative of a field or an expression along an axis, by central differences.

    order: 1 for the slope, 2 for the curvature, and so on.  accuracy: 2, 4, 6 or 8, with as many
    neighbours as that takes.
    """
    places = _places(f)
    weights = coefficients(order, accuracy)
    along(places.axes, axis, 0)
    spacing = Fraction(places.spacing[places.axes.index(axis)]) ** order
    n = len(weights) // 2
    return _sum(f, {
        along(places.axes, axis, k): weight / spacing for k, weight in enumerate(weights, -n)
    })  # fmt: skip


def gradient(f: V, accuracy: int = 2) -> dict[str, V]:
    """The slopes of a field or an expression, by the names of the axes."""
    return {axis: derivative(f, axis, 1, accuracy) for axis in _places(f).axes}


def laplacian(f: V, accuracy: int = 2) -> V:
    """The sum of the second derivatives along all axes, as one sum over the neighbours."""
    places = _places(f)
    weights = coefficients(2, accuracy)
    n = len(weights) // 2
    total: dict[tuple[int, ...], Fraction] = {}
    for axis, spacing in zip(places.axes, places.spacing):
        for k, weight in enumerate(weights, -n):
            offset = along(places.axes, axis, k)
            total[offset] = total.get(offset, Fraction(0)) + weight / Fraction(spacing) ** 2
    return _sum(f, total)


def _sum(f: V, weights: Mapping[tuple[int, ...], Fraction]) -> V:
    """The sum of weights and neighbours, in C order."""
    total: V | None = None
    for offset in sorted(weights):
        weight = float(weights[offset])
        if weight:
            near: V = f[offset]
            term = near if weight == 1 else cast(V, weight * near)
            total = term if total is None else cast(V, total + term)
    assert total is not None, "some coefficient is not 0"
    return total


def _places(f: Value | Struct) -> Coordinates:
    values = [*f.parts.values()] if isinstance(f, Struct) else [f]
    places = places_of(*values)
    if places is None:
        raise wrong("a derivative", "a field, or an expression of fields,", f)
    return places


def _solution(rows: list[list[Fraction]]) -> tuple[Fraction, ...]:
    """Of a square system whose right side is the last column, by elimination."""
    n = len(rows)
    for column in range(n):
        pivot = next(row for row in range(column, n) if rows[row][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        rows[column] = [value / rows[column][column] for value in rows[column]]
        for row in range(n):
            if row != column:
                factor = rows[row][column]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[column])]
    return tuple(row[-1] for row in rows)
