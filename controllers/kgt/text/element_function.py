# SPDX-License-Identifier: MIT
"""A user's text as a function of OpenCL C, of fields in memory or of their values around a cell."""
from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping
from math import prod

from controllers.kgt.text.report import UNDECLARED, is_declared, touched
from controllers.program.element import INDEX, Element

HEAD = "ELEMENT"
INLINE = "static inline __attribute__((always_inline))"
WIDTH = 88      # of lines
MOST_TURNS = 128    # of all loops in each other, which are unrolled
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_PRAGMA = re.compile(r"\b_?pragma\b", re.IGNORECASE)
_LOOP = re.compile(r"\bfor\b")
_SHORT = re.compile(    # a loop over numbers that are said, one after the other
    r"\bfor\s*\(\s*(?:\w+\s+)?(\w+)\s*=\s*([-+]?\d+)\s*;"
    r"\s*\1\s*(<=?)\s*([-+]?\d+)\s*;\s*(?:\+\+\s*\1|\1\s*\+\+|\1\s*\+=\s*1)\s*\)"
)
_HEAD = re.compile(rf"\b{HEAD}\b")


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


def wrapped(text: str) -> list[str]:
    """The lines of a long text, broken at blanks."""
    return textwrap.wrap(
        text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


class InMemory:
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
        parameters = " \\\n    ".join(wrapped(", ".join(self._parameters())))
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


class ByValue(InMemory):
    """The text of one element function, which gets all that it may read."""

    def given(self, name: str) -> Iterator[str]:
        """The values of one field, in the order of its offsets."""
        yield from (f"const {self.types[name]} {value}" for value in self._values(name))

    def accessor(self, name: str) -> str:
        """What stands for a neighbour of one field: one of the values."""
        steps = [f"(i{axis})" for axis in range(self.n_axes)]
        values = ", ".join([*steps, *self._values(name)])
        return " \\\n    ".join(wrapped(f"{self.called}_near_{name}({values})"))

    def helper(self, name: str) -> list[str]:
        """The function that takes one of the values by its offset."""
        kind, offsets = self.types[name], self.element.offsets[name]
        values = self._values(name)
        steps = [f"const int i_{axis}" for axis in range(self.n_axes)]
        head = ", ".join([*steps, *(f"const {kind} {value}" for value in values)])
        tests = (" && ".join(f"i_{axis} == {n}" for axis, n in enumerate(one)) for one in offsets)
        return [
            f"{INLINE} {kind} {self.called}_near_{name}(",
            *(f"    {line}" for line in wrapped(f"{head})")),
            "{",
            *(f"    if ({test}) return {value};" for test, value in zip(tests, values)),
            "    return 0;   // not declared",
            "}",
        ]

    def _values(self, name: str) -> list[str]:
        return [f"kgt_{number}_{name}" for number in range(len(self.element.offsets[name]))]
