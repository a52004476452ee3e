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

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod

from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.kgt.text.report import REPORT, UNDECLARED, complain, is_declared, touched
from controllers.program.dtypes import Dtypes, dtype_of, given_dtype
from controllers.program.element import INDEX, Element, Outcome
from controllers.program.stage import Stage

HEAD = "ELEMENT"
INLINE = "static inline __attribute__((always_inline))"
WIDTH = 88      # of lines
MOST_TURNS = 128    # of all loops in each other, which are unrolled
MOST_VALUES = 64    # that a function gets; compilers look through all of them for each neighbour
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PRAGMA = re.compile(r"\b_?pragma\b", re.IGNORECASE)
_LOOP = re.compile(r"\bfor\b")
_SHORT = re.compile(    # a loop over numbers that are said, one after the other
    r"\bfor\s*\(\s*(?:\w+\s+)?(\w+)\s*=\s*([-+]?\d+)\s*;"
    r"\s*\1\s*(<=?)\s*([-+]?\d+)\s*;\s*(?:\+\+\s*\1|\1\s*\+\+|\1\s*\+=\s*1)\s*\)"
)
_HEAD = re.compile(rf"\b{HEAD}\b")


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
            how = _ByValue if values and by_value(element) else _InMemory
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


def has_head(text: str) -> bool:
    """Whether a text holds the head of its function; without, all of it is statements.

    >>> has_head("float f(float a) { return a; } ELEMENT { u_new = f(1); }"), has_head("// ELEMENT")
    (True, False)
    """
    return _HEAD.search(_COMMENT.sub(" ", text)) is not None


def has_short_loops(text: str) -> bool:
    """Whether all loops `for` of a text, and there are some, are over few numbers.

    >>> has_short_loops("for (int i = -1; i <= 1; ++i) n += u(i, 0);")
    True
    >>> has_short_loops("for (int i = 0; i < n; ++i) n += u(i, 0);")
    False
    """
    code = _COMMENT.sub(" ", text)
    found = _SHORT.findall(code)
    turns = prod(max(1, int(last) - int(first) + len(sign) - 1) for _, first, sign, last in found)
    return 0 < len(found) == len(_LOOP.findall(code)) and turns <= MOST_TURNS and not (
        _PRAGMA.search(code)
    )


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


