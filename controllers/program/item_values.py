# SPDX-License-Identifier: MIT
"""Item functions in NumPy, one item after another: what they mean, to the last bit."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from controllers.program.dtypes import Kind
from controllers.program.functions import FLOATS
from controllers.program.item_node import (
    Along,
    Applied,
    Around,
    Gathered,
    ItemNode,
    Number,
    Own,
    OwnColumn,
    Place,
    Reduced,
    Stacked,
    View,
    Whole,
    operands_of,
    shape_of,
)
from controllers.program.items import Items, parts_of
from controllers.program.values import KindValues, in_dtype, operation

Array = npt.NDArray[Any]


class ItemValues(NamedTuple):
    """What some items give.

    results: each of them, [rows, columns] in the dtype of its field.  summed: by part of what is
    summed over all items, [rows].
    """

    results: list[Array]
    summed: dict[str, Array]


def item_values(
    items: Items,
    rows: Sequence[int],
    array_of: Callable[[str], Array],
    number: Callable[[str], Any],
) -> ItemValues:
    """What the items of these numbers give.

    array_of: of a field what those read that have the numbers `rows`, which follow each other: rows
    by columns.  number: what is given with the call, as it is rounded.
    """
    evaluator = _Evaluator(items, array_of, number)
    kinds = [items.kind_of[items.field_of[name]] for name in items.writes]
    found = [np.empty((len(rows), kind.extent[1]), kind.dtype) for kind in kinds]
    rooms = {
        name: np.empty((len(rows), prod(shape_of(node.axes))), node.kind.dtype)
        for name, node in items.sums
    }
    with np.errstate(all="ignore"):
        for at, row in enumerate(rows):
            evaluator.at(at, row)
            for room, node, kind in zip(found, items.results, kinds, strict=True):
                values = in_dtype(evaluator.value(node), kind.dtype)
                room[at] = np.broadcast_to(values, kind.shape[1:]).reshape(-1)
            for name, node in items.sums:
                values = in_dtype(evaluator.value(node), node.kind.dtype)
                rooms[name][at] = np.broadcast_to(values, shape_of(node.axes)).reshape(-1)
    summed = {
        part: np.ascontiguousarray(rooms[name][:, number])
        for name, node in items.sums
        for number, part in enumerate(parts_of(name, shape_of(node.axes)))
    }
    return ItemValues(found, summed)


class _Evaluator:
    """The values of nodes for one item; those that depend on no item are kept."""

    def __init__(
        self, items: Items, array_of: Callable[[str], Array], number: Callable[[str], Any]
    ) -> None:
        self._items, self._number, self._at, self._row = items, number, 0, 0
        self._first = 0
        self._arrays = {field: array_of(field) for field in items.use_of}
        self._common: dict[ItemNode, KindValues] = {}
        self._own: dict[ItemNode, KindValues] = {}
        self._is_own: dict[ItemNode, bool] = {}
        for node in items.nodes:
            of_own = any(self._is_own[one] for one in operands_of(node))
            self._is_own[node] = isinstance(node, (Own, OwnColumn, Around, Place)) or of_own

    def at(self, item: int, row: int) -> None:
        """Go on to another item, of so many, and its number."""
        self._at, self._row, self._first = item, row, row - item
        self._own.clear()

    def value(self, node: ItemNode) -> KindValues:
        """All elements of a node."""
        known = self._own if self._is_own[node] else self._common
        for one in operands_of(node):
            self.value(one)
        if node not in known:
            known[node] = self._computed(node)
        return known[node]

    def _computed(self, node: ItemNode) -> KindValues:
        if isinstance(node, Number):
            if not node.name:
                return KindValues(node.kind, node.value)
            given = self._number(node.name)
            return KindValues(Kind(given.dtype.name, weak=True), given)
        if isinstance(node, Place):
            return KindValues(node.kind, np.int64(self._row))
        if isinstance(node, (Own, OwnColumn, Around, Whole)):
            return KindValues(node.kind, self._read(node))
        if isinstance(node, Applied):
            return operation(node.function.name, *map(self.value, node.operands))
        if isinstance(node, Stacked):
            parts = [in_dtype(self.value(one), node.kind.dtype) for one in node.operands]
            return KindValues(node.kind, np.stack([np.asarray(part) for part in parts]))
        if isinstance(node, Gathered):
            rows = np.asarray(self.value(node.rows).array)
            whole = self.value(node.operand).array
            return KindValues(node.kind, whole[row_numbers(rows, len(whole))])
        if isinstance(node, View):
            seen = self.value(node.operand)
            return seen._replace(array=_viewed(seen.array, node))
        return KindValues(node.kind, reduction(node, in_dtype(
            self.value(node.operand), node.operand.kind.dtype
        )))  # fmt: skip


    def _read(self, node: Own | OwnColumn | Around | Whole) -> Array:
        name = self._items.field_of[node.field]
        array, shape = self._arrays[name], shape_of(node.axes)
        if isinstance(node, Own):
            array = array[self._at]
        elif isinstance(node, OwnColumn):
            array = array.reshape(shape[0], -1, *shape[1:])[:, self._at]
        elif isinstance(node, Around):
            rows = self._row + node.first + np.arange(shape[0])
            known = max(0, self._first + node.first)    # the first row of those that are there
            array = array[np.clip(rows, 0, self._items.kind_of[name].shape[0] - 1) - known]
        return array.reshape(shape)


def row_numbers(rows: Array, count: int) -> Array:
    """Which rows are meant: those below 0 from the end, those beyond an end the last one there.

    >>> row_numbers(np.array([1, -1, 9, -9]), 4).tolist()
    [1, 3, 3, 0]
    """
    return np.clip(np.where(rows < 0, rows + count, rows), 0, count - 1)


def reduction(node: Reduced, values: Any) -> Array:
    """One axis reduced, the first element first.

    >>> from controllers.program.dtypes import Kind
    >>> from controllers.program.item_node import Axis, reduced
    >>> line = Own("x", (Axis(3),), Kind("float32"))
    >>> reduction(reduced("sum", line, 0), np.float32([1e8, 1, -1e8])).item()
    0.0
    """
    values, axis = np.asarray(values), node.axis
    if node.how == "sum":
        summed = np.add.accumulate(values, axis, dtype=node.kind.dtype)
        return np.asarray(np.take(summed, -1, axis))
    if node.how == "argmin":
        return np.asarray(np.argmin(values, axis))
    if node.how == "argmax":
        return np.asarray(np.argmax(values, axis))
    least = node.how == "min"
    found = np.asarray(values.min(axis) if least else values.max(axis))
    if node.kind.dtype in FLOATS:       # -0 is below 0
        zeros = (values == 0) & (np.signbit(values) == least)
        found = np.where((found == 0) & zeros.any(axis), -0.0 if least else 0.0, found)
    return np.asarray(found, node.kind.dtype)


def _viewed(array: Any, node: View) -> Array:
    array, axes = np.asarray(array), shape_of(node.axes)
    taken: list[Any] = []
    for take in node.takes:
        if isinstance(take, Along):
            numbers = take.start + take.step * np.arange(axes[take.axis])
            taken.append(numbers.reshape([-1 if at == take.axis else 1 for at in range(len(axes))]))
        else:
            taken.append(take)
    found = array[tuple(taken)] if taken else array
    return np.asarray(np.broadcast_to(found, axes))


def numbers_given(given: Mapping[str, float], dtype: str) -> Callable[[str], Any]:
    """What is given with a call, rounded once."""
    return lambda name: np.dtype(dtype).type(given[name])
