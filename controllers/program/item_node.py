# SPDX-License-Identifier: MIT
"""What is computed for one item, of its own row and of whole arrays: nodes with axes.

A node has axes, as NumPy's arrays have, and a dtype; none is ever stored whole.  Its value at an
index follows from its operands' values at theirs, which reference and generator work out alike.
Sums run from the first element to the last, one after another, in the dtype of the result.
"""
# docs/decisions/0062-one-function-per-item.md
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, Union

from controllers.program.dtypes import CONDITION, WEAK_INTEGER, Kind, promoted, signature
from controllers.program.function import Function
from controllers.program.functions import FUNCTIONS, INTEGERS

Reduction: TypeAlias = Literal["sum", "min", "max", "argmin", "argmax"]


@dataclass(frozen=True)
class Axis:
    """So many elements; rows_of: the field whose rows they are, so that no text says how many."""

    size: int
    rows_of: str = ""


Axes: TypeAlias = tuple[Axis, ...]


@dataclass(frozen=True, eq=False)
class Own:
    """The row of `field` that is the item's."""

    field: str
    axes: Axes
    kind: Kind


@dataclass(frozen=True, eq=False)
class Whole:
    """All rows of `field`."""

    field: str
    axes: Axes
    kind: Kind


@dataclass(frozen=True, eq=False)
class OwnColumn:
    """The column of `field` that is the item's: of each row, the element of its number."""

    field: str
    axes: Axes
    kind: Kind


@dataclass(frozen=True, eq=False)
class Around:
    """Rows of `field` around the item's, from `first` on; one beyond the ends is the nearest."""

    field: str
    first: int
    axes: Axes
    kind: Kind


@dataclass(frozen=True, eq=False)
class Number:
    """A constant, or, if it has a name, a number that is given with each call."""

    value: float
    kind: Kind
    name: str = ""
    axes: Axes = ()


@dataclass(frozen=True, eq=False)
class Place:
    """The number of the item, that of its rows."""

    axes: Axes = ()
    kind: Kind = WEAK_INTEGER


@dataclass(frozen=True, eq=False)
class Applied:
    """A function of the table, element by element, on what is broadcast to one shape."""

    function: Function
    operands: tuple[ItemNode, ...]
    axes: Axes
    kind: Kind


@dataclass(frozen=True, eq=False)
class Reduced:
    """One axis of a node is reduced; min, max and their places as in NumPy, also of NaN."""

    how: Reduction
    operand: ItemNode
    axis: int
    axes: Axes
    kind: Kind


@dataclass(frozen=True)
class Along:
    """An axis of an operand is walked along: its index is `start + step * index[axis]`."""

    axis: int
    start: int = 0
    step: int = 1


@dataclass(frozen=True, eq=False)
class View:
    """The same elements by other indices: `takes` says which, of each axis of the operand."""

    operand: ItemNode
    takes: tuple[Union[int, Along], ...]
    axes: Axes
    kind: Kind


@dataclass(frozen=True, eq=False)
class Gathered:
    """Rows of a whole array whose numbers are computed; one beyond the ends is the nearest."""

    operand: Whole
    rows: ItemNode
    axes: Axes
    kind: Kind


@dataclass(frozen=True, eq=False)
class Stacked:
    """Nodes of the same axes, one after another along a new first axis."""

    operands: tuple[ItemNode, ...]
    axes: Axes
    kind: Kind


ItemNode: TypeAlias = Union[
    Own, Whole, OwnColumn, Around, Number, Place, Applied, Reduced, View, Gathered, Stacked
]


def shape_of(axes: Axes) -> tuple[int, ...]:
    """How many elements there are along each."""
    return tuple(axis.size for axis in axes)


def operands_of(node: ItemNode) -> tuple[ItemNode, ...]:
    """What a node is computed of."""
    if isinstance(node, (Applied, Stacked)):
        return node.operands
    if isinstance(node, Gathered):
        return node.operand, node.rows
    return (node.operand,) if isinstance(node, (Reduced, View)) else ()


def nodes_of(results: Sequence[ItemNode]) -> list[ItemNode]:
    """All nodes, each once, operands before what is computed of them."""
    found: dict[ItemNode, None] = {}
    todo = [*reversed(results)]
    while todo:
        missing = [one for one in operands_of(todo[-1]) if one not in found]
        if missing:
            todo += reversed(missing)
        else:
            found[todo.pop()] = None
    return [*found]


def common_axes(operands: Sequence[ItemNode]) -> Axes:
    """The axes of what is broadcast together, the last ones being the same; else ValueError."""
    found: list[Axis] = []
    for behind in range(max(len(one.axes) for one in operands)):
        best = Axis(1)
        for axis in (one.axes[-1 - behind] for one in operands if behind < len(one.axes)):
            if best.size == 1 or (axis.size == best.size and not best.rows_of):
                best = axis
            elif axis.size not in (1, best.size):
                shapes = ", ".join(str(shape_of(one.axes)) for one in operands)
                raise ValueError(
                    f"shapes {shapes} cannot be broadcast together; give an axis of one element "
                    f"by [:, None], or take other axes"
                )
        found.append(best)
    return tuple(reversed(found))


def applied(name: str, *operands: ItemNode) -> Applied:
    """A function of the table; ValueError where it is not for such values."""
    function = FUNCTIONS[name]
    result = signature(function, [one.kind for one in operands])[1]
    return Applied(function, operands, common_axes(operands), result)


def number_of(node: ItemNode) -> ItemNode:
    """The same as numbers: a condition is 1 or 0, in int64."""
    if node.kind != CONDITION:
        return node
    return applied("where", node, Number(1, Kind("int64")), Number(0, Kind("int64")))


def reduced(how: Reduction, operand: ItemNode, axis: int) -> Reduced:
    """A reduction of one axis, counted from the first or, below 0, from the last."""
    if not -len(operand.axes) <= axis < len(operand.axes):
        raise ValueError(
            f".{how}() is along one of {len(operand.axes)} axes of the shape "
            f"{shape_of(operand.axes)}, got axis={axis}"
        )
    operand, axis = number_of(operand), axis % len(operand.axes)
    kind = operand.kind
    if how.startswith("arg"):
        kind = Kind("int64")
    elif how == "sum" and kind.dtype in INTEGERS:
        kind = Kind("int64", kind.weak)
    return Reduced(how, operand, axis, operand.axes[:axis] + operand.axes[axis + 1 :], kind)


def stacked(operands: Sequence[ItemNode]) -> Stacked:
    """Nodes along a new first axis, in the dtype that all of them have room in."""
    axes = common_axes(operands)
    kind = promoted(*(one.kind for one in operands))
    kind = Kind(kind.dtype)
    same = [broadcast(one, axes) for one in operands]
    return Stacked(tuple(same), (Axis(len(same)), *axes), kind)


def broadcast(node: ItemNode, axes: Axes) -> ItemNode:
    """The same elements, repeated to have these axes."""
    if shape_of(node.axes) == shape_of(axes):
        return node
    missing = len(axes) - len(node.axes)
    takes = tuple(
        0 if own.size == 1 else Along(number + missing) for number, own in enumerate(node.axes)
    )
    return View(node, takes, axes, node.kind)