class _InMemory:
    """The text of one element function, which reads fields where these lie.

    called: its name.  types: of the cells of its fields.  real: of scalars and coordinates.
    of_vectors: it is called in a loop over cells, of which compilers make vectors where all that it
    does stands in the loop and there are no loops in it: short ones are unrolled.
    """

    def __init__(
        self, called: str, element: Element, types: Mapping[str, str], n_axes: int, real: str,
        of_vectors: bool,
    ) -> None:  # fmt: skip
        self.called, self.element, self.types, self.n_axes = called, element, types, n_axes
        self._real, self._how = real, f"{INLINE} " if of_vectors else ""
        self._unrolls = of_vectors and has_short_loops(element.text)

    def lines(self) -> list[str]:
        """C lines: the function, and what its accessors call."""
        element = self.element
        macros = self._macros()
        file = (element.file or element.name).replace("\\", "\\\\").replace('"', '\\"')
        own = has_head(element.text)
        return [
            *(line for name in element.offsets for line in self.helper(name)),
            f"// The cell of {element.name}, as its user wrote it.",
            *(f"#define {name} {text}" for name, text in macros.items()),
            *([] if own else [HEAD, "{"]),
            f'#line {element.line} "{file}"',
            *element.text.split("\n"),
            '#line 1 "generated"',
            "}" if own else "}}",
            *(f"#undef {name.partition('(')[0]}" for name in macros),
            "",
        ]

    def _macros(self) -> dict[str, str]:
        element, steps = self.element, ", ".join(f"i{axis}" for axis in range(self.n_axes))
        parameters = " \\\n    ".join(_wrapped(", ".join(self._parameters())))
        return {
            **{f"{name}({steps})": self.accessor(name) for name in element.offsets},
            **{f"{name}_new": f"(*kgt_{name}_new)" for name in element.writes},
            "INDEX(axis)": f"{INDEX}##axis",
            "VALUE": self.types[element.writes[0]],
            **({"for": '_Pragma("unroll") for'} if self._unrolls else {}),
            HEAD: f"{self._how}void {self.called}( \\\n    {parameters}) {{",
        }

    def _parameters(self) -> Iterator[str]:
        element = self.element
        for name in element.offsets:
            yield from self.given(name)
        for name in element.arguments:
            yield f"const {'long' if name.startswith(INDEX) else self._real} {name}"
        if element.looks:
            yield from (f"const long kgt_own_{axis}" for axis in range(self.n_axes))
        yield from (f"{self.types[name]} *kgt_{name}_new" for name in element.writes)

    def given(self, name: str) -> Iterator[str]:
        """The parameters for what it reads of one field."""
        yield f"__global const {self.types[name]} *restrict kgt_{name}"
        yield f"const long kgt_c_{name}"
        yield from (f"const long kgt_{name}_pitch_{axis}" for axis in range(self.n_axes - 1))
        if self.element.looks:
            yield f"__global const long *kgt_report_{name}"

    def accessor(self, name: str) -> str:
        """What stands for a neighbour of one field."""
        steps = [f"(i{axis})" for axis in range(self.n_axes)]
        pitches = [f"kgt_{name}_pitch_{axis}" for axis in range(self.n_axes - 1)]
        if not self.element.looks:
            added = [f"(long){step} * {pitch}" for step, pitch in zip(steps, pitches)] + steps[-1:]
            return f"kgt_{name}[kgt_c_{name} + {' + '.join(added)}]"
        own = [f"kgt_own_{axis}" for axis in range(self.n_axes)]
        at = [f"{cell} + {step}" for cell, step in zip(own, steps)]
        given = ", ".join([f"kgt_report_{name}", f"kgt_c_{name}", *pitches, *at, *own, "__LINE__"])
        return f"kgt_{name}[{self.called}_look_{name}({given})]"

    def helper(self, name: str) -> list[str]:
        """The function that looks whether a neighbour of one field is declared: its element."""
        if not self.element.looks:
            return []
        axes = range(self.n_axes)
        longs = [f"pitch_{axis}" for axis in axes[:-1]] + touched(self.n_axes).split(", ")
        parameters = ", ".join(f"const long {one}" for one in ["c", *longs])
        steps = [f"(i_{axis} - own_{axis}) * pitch_{axis}" for axis in axes[:-1]]
        last = f"i_{self.n_axes - 1} - own_{self.n_axes - 1}"
        return [
            f"long {self.called}_look_{name}(",
            f"    __global const long *report, {parameters}, const int line)",
            "{",
            f"    if ({is_declared(self.element.offsets[name])})",
            f"        return {' + '.join(['c', *steps, last])};",
            f"    cell_complain(report, {UNDECLARED}, {touched(self.n_axes)}, line);",
            "    return c;",
            "}",
        ]


class _ByValue(_InMemory):
    """The text of one element function, which gets all that it may read."""

    def given(self, name: str) -> Iterator[str]:
        """The values of one field, in the order of its offsets."""
        yield from (f"const {self.types[name]} {value}" for value in self._values(name))

    def accessor(self, name: str) -> str:
        """What stands for a neighbour of one field: one of the values."""
        steps = [f"(i{axis})" for axis in range(self.n_axes)]
        values = ", ".join([*steps, *self._values(name)])
        return " \\\n    ".join(_wrapped(f"{self.called}_near_{name}({values})"))

    def helper(self, name: str) -> list[str]:
        """The function that takes one of the values by its offset."""
        kind, offsets = self.types[name], self.element.offsets[name]
        values = self._values(name)
        steps = [f"const int i_{axis}" for axis in range(self.n_axes)]
        head = ", ".join([*steps, *(f"const {kind} {value}" for value in values)])
        tests = (" && ".join(f"i_{axis} == {n}" for axis, n in enumerate(one)) for one in offsets)
        return [
            f"{INLINE} {kind} {self.called}_near_{name}(",
            *(f"    {line}" for line in _wrapped(f"{head})")),
            "{",
            *(f"    if ({test}) return {value};" for test, value in zip(tests, values)),
            "    return 0;   // not declared",
            "}",
        ]

    def _values(self, name: str) -> list[str]:
        return [f"kgt_{number}_{name}" for number in range(len(self.element.offsets[name]))]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


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
        yield from _wrapped(f"{self._names[element]}({', '.join(given)});")

    def _where(self, element: Element) -> Iterator[str]:
        """What says where it may read."""
        for field in map(element.field_of.__getitem__, element.offsets):
            yield from (field, self._index_of(field))
            yield from (f"{field}_pitch_{axis}" for axis in range(len(self._stage.offsets) - 1))
            if element.looks:
                yield f"{REPORT}{field}"
