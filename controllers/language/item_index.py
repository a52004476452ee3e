# SPDX-License-Identifier: MIT
"""Indices in brackets of values of items: numbers, slices, new axes, and rows that are computed."""
from __future__ import annotations

from typing import Any

import numpy as np

from controllers.program.functions import INTEGERS
from controllers.program.item_node import Along, Axis, Gathered, ItemNode, View, Whole, shape_of


def viewed(node: ItemNode, index: Any) -> View:
    """The elements that numbers, slices, `None` and `...` select.

    IndexError where there are no such elements; TypeError for other indices.
    """
    listed = [*index] if isinstance(index, tuple) else [index]
    listed = _without_dots(listed, len(node.axes))
    takes: list[int | Along] = []
    axes: list[Axis] = []
    left = iter(node.axes)
    for one in listed:
        if one is None:
            axes.append(Axis(1))
            continue
        axis = next(left, None)
        if axis is None:
            raise IndexError(
                f"{_n_taken(listed)} indices for the shape {shape_of(node.axes)}; give one per axis"
            )
        if isinstance(one, slice):
            numbers = range(*one.indices(axis.size))
            takes.append(Along(len(axes), numbers.start, numbers.step))
            axes.append(axis if numbers == range(axis.size) else Axis(len(numbers)))
        elif isinstance(one, (int, np.integer)) and not isinstance(one, bool):
            takes.append(_number(int(one), axis))
        else:
            raise TypeError(
                f"an index of an item's value is a number, a slice, None, or one value that is "
                f"computed, for rows of a whole array; got {one!r}"
            )
    for axis in axes:
        if not axis.size:
            raise IndexError(f"the index {index!r} selects nothing of {shape_of(node.axes)}")
    return View(node, tuple(takes), tuple(axes), node.kind)


def gathered(node: ItemNode, rows: ItemNode) -> Gathered:
    """Rows of a whole array whose numbers are computed."""
    if not isinstance(node, Whole):
        raise TypeError(
            "a computed index selects rows of an array that is given as ct.All; give it so, and "
            "compute with what it selects"
        )
    if rows.kind.dtype not in INTEGERS:
        raise TypeError(
            f"an index is a whole number, got values of {rows.kind.dtype}; convert them, as "
            f"index.astype('int32')"
        )
    return Gathered(node, rows, rows.axes + node.axes[1:], node.kind)


def _without_dots(listed: list[Any], n_axes: int) -> list[Any]:
    """All axes told, those of `...` and those left out as whole slices."""
    if not any(one is Ellipsis for one in listed):
        listed = [*listed, Ellipsis]
    at = next(number for number, one in enumerate(listed) if one is Ellipsis)
    missing = n_axes - _n_taken(listed)
    return [*listed[:at], *[slice(None)] * missing, *listed[at + 1 :]]


def _n_taken(listed: list[Any]) -> int:
    """How many axes are selected from."""
    return sum(one is not None and one is not Ellipsis for one in listed)


def _number(number: int, axis: Axis) -> int:
    if not -axis.size <= number < axis.size:
        raise IndexError(f"the index {number} is beyond the {axis.size} elements of its axis")
    return number % axis.size
