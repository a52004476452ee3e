# SPDX-License-Identifier: MIT
"""What is computed for an item, as statements: each element of a node where it is needed.

A long axis is walked along by a loop, a short one is written out.  What does not depend on a loop
stands before it; all elements of a reduction of many axes are reduced by one loop.
"""
from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from controllers.kgt.strategies.items.item_fold import Fold, Index, leaf
from controllers.kgt.text.c_lines import indented
from controllers.kgt.text.c_text import Text, plus
from controllers.kgt.text.emitter import statement
from controllers.kgt.text.given import PREFIX
from controllers.kgt.text.lanes import SCALAR
from controllers.kgt.text.values import Values
from controllers.program.dtypes import Kind
from controllers.program.functions import ATOM
from controllers.program.item_node import (
    Along,
    Around,
    Axis,
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
    shape_of,
)
from controllers.program.items import Items

UNROLLED = 16       # elements along an axis that are written out
TOGETHER = 64       # elements of a reduction that one loop reduces
FIRST = "lower_0"   # the parameter that is the number of the first item of the box

_VARIABLE = re.compile(r"\bkgt_[jr]\d+\b")


def rows_name(field: str) -> str:
    """The parameter that says how many rows a whole array has."""
    return f"{field}_rows"


def cell_of(field: str) -> str:
    """The variable that holds the element where the item's row begins."""
    return f"c_{field}"


def row_around(field: str, first: int, step: str) -> str:
    """C text: which row, of those that a launch reads, lies so many rows behind the first one."""
    low = f"{FIRST}{plus(first)}"
    last = f"{rows_name(field)} - 1"
    return f"(clamp({low} + item + {step}, 0L, {last}) - max({low}, 0L))"


@dataclass
class _Scope:
    """The statements of a block, and the values that they have made."""

    lines: list[str] = field(default_factory=list)
    known: dict[tuple[ItemNode, Index], Text] = field(default_factory=dict)


