# SPDX-License-Identifier: MIT
"""One element of a reduction: its variables, and how they take element after element."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias, Union

from controllers.kgt.text.c_text import Text
from controllers.kgt.text.emitter import statement
from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.kgt.text.values import Values
from controllers.program.dtypes import Kind
from controllers.program.functions import ATOM
from controllers.program.item_node import ItemNode, Reduced

Index: TypeAlias = tuple[Union[int, str], ...]      # numbers, and C text of others
_EXTREMES = {
    "float": ("INFINITY", "(-INFINITY)"), "double": ("(double)INFINITY", "(-(double)INFINITY)"),
    "uchar": ("UCHAR_MAX", "0"), "short": ("SHRT_MAX", "SHRT_MIN"),
    "int": ("INT_MAX", "INT_MIN"), "long": ("LONG_MAX", "LONG_MIN"),
}  # fmt: skip


class Statements(Protocol):
    """The statements of which a reduction is part."""

    values: Values

    def name(self, letter: str) -> str: ...
    def add(self, lines: Sequence[str]) -> None: ...
    def value(self, node: ItemNode, index: Index) -> Text: ...
    def temporary(self, text: Text) -> Text: ...


class Fold:
    """The variables of one element of a reduction, which takes element after element."""

    def __init__(self, text: Statements, node: Reduced, index: Index) -> None:
        self._text, self._node, self._index = text, node, index
        self._dtype = node.operand.kind.dtype if node.how != "sum" else node.kind.dtype
        self._type = OPENCL_TYPES[self._dtype]
        self.value, self._place = text.name("s"), text.name("p")
        lines = [f"{self._type} {self.value} = {self._start};"]
        if node.how.startswith("arg"):
            lines.append(f"long {self._place} = 0;")
        text.add(lines)

    @property
    def _start(self) -> str:
        """What leaves the first element as it is."""
        if self._node.how == "sum":     # -0 + x is x, of 0 too
            return {"float": "-0.0f", "double": "-0.0"}.get(self._type, "0")
        return _EXTREMES[self._type][self._node.how.endswith("max")]

    @property
    def result(self) -> Text:
        """What it has come to."""
        name = self._place if self._node.how.startswith("arg") else self.value
        return leaf(name, self._node.kind)

    def take(self, at: int | str) -> None:
        """The element at an index of the axis."""
        text, node, values = self._text, self._node, self._text.values
        index = (*self._index[: node.axis], at, *self._index[node.axis :])
        found = text.value(node.operand, index)
        if node.how.startswith("arg"):
            taken = text.temporary(values.stored(found, self._dtype))
            self._take_place(" ".join(taken.parts), at)
            return
        function = {"sum": "+", "min": "minimum", "max": "maximum"}[node.how]
        so_far = leaf(self.value, Kind(self._dtype))
        made = values.stored(
            values.operation(function, [so_far, values.converted(found, self._dtype)]), self._dtype
        )
        text.add(statement(self.value, made.parts))

    def _take_place(self, found: str, at: int | str) -> None:
        sign, best = "<" if self._node.how.endswith("min") else ">", self.value
        test = f"{found} {sign} {best}"
        if self._type in ("float", "double"):
            test += f" || (isnan({found}) && !isnan({best}))"
        self._text.add([f"if ({test}) {{", f"    {best} = {found};", f"    {self._place} = {at};",
                         "}"])  # fmt: skip


def leaf(text: str, kind: Kind) -> Text:
    """A name, or what binds as tightly, as a value."""
    return Text((text,), ATOM, 1, kind=kind, type_name=OPENCL_TYPES[kind.dtype])
