# SPDX-License-Identifier: MIT
"""Item functions: what is computed of one row of some arrays and the whole of others, for all rows.

Fields are rows by columns; those of a stage with an item function have extents of their own
(`Boundary.extent`), and the rows that it computes are those of its results.
"""
# docs/decisions/0062-one-function-per-item.md
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, Literal, TypeAlias, Union

import numpy as np

from controllers.program import dtypes
from controllers.program.accumulator import Result
from controllers.program.boundary import Boundary
from controllers.program.dtypes import CONDITION
from controllers.program.element import Element, Outcome
from controllers.program.expression import Expression, Scalar
from controllers.program.field import Field
from controllers.program.fold import Fold
from controllers.program.functions import DTYPES, FLOATS, FUNCTIONS, Function
from controllers.program.item_node import (
    Applied,
    ItemNode,
    Number,
    Reduced,
    nodes_of,
    shape_of,
)
from controllers.program.program import Program
from controllers.program.scalars import Parameter
from controllers.program.stage import Stage
from controllers.program.stage_check import Math
from hitmap.argument import whole

_STEPS = {"sum": "+", "min": "minimum", "max": "maximum"}     # of reductions


@dataclass(frozen=True)
class Near:
    """Annotates a parameter that is some rows of an array, from the item's + `first` to + `last`.

    A row beyond the ends is the nearest one.  ValueError unless first <= 0 <= last.
    """

    first: int
    last: int

    def __post_init__(self) -> None:
        for name in ("first", "last"):
            object.__setattr__(self, name, whole(getattr(self, name), f"Near: {name}"))
        if not self.first <= 0 <= self.last:
            raise ValueError(
                f"ct.Near goes from a row before the item's or its own to one behind it or its "
                f"own, got {self.first} to {self.last}; give numbers with first <= 0 <= last"
            )


# How a field is read: the item's row or column, the rows around it, or all of them.
ItemUse: TypeAlias = Union[Literal["row", "column", "all"], Near]


@dataclass(frozen=True)
class ArrayKind:
    """What is known of an array before it is computed with: its rows first, and its dtype.

    copied: each place has a copy of all of it.
    """

    shape: tuple[int, ...]
    dtype: str
    copied: bool = False

    @property
    def extent(self) -> tuple[int, int]:
        """Rows and columns, all axes but the first one being columns.

        >>> ArrayKind((5, 3), "float32").extent, ArrayKind((5,), "int32").extent
        ((5, 3), (5, 1))
        """
        return self.shape[0], prod(self.shape[1:])


