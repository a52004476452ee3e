# SPDX-License-Identifier: MIT
"""Element functions in kernels: the user's text as a function of one cell, and its calls.

    u(0, 1)     a neighbour of the field u, at the offset
    u_new       what the cell of u becomes, a variable
    Du          a scalar or a coordinate, a parameter
    INDEX(0)    the global index of the cell along an axis
    VALUE       the type of the first field that is set
    ELEMENT     the head of the function, where other functions stand before it

The text is numbered by its own file and lines.
"""
from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from controllers.kgt.text.literals import OPENCL_TYPES
from controllers.kgt.text.report import REPORT, UNDECLARED, complain, is_declared, touched
from controllers.program.dtypes import Dtypes, dtype_of, given_dtype
from controllers.program.element import INDEX, Element, Outcome
from controllers.program.stage import Stage

HEAD = "ELEMENT"
WIDTH = 88      # of lines
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_HEAD = re.compile(rf"\b{HEAD}\b")


def functions(stage: Stage, dtypes: Dtypes) -> list[str]:
    """C lines: all element functions that a stage calls, and what they need."""
    n_axes, real = len(stage.offsets), OPENCL_TYPES[given_dtype(stage, dtypes)]
    lines = complain(n_axes) if looks(stage) else []
    made: set[str] = set()
    for element, name in _names(stage, dtypes).items():
        if name not in made:
            made.add(name)
            lines += _function(name, element, _types(element, dtypes), n_axes, real)
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


def _function(
    called: str, element: Element, types: Mapping[str, str], n_axes: int, real: str
) -> list[str]:
    """C lines: one element function."""
    parameters = " \\\n    ".join(_wrapped(", ".join(_parameters(element, types, n_axes, real))))
    steps = ", ".join(f"i{axis}" for axis in range(n_axes))
    fields = {f"{n}({steps})": _accessor(called, element, n, n_axes) for n in element.offsets}
    macros = {
        **fields,
        **{f"{name}_new": f"(*kgt_{name}_new)" for name in element.writes},
        "INDEX(axis)": f"{INDEX}##axis",
        "VALUE": types[element.writes[0]],
        HEAD: f"void {called}( \\\n    {parameters}) {{",
    }
    file = (element.file or element.name).replace("\\", "\\\\").replace('"', '\\"')
    own = has_head(element.text)
    looked = element.offsets if element.looks else ()
    return [
        *(line for name in looked for line in _look(called, element, name, n_axes)),
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


def _parameters(
    element: Element, types: Mapping[str, str], n_axes: int, real: str
) -> Iterator[str]:
    for name in element.offsets:
        yield f"__global const {types[name]} *restrict kgt_{name}"
        yield f"const long kgt_c_{name}"
        yield from (f"const long kgt_{name}_pitch_{axis}" for axis in range(n_axes - 1))
        if element.looks:
            yield f"__global const long *kgt_report_{name}"
    for name in element.arguments:
        yield f"const {'long' if name.startswith(INDEX) else real} {name}"
    if element.looks:
        yield from (f"const long kgt_own_{axis}" for axis in range(n_axes))
    yield from (f"{types[name]} *kgt_{name}_new" for name in element.writes)


def _accessor(called: str, element: Element, name: str, n_axes: int) -> str:
    """What stands for a neighbour of one field."""
    steps = [f"(i{axis})" for axis in range(n_axes)]
    pitches = [f"kgt_{name}_pitch_{axis}" for axis in range(n_axes - 1)]
    if not element.looks:
        added = [f"(long){step} * {pitch}" for step, pitch in zip(steps, pitches)] + steps[-1:]
        return f"kgt_{name}[kgt_c_{name} + {' + '.join(added)}]"
    own = [f"kgt_own_{axis}" for axis in range(n_axes)]
    at = [f"{cell} + {step}" for cell, step in zip(own, steps)]
    given = ", ".join([f"kgt_report_{name}", f"kgt_c_{name}", *pitches, *at, *own, "__LINE__"])
    return f"kgt_{name}[{called}_look_{name}({given})]"


def _look(called: str, element: Element, name: str, n_axes: int) -> list[str]:
    """The function that looks whether a neighbour of one field is declared: its element."""
    axes = range(n_axes)
    longs = [f"pitch_{axis}" for axis in axes[:-1]] + touched(n_axes).split(", ")
    parameters = ", ".join(f"const long {one}" for one in ["c", *longs])
    steps = [f"(i_{axis} - own_{axis}) * pitch_{axis}" for axis in axes[:-1]]
    last = f"i_{n_axes - 1} - own_{n_axes - 1}"
    return [
        f"long {called}_look_{name}(",
        f"    __global const long *report, {parameters}, const int line)",
        "{",
        f"    if ({is_declared(element.offsets[name])})",
        f"        return {' + '.join(['c', *steps, last])};",
        f"    cell_complain(report, {UNDECLARED}, {touched(n_axes)}, line);",
        "    return c;",
        "}",
    ]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


class Calls:
    """The calls of element functions in a kernel, each once, where its cells are in C.

    `index_of` gives the variable that holds the element index of the cell in a field's buffer.
    """

    def __init__(self, stage: Stage, dtypes: Dtypes, index_of: Callable[[str], str]) -> None:
        self._stage, self._dtypes, self._index_of = stage, dtypes, index_of
        self._names = _names(stage, dtypes)
        self._known: dict[tuple[object, ...], int] = {}

    def value(self, node: Outcome, arguments: Sequence[str]) -> tuple[str, list[str]]:
        """The variable that holds an outcome, and the lines that make it, where it is new."""
        key = (node.element, *map(id, node.arguments))
        number, lines = self._known.get(key), []
        if number is None:
            number = self._known[key] = len(self._known)
            lines = [*self._call(node.element, number, arguments)]
        return f"kgt_{node.name}_{number}", lines

    def _call(self, element: Element, number: int, arguments: Sequence[str]) -> Iterator[str]:
        n_axes = len(self._stage.offsets)
        given: list[str] = []
        for name in element.offsets:
            field = element.field_of[name]
            given += [field, self._index_of(field)]
            given += [f"{field}_pitch_{axis}" for axis in range(n_axes - 1)]
            given += [f"{REPORT}{field}"] if element.looks else []
        given += arguments
        given += [f"item_{axis}" for axis in range(n_axes)] if element.looks else []
        for name in element.writes:
            variable, field = f"kgt_{name}_{number}", element.field_of[name]
            start = "" if element.looks else " = 0"
            if element.recalls and field in self._stage.updates:
                start = f" = {field}_new[{self._index_of(field)}]"
            yield f"{OPENCL_TYPES[dtype_of(self._dtypes, field)]} {variable}{start};"
            given.append(f"&{variable}")
        yield from _wrapped(f"{self._names[element]}({', '.join(given)});")
