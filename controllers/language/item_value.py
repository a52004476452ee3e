# SPDX-License-Identifier: MIT
"""The values of which a function of `ct.each` computes while it is traced: rows, arrays, numbers.

They look like NumPy's arrays: operators and functions broadcast, `.sum(axis=1)` reduces, `x[0]` and
`array[index]` select.  Nothing is computed, nodes are built (`controllers.program.item_node`).
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from controllers.language.item_index import gathered, viewed
from controllers.program.composed import composed
from controllers.program.dtypes import CONDITION, kind_of_number
from controllers.program.functions import DTYPES, FUNCTIONS, function_of
from controllers.program.item_node import (
    Along,
    ItemNode,
    Number,
    Reduction,
    View,
    applied,
    reduced,
    shape_of,
    stacked,
)
from controllers.program.number import plain_number


class ItemValue(NDArrayOperatorsMixin):
    """A value of an item, with a shape and a dtype; of all items at once, so it has no number."""

    def __init__(self, node: ItemNode) -> None:
        self.node = node

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents, as NumPy's."""
        return shape_of(self.node.axes)

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.node.axes)

    @property
    def size(self) -> int:
        """How many elements it has."""
        return int(np.prod(self.shape))

    @property
    def dtype(self) -> np.dtype[Any]:
        """What its elements are."""
        return np.dtype(self.node.kind.dtype)

    @property
    def T(self) -> ItemValue:
        """Its axes in reverse."""
        n_axes = self.ndim
        takes = tuple(Along(n_axes - 1 - axis) for axis in range(n_axes))
        return ItemValue(View(self.node, takes, self.node.axes[::-1], self.node.kind))

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("a number of an item has no length; it has no axes")
        return self.shape[0]

    def __iter__(self) -> Iterator[ItemValue]:
        if len(self) and self.node.axes[0].rows_of:
            raise TypeError(
                f"a loop of Python over the {len(self)} rows of a whole array would be written "
                f"out; compute with all of them at once, as (every - x).sum(axis=0)"
            )
        return (self[number] for number in range(len(self)))

    def __getitem__(self, index: Any) -> ItemValue:
        if isinstance(index, ItemValue):
            if index.node.kind == CONDITION:
                raise TypeError(
                    "an item cannot select by a mask, as how many there are is not known; choose "
                    "by np.where(condition, a, b)"
                )
            return ItemValue(gathered(self.node, index.node))
        return ItemValue(viewed(self.node, index))

    def astype(self, dtype: npt.DTypeLike) -> ItemValue:
        """The same in another dtype: integers wrap, floats become integers by truncation."""
        name = np.dtype(dtype).name
        if name not in DTYPES:
            raise ValueError(f"a value is converted to one of {', '.join(DTYPES)}, got {name!r}")
        return ItemValue(applied(name, _number_of(self.node)))

    def sum(self, axis: int | None = None) -> ItemValue:
        """The sum along an axis, or of all elements in C order, one after another."""
        return self._reduced("sum", axis)

    def min(self, axis: int | None = None) -> ItemValue:
        """The least element along an axis, or of all; NaN if there is one."""
        return self._reduced("min", axis)

    def max(self, axis: int | None = None) -> ItemValue:
        """The largest element along an axis, or of all; NaN if there is one."""
        return self._reduced("max", axis)

    def argmin(self, axis: int | None = None) -> ItemValue:
        """The number (int64) of the least element along an axis: of the first one; of a NaN."""
        return self._reduced("argmin", axis)

    def argmax(self, axis: int | None = None) -> ItemValue:
        """The number (int64) of the largest element along an axis: of the first one; of a NaN."""
        return self._reduced("argmax", axis)

    def mean(self, axis: int | None = None) -> ItemValue:
        """The sum along an axis, or of all elements, divided by how many there are."""
        count = self.size if axis is None else self.shape[axis]
        return self._reduced("sum", axis) / count      # type: ignore[no-any-return]

    def _reduced(self, how: Reduction, axis: int | None) -> ItemValue:
        if axis is not None:
            return ItemValue(reduced(how, self.node, axis))
        if how.startswith("arg") and self.ndim > 1:
            raise ValueError(f".{how}() of {self.ndim} axes needs one of them, as axis=1")
        node = self.node
        for _ in range(self.ndim):      # the last axis first: rows are summed, then these sums
            node = reduced(how, node, -1)
        return ItemValue(node)

    def __matmul__(self, other: Any) -> ItemValue:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> ItemValue:
        return _product(other, self)

    def __array_ufunc__(
        self, ufunc: Callable[..., Any], method: str, *inputs: Any, **kwargs: Any
    ) -> Any:
        """What NumPy's functions and, by them, all operators do."""
        if method != "__call__" or kwargs:
            raise TypeError(
                f"np.{ufunc.__name__} of items takes operands alone, got "
                f"{', '.join(kwargs) or method}; leave it out, or write .sum(axis=)"
            )
        if ufunc is np.matmul:
            return _product(*inputs)
        return _applied(ufunc, inputs)

    def __array_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> Any:
        """The same for functions that NumPy does not call universal."""
        name = getattr(func, "__name__", str(func))
        if name in ("sum", "min", "max", "amin", "amax", "argmin", "argmax", "mean"):
            method = getattr(value_of(args[0]), name.removeprefix("a") if name in ("amin", "amax")
                             else name)  # fmt: skip
            return method(*args[1:], **kwargs)
        if kwargs:
            raise TypeError(
                f"np.{name} of items takes operands alone, got {', '.join(kwargs)}; leave it out"
            )
        if name in ("stack", "array") and len(args) == 1:
            return ItemValue(stacked([value_of(one).node for one in args[0]]))
        if name in ("dot", "vdot"):
            return _product(*args)
        return _applied(func, args)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "a value of an item is no array while its function is traced; several are one by "
            "np.stack([a, b])"
        )

    def __bool__(self) -> NoReturn:
        raise TypeError(
            "a value of an item has no truth value while its function is traced, so `if`, `while`, "
            "`and`, `or` and `not` cannot ask for one; choose by np.where(condition, a, b)"
        )

    def __repr__(self) -> str:
        return f"<value of an item: shape {self.shape}, {self.node.kind.dtype}>"