@dataclass(frozen=True)
class Items(Element):
    """An item function that was traced: nodes for what it gives, by name.

    text: what devices compute instead, in OpenCL C; "" where that is made of the nodes.
    private: arrays that each item has for itself there: name, dtype and number of elements.
    item_uses: by field of the program, as what it is given.  kinds: of all its fields.
    sums: what is summed over all items, by name; each element is a fold of the stage.
    """

    item_uses: tuple[tuple[str, ItemUse], ...] = ()
    kinds: tuple[tuple[str, ArrayKind], ...] = ()
    results: tuple[ItemNode, ...] = field(default=(), repr=False)
    private: tuple[tuple[str, str, int], ...] = ()
    sums: tuple[tuple[str, ItemNode], ...] = field(default=(), repr=False)

    @cached_property
    def use_of(self) -> Mapping[str, ItemUse]:
        """As what each field of the program is given."""
        names = self.field_of
        return {names[name]: use for name, use in self.item_uses}

    @cached_property
    def kind_of(self) -> Mapping[str, ArrayKind]:
        """Of each field of the program."""
        names = self.field_of
        return {names[name]: kind for name, kind in self.kinds}

    @cached_property
    def nodes(self) -> tuple[ItemNode, ...]:
        """All that is computed for an item, operands first."""
        return tuple(nodes_of([*self.results, *dict(self.sums).values()]))

    @cached_property
    def count(self) -> int:
        """How many items there are."""
        kinds = dict(self.kinds)
        return next(n for name, use in self.item_uses for n in items_in(kinds[name], use))

    @cached_property
    def computed_in(self) -> tuple[str, ...]:
        """All that it computes in, each once."""
        found = {one.kind.dtype for one in self.nodes if one.kind != CONDITION}
        return tuple(dtype for dtype in DTYPES if dtype in found)

    @cached_property
    def operations(self) -> tuple[dtypes.Applied, ...]:
        """All that it does, reductions too."""
        found = []
        for node in self.nodes:
            if isinstance(node, Applied):
                found.append(_operation(node.function, node.operands))
            elif isinstance(node, Reduced) and node.how in _STEPS:
                one = replace(node.operand, kind=node.kind)
                found.append(_operation(FUNCTIONS[_STEPS[node.how]], (one, one)))
        return tuple(found)

    @cached_property
    def flops(self) -> int:
        """Arithmetic operations for one item, each element of a reduction being one."""
        found = 0
        for node in self.nodes:
            if isinstance(node, Applied):
                found += node.function.flops * prod(shape_of(node.axes))
            elif isinstance(node, Reduced):
                found += prod(shape_of(node.operand.axes))
        return found

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The distinct functions that it calls."""
        applied = (one.function for one in self.nodes if isinstance(one, Applied))
        return tuple(dict.fromkeys(applied))

    @cached_property
    def folded(self) -> Mapping[str, str]:
        return {
            part: node.kind.dtype
            for name, node in self.sums for part in parts_of(name, shape_of(node.axes))
        }

    @property
    def private_nbytes(self) -> int:
        """Bytes of the arrays that an item has for itself."""
        return sum(np.dtype(dtype).itemsize * count for _, dtype, count in self.private)


@dataclass(frozen=True)
class ItemProgram:
    """An item function as a program of one stage.

    results: what each is called, and its kind.  uses: of each array that it is given.
    names: of all that is returned, in order; () where that is one value without.  sums: shapes
    of what is summed over all items, by name.
    """

    program: Program
    results: Mapping[str, ArrayKind]
    uses: Mapping[str, ItemUse]
    names: tuple[str, ...]
    sums: Mapping[str, tuple[int, ...]]

    @property
    def flops(self) -> int:
        """Arithmetic operations for all items."""
        return sum(
            one.flops * one.count
            for stage in self.program.stages for one in stage.elements if isinstance(one, Items)
        )

    def returned(self, found: Mapping[str, Any]) -> Any:
        """What a call gives, of results and sums by name."""
        if not self.names:
            (value,) = found.values()
            return value
        return {name: found[name] for name in self.names}

    def summed(self, folds: Mapping[str, Result]) -> dict[str, Any]:
        """The sums by name, of the folds of the program: floats, or arrays of float64."""
        found: dict[str, Any] = {}
        for name, shape in self.sums.items():
            numbers = [folds[part] for part in parts_of(name, shape)]
            found[name] = np.array(numbers, np.float64).reshape(shape) if shape else numbers[0]
        return found


def parts_of(name: str, shape: Sequence[int]) -> list[str]:
    """What the elements of a sum are called, in C order.

    >>> parts_of("total", (2,))
    ['total_part_0', 'total_part_1']
    """
    return [f"{name}_part_{number}" for number in range(prod(shape))]


def item_program(
    items: Items, results: Mapping[str, ArrayKind], numbers: Mapping[str, float],
    names: Sequence[str], math: Math,
) -> ItemProgram:  # fmt: skip
    """The program that does it for all rows; ValueError where arithmetic refuses it.

    names: what is returned, if it has names, in order.
    """
    _check(items, math)
    arguments = tuple(Scalar(name) for name in items.arguments)
    updates: dict[str, Expression] = {
        name: Outcome(items, name, arguments) for name in results
    }
    sums = {name: shape_of(node.axes) for name, node in items.sums}
    folds = {
        part: Fold("sum", Outcome(items, part, arguments))
        for name, shape in sums.items() for part in parts_of(name, shape)
    }
    like = ""
    if not updates:     # there is one
        like = next(name for name, use in items.item_uses if use not in ("all", "column"))
    stage = Stage(items.name, updates, ((0, 0), (0, 0)), folds, like)
    fields = tuple(
        Field(name, kind.dtype, Boundary(extent=kind.extent))
        for name, kind in items.kinds
    )
    program = Program(
        items.name, fields, (stage,), math,
        scalars={name: Parameter(numbers[name]) for name in items.arguments},
    )  # fmt: skip
    return ItemProgram(program, dict(results), dict(items.item_uses), tuple(names), sums)


def items_in(kind: ArrayKind, use: ItemUse) -> tuple[int, ...]:
    """How many items an array has that is used so: one number, or none where it does not say.

    >>> items_in(ArrayKind((5, 3), "float32"), "column"), items_in(ArrayKind((5,), "int32"), "all")
    ((3,), ())
    """
    return () if use == "all" else kind.shape[1:2] if use == "column" else kind.shape[:1]


def items_of(stage: Stage) -> Items | None:
    """The item function of a stage, if it has one."""
    return next((one for one in stage.elements if isinstance(one, Items)), None)


def stored_as(name: str, node: ItemNode, rows: int, dtype: str = "") -> ArrayKind:
    """What a result is for all rows, in its own dtype or in another one of its kind."""
    if node.kind == CONDITION:
        raise ValueError(
            f"{name!r} is a condition, and arrays hold numbers; choose them by "
            f"np.where(condition, 1, 0)"
        )
    return ArrayKind((rows, *shape_of(node.axes)), dtype or node.kind.dtype)


def _operation(function: Function, operands: Sequence[ItemNode]) -> dtypes.Applied:
    values = tuple(
        dtypes.Value(one.kind, one.value if isinstance(one, Number) and not one.name else None)
        for one in operands
    )
    dtype, result = dtypes.signature(function, [one.kind for one in operands])
    return dtypes.Applied(function, values, dtype, result)


def _check(items: Items, math: Math) -> None:
    for function in items.functions:
        if math == "strict" and not function.strict:
            remedy = f"{function.remedy}, or " if function.remedy else ""
            raise ValueError(
                f"{items.name!r} ({items.where}): devices round {function.name!r} differently, so "
                f"strict arithmetic refuses it; {remedy}take the device's own by "
                f"ct.each(math='fast'), on the command line --math fast"
            )
    if math == "fast" and not {*items.computed_in} & {*FLOATS}:
        raise ValueError(f"{items.name!r} computes no floats; leave math='fast' out")