class ItemText:
    """The statements of an item function, as they come about.

    real: the dtype of the numbers that are given with a call.
    """

    def __init__(self, items: Items, real: str) -> None:
        self._items, self._real = items, real
        self.values = Values("ulong", SCALAR, lambda text: text)
        self._scopes = [_Scope()]
        self._depths: dict[str, int] = {}       # of variables in indices
        self._numbers = itertools.count()

    @property
    def lines(self) -> list[str]:
        """All statements."""
        return self._scopes[0].lines

    def store(self, target: str, node: ItemNode, index: Index, dtype: str) -> None:
        """Assign an element of a node to a target, as one of this dtype."""
        text = self.values.stored(self.value(node, index), dtype)
        self.add(statement(target, text.parts))

    @contextmanager
    def loop(self, axis: Axis) -> Iterator[str]:
        """What is written meanwhile is done for each element of an axis, by the index given."""
        variable = self.name("j")
        count = rows_name(self._items.field_of[axis.rows_of]) if axis.rows_of else axis.size
        self._depths[variable] = len(self._scopes)
        self._scopes.append(_Scope())
        yield variable
        inner = self._scopes.pop()
        self.add([
            f"for (long {variable} = 0; {variable} < {count}; ++{variable}) {{",
            *indented(inner.lines), "}",
        ])  # fmt: skip

    def value(self, node: ItemNode, index: Index) -> Text:
        """An element, computed in the outermost block where its index is known."""
        depth = self._depth(index)
        for scope in self._scopes[: depth + 1]:
            if (node, index) in scope.known:
                return scope.known[node, index]
        inner, self._scopes = self._scopes[depth + 1 :], self._scopes[: depth + 1]
        text = self._computed(node, index)
        self._scopes[-1].known[node, index] = text
        self._scopes += inner
        return text

    def _depth(self, index: Index) -> int:
        names = (name for one in index if isinstance(one, str) for name in _VARIABLE.findall(one))
        return max((self._depths[name] for name in names), default=0)

    def _computed(self, node: ItemNode, index: Index) -> Text:
        if isinstance(node, Number):
            if node.name:
                return leaf(PREFIX + node.name, Kind(self._real, weak=True))
            number = self.values.number(node.value)
            return number if node.kind.weak else self.values.converted(number, node.kind.dtype)
        if isinstance(node, Place):
            return leaf(f"({FIRST} + item)", node.kind)
        if isinstance(node, (Own, OwnColumn, Around, Whole)):
            return self._read(node, index)
        if isinstance(node, View):
            return self.value(node.operand, _taken(node, index))
        if isinstance(node, Stacked):
            return self._stacked(node, index)
        if isinstance(node, Gathered):
            n_axes = len(node.rows.axes)
            row = self._row(node, index[:n_axes])
            return self._read(node.operand, (row, *index[n_axes:]))
        if isinstance(node, Reduced):
            self._reduce(node, index)
            return self._scopes[-1].known[node, index]
        texts = [self.value(one, _of_operand(one, index)) for one in node.operands]
        return self.temporary(self.values.operation(node.function.name, texts))

    def _read(self, node: Own | OwnColumn | Around | Whole, index: Index) -> Text:
        name = self._items.field_of[node.field]
        if isinstance(node, Own):
            at, columns = cell_of(name), _flat(index, shape_of(node.axes))
        else:
            start = cell_of(name) if isinstance(node, OwnColumn) else f"{name}_first"
            row = str(index[0])
            if isinstance(node, Around):
                row = row_around(name, node.first, row)
            at = f"{start} + {row} * {name}_pitch_0"
            columns = _flat(index[1:], shape_of(node.axes)[1:])
        return self.temporary(leaf(f"{name}[{at}{columns}]", node.kind))

    def _stacked(self, node: Stacked, index: Index) -> Text:
        if isinstance(index[0], str):
            raise ValueError(
                f"{self._items.name!r} stacks {len(node.operands)} values; stack {UNROLLED} at most"
            )
        made = self.value(node.operands[index[0]], index[1:])
        return self.temporary(self.values.converted(made, node.kind.dtype))

    def _row(self, node: Gathered, index: Index) -> str:
        """A variable: the number of a row, within the array."""
        made = self.values.stored(self.value(node.rows, index), "int64")
        count = rows_name(self._items.field_of[node.operand.field])
        name, whole = self.name("r"), self.name("t")
        self._depths[name] = len(self._scopes) - 1
        self.add(statement(f"const long {whole}", made.parts))
        self.add([
            f"const long {name} = clamp({whole} < 0 ? {whole} + {count} : {whole}, 0L, "
            f"{count} - 1);"
        ])  # fmt: skip
        return name

    def _reduce(self, node: Reduced, index: Index) -> None:
        """All elements of a reduction that one loop gives, this one among them."""
        axes = [
            range(axis.size) if isinstance(at, int) and axis.size <= UNROLLED else (at,)
            for at, axis in zip(index, node.axes, strict=True)
        ]
        wanted = [*itertools.product(*axes)] if prod(map(len, axes)) <= TOGETHER else [index]
        folds = [Fold(self, node, one) for one in wanted]
        axis = node.operand.axes[node.axis]
        if axis.size <= UNROLLED and not axis.rows_of:
            for at in range(axis.size):
                for fold in folds:
                    fold.take(at)
        else:
            with self.loop(axis) as variable:
                for fold in folds:
                    fold.take(variable)
        for one, fold in zip(wanted, folds):
            self._scopes[-1].known[node, one] = fold.result

    def temporary(self, text: Text) -> Text:
        """A variable that holds a value."""
        if text.is_number:
            return text
        name = self.name("t")
        kind = "int" if text.truth else text.type_name
        self.add(statement(f"const {kind} {name}", text.parts))
        return text._replace(parts=(name,), binding=ATOM, n_leaves=1, constant=None)

    def add(self, lines: Sequence[str]) -> None:
        """Further statements of the innermost block."""
        self._scopes[-1].lines += lines

    def name(self, letter: str) -> str:
        """A name for a variable that there is not yet."""
        return f"kgt_{letter}{next(self._numbers)}"


def _taken(node: View, index: Index) -> Index:
    """The index in the operand of a view."""
    return tuple(
        _walked(take, index[take.axis]) if isinstance(take, Along) else take for take in node.takes
    )


def _walked(take: Along, at: int | str) -> int | str:
    if isinstance(at, int):
        return take.start + take.step * at
    if take.step == 1:
        return f"({at}{plus(take.start)})" if take.start else at
    return f"({take.start} + {take.step} * {at})"


def _of_operand(node: ItemNode, index: Index) -> Index:
    """The index in an operand that is broadcast."""
    behind = index[len(index) - len(node.axes) :]
    return tuple(0 if axis.size == 1 else at for axis, at in zip(node.axes, behind, strict=True))


def _flat(index: Index, shape: Sequence[int]) -> str:
    """C text that adds the column of an index."""
    column, text = 0, ""
    for number, at in enumerate(index):
        rest = prod(shape[number + 1 :])
        if isinstance(at, int):
            column += at * rest
        else:
            text += f" + {at} * {rest}" if rest > 1 else f" + {at}"
    return text + plus(column)