def value_of(operand: Any) -> ItemValue:
    """A value as it is, a number of Python or NumPy, or a small array of numbers, as one."""
    if isinstance(operand, ItemValue):
        return operand
    array = np.asarray(operand)
    if array.ndim:
        return ItemValue(stacked([value_of(one).node for one in array]))
    if isinstance(operand, (np.generic, np.ndarray)) and array.dtype.name in DTYPES:
        number = ItemValue(Number(plain_number(array.item()), kind_of_number(array.item())))
        return number.astype(array.dtype)       # of a dtype of its own
    value = plain_number(operand)
    return ItemValue(Number(value, kind_of_number(value)))


def _applied(numpy: Callable[..., Any], operands: Sequence[Any]) -> Any:
    made = composed(numpy, tuple(operands))
    if made is not None:
        return made
    values = [value_of(operand) for operand in operands]
    function = function_of(numpy, [one.node.kind == CONDITION for one in values])
    if function is None:
        raise TypeError(
            f"np.{getattr(numpy, '__name__', numpy)} is no function of items, these are: "
            f"{' '.join(FUNCTIONS)}, sum, min, max, argmin, argmax, mean, stack, dot; write it "
            f"with them"
        )
    nodes = [
        one.node if is_condition else _number_of(one.node)
        for one, is_condition in zip(values, function.takes, strict=True)
    ]
    for node, is_condition in zip(nodes, function.takes):
        if is_condition and node.kind != CONDITION:
            raise TypeError(
                f"np.{numpy.__name__} takes a condition, got a value; compare it, as x != 0"
            )
    return ItemValue(applied(function.name, *nodes))


def _number_of(node: ItemNode) -> ItemNode:
    """A condition as 1 or 0, as NumPy computes with truth values; all else as it is."""
    if node.kind != CONDITION:
        return node
    one, nothing = (Number(value, kind_of_number(value)) for value in (1, 0))
    return applied("where", node, one, nothing)


def _product(left: Any, right: Any) -> ItemValue:
    """As NumPy's `@` of one or two axes."""
    a, b = value_of(left), value_of(right)
    if not 1 <= a.ndim <= 2 or not 1 <= b.ndim <= 2:
        raise ValueError(f"@ takes values of 1 or 2 axes, got the shapes {a.shape} and {b.shape}")
    if a.shape[-1] != b.shape[0]:
        raise ValueError(
            f"@ takes as many columns as rows, got the shapes {a.shape} and {b.shape}"
        )
    if b.ndim == 1:
        return (a * b).sum(axis=-1)     # type: ignore[no-any-return]
    if a.ndim == 1:
        return (a[:, None] * b).sum(axis=0)     # type: ignore[no-any-return]
    return (a[:, :, None] * b[None]).sum(axis=1)    # type: ignore[no-any-return]


