# SPDX-License-Identifier: MIT
"""Element functions: what a user wrote in OpenCL C for one cell, and its results in expressions.

What such a function computes is not known; where it reads and what it sets is declared.  An
`Outcome` is one of the values that it sets.  Its operands are all that the function is given, so
that uses and updates of a stage follow from its expressions as they do elsewhere.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from controllers.program.interning import Known
from controllers.program.node import Expression, Given, Read, ordered

INDEX = "kgt_index_"    # and the number of an axis: the argument that is the index of the cell


@dataclass(frozen=True)
class Element:
    """A text of OpenCL C that computes one cell.

    file, line: where the text begins; "" where it lies in no file.  where: that, for people.
    fields: the names of its fields, and which fields of a program these are.
    reads: the names of fields with the offsets at which it may read them.
    writes: the names of the fields that it sets.
    arguments: the names of what it is given beside, scalars and coordinates, in order.
    fixed: whether its text says all offsets as numbers.
    looks: whether its accessors look at what they touch, as the checked mode wants.
    recalls: whether what it sets begins as what lies in memory, so that what it leaves out shows.
    """

    name: str
    text: str
    file: str
    line: int
    where: str
    fields: tuple[tuple[str, str], ...]
    reads: tuple[tuple[str, tuple[int, ...]], ...]
    writes: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    fixed: bool = False
    looks: bool = False
    recalls: bool = False

    @cached_property
    def field_of(self) -> Mapping[str, str]:
        """The fields of the program, by the names that it has for them."""
        return dict(self.fields)

    @cached_property
    def offsets(self) -> Mapping[str, tuple[tuple[int, ...], ...]]:
        """The offsets at which it may read each of its fields, by its names."""
        found: dict[str, list[tuple[int, ...]]] = {}
        for name, offset in self.reads:
            found.setdefault(name, []).append(offset)
        return {name: tuple(offsets) for name, offsets in found.items()}

    @property
    def folded(self) -> Mapping[str, str]:
        """The dtypes of what it makes for folds alone, by name; no field holds that."""
        return {}

    def renamed(self, names: Mapping[str, str]) -> Element:
        """The same on fields of other names."""
        fields = tuple((name, names.get(field, field)) for name, field in self.fields)
        return replace(self, fields=fields)


class Outcome(Given):
    """The value that an element function sets for one of its fields, in one cell.

    arguments: the values of `element.arguments`.
    specification: the same value as an expression, where there is one; the reference computes it.
    """

    __slots__ = ("element", "name", "arguments", "specification")
    _known: ClassVar[Known[Given]] = Known()

    element: Element
    name: str
    arguments: tuple[Expression, ...]
    specification: Expression | None

    def __new__(
        cls,
        element: Element,
        name: str,
        arguments: Sequence[Expression] = (),
        specification: Expression | None = None,
    ) -> Outcome:
        parts = element, name, tuple(arguments), specification
        key = element, name, tuple(map(id, arguments)), id(specification)
        known = cls._known.get(key)
        found = None if known is None else known()
        if found is None:
            new = object.__new__(cls)
            for slot, part in zip(cls.__slots__, parts):
                object.__setattr__(new, slot, part)
            found = cls._known.keep(key, new)
        return found  # type: ignore[return-value]

    @property
    def field(self) -> str:
        """The field of the program whose dtype the value has."""
        return self.element.field_of[self.name]

    @property
    def operands(self) -> tuple[Expression, ...]:  # type: ignore[override]
        """What the function may read, then its arguments."""
        fields = self.element.field_of
        reads = (Read(fields[name], offset) for name, offset in self.element.reads)
        return (*reads, *self.arguments)

    def specified(self) -> Expression:
        """Its specification; ValueError where there is none."""
        if self.specification is None:
            raise ValueError(
                f"{self.element.name!r} ({self.element.where}) is written in OpenCL C, which the "
                f"reference cannot run; give opencl_c(..., reference=) the same as a Python "
                f"function"
            )
        return self.specification

    def __repr__(self) -> str:
        return f"<{self.name} of {self.element.name} in OpenCL C>"


def is_specified(expression: Expression) -> bool:
    """Whether the reference can compute an expression."""
    nodes = ordered(expression)
    return not any(isinstance(one, Outcome) and one.specification is None for one in nodes)
