# SPDX-License-Identifier: MIT
"""Functions of one item that are done for all: `@ct.each`.

Positional parameters are arrays: `ct.Row` is the item's row of an array that is split by rows,
`ct.All` an array as a whole; keyword-only ones are numbers, one of
`ct.Index` the number of the item.  What is returned, a value or several
by name, is the item's row of new arrays.  The function is traced once per shapes and dtypes.
"""
# docs/decisions/0062-one-function-per-item.md
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from controllers.language.accumulated import Accumulated, ItemText, sums_of
from controllers.language.dtype import dtype_name
from controllers.language.element_text import ElementText
from controllers.language.item_parameters import All as All
from controllers.language.item_parameters import Parameters
from controllers.language.item_parameters import Row as Row
from controllers.language.item_value import ItemValue, value_of
from controllers.language.location import line_of, located
from controllers.language.opencl_c import found_text
from controllers.language.source import KernelSource, SourceLike
from controllers.program.dtypes import WEAK_FLOAT, Kind, given_dtype, stores
from controllers.program.fold_values import exact_sum
from controllers.program.identifier import check_field_name, check_identifier
from controllers.program.item_node import (
    Around,
    Axis,
    ItemNode,
    Number,
    Own,
    OwnColumn,
    Place,
    Whole,
)
from controllers.program.item_values import item_values, numbers_given
from controllers.program.items import (
    ArrayKind,
    ItemProgram,
    Items,
    ItemUse,
    item_program,
    items_in,
    items_of,
    stored_as,
)
from controllers.program.stage_check import Math
from hitmap.argument import number, whole

RESULT = "result"
Private: TypeAlias = Mapping[str, "tuple[npt.DTypeLike, int]"]
Arrays = Mapping[str, "npt.NDArray[Any]"]


