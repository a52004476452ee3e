# SPDX-License-Identifier: MIT
"""Element functions in kernels: the user's text as a function of one cell, and its calls.

    u(0, 1)     a neighbour of the field u, at the offset
    u_new       what the cell of u becomes, a variable
    Du          a scalar or a coordinate, a parameter
    INDEX(0)    the global index of the cell along an axis
    VALUE       the type of the first field that is set
    ELEMENT     the head of the function, where other functions stand before it

The text is numbered by its own file and lines.  Where a strategy computes cells in vectors, the
function gets what it may read by value, if its text says all offsets as numbers: it then touches no
memory, and which of the values a neighbour is, compilers find.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from controllers.kgt.text.element_function import ByValue, InMemory, wrapped
from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.kgt.text.report import REPORT, complain
from controllers.program.dtypes import Dtypes, dtype_of, given_dtype
from controllers.program.element import INDEX, Element, Outcome
from controllers.program.stage import Stage

MOST_VALUES = 64    # that a function gets; compilers look through all of them for each neighbour


def by_value(element: Element) -> bool:
    """Whether a function can get what it reads by value, and does not look at memory."""
    looks = element.looks or element.recalls
    return element.fixed and not looks and len(element.reads) <= MOST_VALUES


def functions(stage: Stage, dtypes: Dtypes, values: bool = False) -> list[str]:
    """C lines: all element functions that a stage calls, and what they need.

    values: they get what they read by value, those that can.
    """
    n_axes, real = len(stage.offsets), OPENCL_TYPES[given_dtype(stage, dtypes)]
    lines = complain(n_axes) if looks(stage) else []
    made: set[str] = set()
    for element, name in _names(stage, dtypes).items():
        if name not in made:
            made.add(name)
            how = ByValue if values and by_value(element) else InMemory
            lines += how(name, element, _types(element, dtypes), n_axes, real, values).lines()
    return lines


def _names(stage: Stage, dtypes: Dtypes) -> dict[Element, str]:
    """What the functions are called in C; one serves all fields of the same types."""
    called: dict[tuple[object, ...], str] = {}
    found: dict[Element, str] = {}
    for element in stage.elements:
        key = (replace(element, fields=()), *_types(element, dtypes).items())
        number = f"_{len(called)}" if called else ""
        found[element] = called.setdefault(key, f"kgt_cell_{element.name}{number}")
    return found


def _types(element: Element, dtypes: Dtypes) -> dict[str, str]:
    return {name: OPENCL_TYPES[dtype_of(dtypes, field)] for name, field in element.fields}


def looks(stage: Stage) -> bool:
    """Whether accessors of a stage look at what they touch."""
    return any(element.looks for element in stage.elements)


def hint(stage: Stage) -> str:
    """What the texts of a stage may name, for people; "" where there are none."""
    return "\n".join(map(_may_name, stage.elements))


def _may_name(element: Element) -> str:
    steps = ", ".join("0" for _ in element.reads[0][1]) if element.reads else ""
    lists = {
        "fields that reads= names": [f"{name}({steps})" for name in element.offsets],
        "new values that writes= names": [f"{name}_new" for name in element.writes],
        "what scalars= names": [one for one in element.arguments if not one.startswith(INDEX)],
    }
    listed = "; ".join(f"{what}: {', '.join(names) or 'none'}" for what, names in lists.items())
    return f"{element.name} may use the {listed}; INDEX(axis) and VALUE"


class Calls:
    """The calls of element functions in a kernel, each once, where its cells are in C.

    `index_of` gives the element index of the cell in a field's buffer; `values` as in `functions`.
    """

    def __init__(
        self, stage: Stage, dtypes: Dtypes, index_of: Callable[[str], str], values: bool
    ) -> None:
        self._stage, self._dtypes, self._index_of, self._values = stage, dtypes, index_of, values
        self._names = _names(stage, dtypes)
        self._known: dict[tuple[object, ...], int] = {}

    def value(self, node: Outcome, operands: Sequence[str]) -> tuple[str, list[str]]:
        """The variable that holds an outcome, and the lines that make it, where it is new.

        operands: C text of those of the node.
        """
        key = (node.element, *map(id, node.arguments))
        number, lines = self._known.get(key), []
        if number is None:
            number = self._known[key] = len(self._known)
            lines = [*self._call(node.element, number, operands)]
        return f"kgt_{node.name}_{number}", lines

    def _call(self, element: Element, number: int, operands: Sequence[str]) -> Iterator[str]:
        given = [*operands]
        if not (self._values and by_value(element)):
            given = [*self._where(element), *operands[len(element.reads) :]]
        if element.looks:
            given += [f"item_{axis}" for axis in range(len(self._stage.offsets))]
        for name in element.writes:
            variable, field = f"kgt_{name}_{number}", element.field_of[name]
            start = "" if element.looks else " = 0"
            if element.recalls and field in self._stage.updates:
                start = f" = {field}_new[{self._index_of(field)}]"
            yield f"{OPENCL_TYPES[dtype_of(self._dtypes, field)]} {variable}{start};"
            given.append(f"&{variable}")
        yield from wrapped(f"{self._names[element]}({', '.join(given)});")

    def _where(self, element: Element) -> Iterator[str]:
        """What says where it may read."""
        for field in map(element.field_of.__getitem__, element.offsets):
            yield from (field, self._index_of(field))
            yield from (f"{field}_pitch_{axis}" for axis in range(len(self._stage.offsets) - 1))
            if element.looks:
                yield f"{REPORT}{field}"