class Each:
    """A function of one item; a call with arrays does it for all of them.

    Arrays of NumPy are computed by the reference, those of a workspace where they lie.
    """

    def __init__(
        self, function: Callable[..., Any], math: Math = "strict", text: ItemText | None = None
    ) -> None:
        self.function, self.math, self.text = function, math, text
        self.where = line_of(function)
        check_identifier(function.__name__, "function of items")
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self._lowered: dict[tuple[tuple[str, ArrayKind], ...], ItemProgram] = {}

    def __repr__(self) -> str:
        return f"<function of items {self.__name__!r} ({self.where})>"

    @cached_property
    def parameters(self) -> Parameters:
        """What it asks for; TypeError where no function of items has that."""
        return Parameters.of(self.function, f"{self.__name__!r} ({self.where})")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do it for all items; a result, or a dict of them.

        Collective, where the arrays are those of a workspace.  ValueError where rows, shapes or
        dtypes do not fit, TypeError for other arguments than it has.
        """
        arrays, numbers = self.bound(args, kwargs)
        for one in arrays.values():
            apply = getattr(type(one), "apply_each", None)
            if apply is not None:
                return apply(one, self, arrays, numbers)
        given = {name: np.asarray(array) for name, array in arrays.items()}
        kinds = {name: ArrayKind(array.shape, array.dtype.name) for name, array in given.items()}
        made = self.lowered(kinds)
        return made.returned(_of_reference(made, given, numbers))

    def bound(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float]]:
        """The arrays and the numbers of a call by their names, with defaults."""
        asked = self.parameters
        arrays = dict(zip(asked.uses, args))
        arrays |= {name: one for name, one in kwargs.items() if name in asked.uses}
        numbers = {**asked.numbers, **{n: x for n, x in kwargs.items() if n not in asked.uses}}
        unknown = [name for name in numbers if name not in asked.numbers]
        missing = [name for name in asked.uses if name not in arrays]
        missing += [name for name, value in numbers.items() if value is None]
        if unknown or missing or len(args) > len(asked.uses):
            wrong = "unknown: " if unknown else "missing: "
            wrong += ", ".join(unknown or missing)
            if len(args) > len(asked.uses):
                wrong = f"{len(args)} arrays are given"
            raise TypeError(
                f"{self.__name__}() takes the arrays {', '.join(asked.uses)} and the numbers "
                f"{', '.join(asked.numbers) or 'none'} by name; {wrong}"
            )
        in_order = {name: arrays[name] for name in asked.uses}
        return in_order, {name: number(value, name) for name, value in numbers.items()}

    def lowered(self, kinds: Mapping[str, ArrayKind]) -> ItemProgram:
        """The program for arrays of these kinds; traced once for each.

        ValueError where these do not fit each other, or the function.
        """
        key = tuple(kinds.items())
        if key not in self._lowered:
            with located(f"{self.__name__!r}", self.function):
                self._lowered[key] = self._traced(kinds)
        return self._lowered[key]

    def _traced(self, kinds: Mapping[str, ArrayKind]) -> ItemProgram:
        uses = self.parameters.uses
        count = self._checked(kinds)
        given = [_value(name, use, kinds[name]) for name, use in uses.items()]
        numbers = {
            name: ItemValue(Number(1.0, WEAK_FLOAT, name)) for name in self.parameters.numbers
        }
        numbers |= {name: ItemValue(Place()) for name in self.parameters.places}
        found = self.function(*given, **numbers)
        is_named = isinstance(found, Mapping)
        returned = found if is_named else {RESULT: found}
        dtype = self.parameters.dtype
        sums = sums_of(returned, dtype, self.text, [*uses.values()])
        nodes = self._results(returned)
        results = {name: stored_as(name, node, count, dtype) for name, node in nodes.items()}
        for name, node in nodes.items():
            if not stores(node.kind, results[name].dtype):
                raise ValueError(
                    f"{name!r} has values of {node.kind.dtype}, and {dtype} is of another kind; "
                    f"convert them, as x.astype({dtype!r})"
                )
        text = self.text or ItemText(ElementText("", "", 0), self.where)
        items = Items(
            self.__name__, text.text.text, text.text.file, text.text.line, text.where,
            fields=tuple((name, name) for name in (*uses, *nodes)),
            reads=tuple((name, (0, 0)) for name in uses), writes=tuple(nodes),
            arguments=tuple(self.parameters.numbers),
            item_uses=tuple(uses.items()),
            kinds=(*kinds.items(), *results.items()), results=tuple(nodes.values()),
            private=text.private, sums=tuple(sums.items()),
        )  # fmt: skip
        defaults = {name: value or 0.0 for name, value in self.parameters.numbers.items()}
        return item_program(items, results, defaults, [*returned] if is_named else [], self.math)

    def _checked(self, kinds: Mapping[str, ArrayKind]) -> int:
        """How many items there are; ValueError where arrays do not agree on that."""
        for name, kind in kinds.items():
            dtype_name(kind.dtype)
            check_field_name(name)
            if not 1 <= len(kind.shape) <= 3 or 0 in kind.shape:
                raise ValueError(
                    f"the array {name!r} has the shape {kind.shape}; functions of items take "
                    f"arrays of 1 to 3 axes with 1 element at least"
                )
            if self.parameters.uses[name] == "column" and len(kind.shape) < 2:
                raise ValueError(
                    f"the array {name!r} has the shape {kind.shape} and no columns; give an array "
                    f"of 2 or 3 axes, or take {name}: ct.Row"
                )
        counts = {
            name: n for name, use in self.parameters.uses.items()
            for n in items_in(kinds[name], use)
        }
        if len({*counts.values()}) > 1:
            listed = ", ".join(f"{name} {n}" for name, n in counts.items())
            raise ValueError(
                f"arrays that are given row by row have unlike numbers of rows: {listed} (of a "
                f"ct.Column, columns); give what is for all items as ct.All"
            )
        return next(iter(counts.values()))

    def _results(self, found: Mapping[str, Any]) -> dict[str, ItemNode]:
        """What is returned for each item; ValueError where that is refused."""
        if not found or any(value is None for value in found.values()):
            raise ValueError("nothing is returned; return a value, or several by name")
        nodes: dict[str, ItemNode] = {}
        for name, value in found.items():
            if name in self.parameters.uses or name in self.parameters.numbers:
                raise ValueError(
                    f"{name!r} is returned, and a parameter is called so, too; rename one of them"
                )
            check_field_name(name)
            if isinstance(value, Accumulated):
                continue
            node = value_of(value).node
            if len(node.axes) > 2:
                raise ValueError(
                    f"{name!r} has {len(node.axes)} axes for each item; return 2 at most"
                )
            nodes[name] = node
        return nodes


def _value(name: str, use: ItemUse, kind: ArrayKind) -> ItemValue:
    """What stands for an array in the function."""
    held, columns = Kind(kind.dtype), tuple(Axis(size) for size in kind.shape[1:])
    rows = Axis(kind.shape[0], name)
    if use == "row":
        return ItemValue(Own(name, columns, held))
    if use == "column":
        return ItemValue(OwnColumn(name, (rows, *columns[1:]), held))
    if use == "all":
        return ItemValue(Whole(name, (rows, *columns), held))
    around = Axis(use.last - use.first + 1)
    return ItemValue(Around(name, use.first, (around, *columns), held))


def _of_reference(made: ItemProgram, given: Arrays, numbers: Mapping[str, float]) -> dict[str, Any]:
    """The results in NumPy, as the reference has them."""
    (stage,) = made.program.stages
    items = items_of(stage)
    assert items is not None, "a program of items"
    arrays = {name: array.reshape(items.kind_of[name].extent) for name, array in given.items()}
    real = given_dtype(stage, made.program.dtypes)
    found = item_values(
        items, range(items.count), lambda name: arrays[name], numbers_given(numbers, real)
    )
    sums = {part: exact_sum(values) for part, values in found.summed.items()}
    return made.summed(sums) | {
        name: values.reshape(kind.shape)
        for (name, kind), values in zip(made.results.items(), found.results, strict=True)
    }


@overload
def each(function: Callable[..., Any]) -> Each: ...
@overload
def each(
    *, math: Math = ..., opencl_c: SourceLike | None = ..., private: Private | None = ...
) -> Callable[[Callable[..., Any]], Each]: ...


def each(
    function: Callable[..., Any] | None = None,
    *,
    math: Math = "strict",
    opencl_c: SourceLike | None = None,
    private: Private | None = None,
) -> Each | Callable[[Callable[..., Any]], Each]:
    """A function of one item that is done for all: `@ct.each`, or `@ct.each(math="fast")`.

    math: as for programs; "strict" gives the same bits on all devices.
    opencl_c: what devices compute instead, statements or the path of a file of them, ending with
        .cl; the function says what is given and returned, and is the reference.
    private: arrays that each item has for itself there, by name: (dtype, number of elements).

    >>> import numpy as np
    >>> @each
    ... def near(x: Row, every: All) -> np.int32:
    ...     return abs(every - x).argmin()
    >>> near(np.float32([1, 5, 7]), np.float32([6, 0])).tolist()
    [1, 0, 0]
    """
    text = None
    if opencl_c is not None:
        found, where = found_text(KernelSource.of(opencl_c))
        text = ItemText(found, where, _private(private or {}))
    elif private is not None:
        raise ValueError("private= is for arrays of OpenCL C; give that as opencl_c=, or leave it")
    if function is None:
        return lambda one: Each(one, math, text)
    return Each(function, math, text)


def _private(given: Private) -> tuple[tuple[str, str, int], ...]:
    found = []
    for name, (dtype, count) in given.items():
        check_identifier(name, "private array")
        found.append((name, dtype_name(dtype), whole(count, f"elements of {name!r}", 1)))
    return tuple(found)
