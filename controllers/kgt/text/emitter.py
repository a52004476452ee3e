# SPDX-License-Identifier: MIT
"""Expressions as OpenCL C: the same operations, in the same order.

C evaluates a + b + c as (a + b) + c, so parentheses appear only where the expression differs from
that.  A long expression is broken before its + and -, and cut into temporaries, which keeps
compilers out of trouble (their parsers recurse) and changes no bits: a temporary has the type of
its value (`controllers.kgt.text.values`).  An operation that is used several times is a temporary
too.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from controllers.kgt.text.analysis import divides as divides
from controllers.kgt.text.analysis import known
from controllers.kgt.text.c_text import Text, plus
from controllers.kgt.text.element import Calls
from controllers.kgt.text.given import given_text
from controllers.kgt.text.lanes import SCALAR, Lanes
from controllers.kgt.text.literals import OPENCL_TYPES as OPENCL_TYPES
from controllers.kgt.text.literals import decimal as decimal
from controllers.kgt.text.literals import has_exact_reciprocal as has_exact_reciprocal
from controllers.kgt.text.literals import literal as literal
from controllers.kgt.text.values import Values
from controllers.program.dtypes import Dtypes, Kind, dtype_of, given_dtype, kind_of_given
from controllers.program.expression import Given, Index, Outcome, Read, Symbol, evaluate_all
from controllers.program.functions import ATOM
from controllers.program.program import Stage

MAX_LEAVES = 64  # reads and constants in one C expression
MAX_LINE = 96
INDENT = "    "


def assignment(
    target: str,
    stage: Stage,
    dtypes: Dtypes,
    read_text: Callable[[Read], str] | None = None,
    lanes: Lanes = SCALAR,
) -> list[str]:
    """The C statements that assign what a stage's one field gets to `target`; see `assignments`.

    >>> from controllers.language.weights import Stencil
    >>> mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
    >>> assignment("u_new[c]", mean.stages[0], "float32")
    ['u_new[c] = (u[c - 1] + u[c + 1]) * 0.5f;']
    """
    return assignments({stage.writes: target}, stage, dtypes, read_text, lanes)


def assignments(
    targets: Mapping[str, str],
    stage: Stage,
    dtypes: Dtypes,
    read_text: Callable[[Read], str] | None = None,
    lanes: Lanes = SCALAR,
    place: str = "item",
    lane: str = "",
    by_value: bool = False,
) -> list[str]:
    """The C statements that assign what each updated field gets to its target, as lines.

    All is computed before the first is assigned, and what several updates share once.
    `read_text` gives the C text of a read, as tight as a name, of the field's type; by default
    field u is read at index `c` (`c_u` where the stage uses several fields) plus the offset, and
    plus `lane` where that is given.  Values are as wide as `lanes`; `place` as in `given_text`.
    by_value: element functions are those of `functions(..., values=True)`.

    >>> u, v = Read("u", (0,)), Read("v", (0,))
    >>> flow = Stage("flow", {"u": u - u * v, "v": v + u * v}, ((0, 0),))
    >>> for line in assignments({"u": "new_u", "v": "new_v"}, flow, "float32"):
    ...     print(line)
    const float t0 = u[c_u] * v[c_v];
    new_u = u[c_u] - t0;
    new_v = v[c_v] + t0;
    >>> mixed = Stage("mixed", {"u": u + v}, ((0, 0),))
    >>> assignments({"u": "new_u"}, mixed, {"u": "float32", "v": "int32"})
    ['new_u = (float)((double)u[c_u] + (double)v[c_v]);']
    """
    added = f" + {lane}" if lane else ""

    def index_of(field: str) -> str:
        return cell_index(field, stage) + added

    def at_index(read: Read) -> str:
        return f"{read.field}[{element(read, cell_index(read.field, stage))}{added}]"

    calls = Calls(stage, dtypes, index_of, by_value)
    return _Statements(stage, dtypes, read_text or at_index, lanes, place, calls).lines(targets)


class _Statements:
    """C lines of a stage, as they come about; its methods are what `evaluate_all` asks."""

    def __init__(
        self, stage: Stage, dtypes: Dtypes, read_text: Callable[[Read], str], lanes: Lanes,
        place: str, calls: Calls,
    ) -> None:  # fmt: skip
        self._stage, self._dtypes, self._lanes, self._place = stage, dtypes, lanes, place
        self._floats = given_dtype(stage, dtypes)
        self._read_text, self._calls = read_text, calls
        self._values = Values(known(stage, dtypes).wide_type, lanes, self._temporary)
        self._lines: list[str] = []
        self._names = (f"t{number}" for number in itertools.count())

    def lines(self, targets: Mapping[str, str]) -> list[str]:
        """All statements, the assignments to the targets last."""
        updates = self._stage.updates
        texts = evaluate_all(
            [*updates.values()], self._read, self._values.number, self._operation,
            self._temporary, self._given, self._outcome,
        )  # fmt: skip
        stored = [
            self._values.stored(text, dtype_of(self._dtypes, field))
            for field, text in zip(updates, texts, strict=True)
        ]
        for field, text in zip(updates, stored):
            self._lines += statement(targets[field], text.parts)
        return self._lines

    def _temporary(self, text: Text) -> Text:
        if text.is_number:
            return text
        name = next(self._names)
        kind = "int" if text.truth else self._lanes.type(text.type_name)
        self._lines += statement(f"const {kind} {name}", text.parts)
        return text._replace(parts=(name,), binding=ATOM, n_leaves=1, constant=None)

    def _operation(self, symbol: Symbol, *operands: Text) -> Text:
        """What is chosen is read before: compilers branch around what reads memory."""
        chosen = operands[1:] if symbol == "where" else ()
        return self._values.operation(symbol, [
            self._temporary(one)
            if one.n_leaves >= MAX_LEAVES or (one in chosen and "[" in "".join(one.parts))
            else one
            for one in operands
        ])  # fmt: skip

    def _read(self, read: Read) -> Text:
        return _leaf(self._read_text(read), Kind(dtype_of(self._dtypes, read.field)))

    def _given(self, node: Given) -> Text:
        text = given_text(node, self._stage, self._place)
        return _leaf(text, kind_of_given(node, self._floats))

    def _outcome(self, node: Outcome, operands: Sequence[Text]) -> Text:
        """What an element function sets; its call is one of the lines."""
        n_reads = len(operands) - len(node.arguments)
        arguments = [
            one if isinstance(argument, Index) else self._values.converted(one, self._floats)
            for argument, one in zip(node.arguments, operands[n_reads:])
        ]
        given = [*operands[:n_reads], *arguments]
        name, made = self._calls.value(node, [" ".join(one.parts) for one in given])
        self._lines += made
        return _leaf(name, Kind(dtype_of(self._dtypes, node.field)))


def _leaf(text: str, kind: Kind) -> Text:
    return Text((text,), ATOM, 1, kind=kind, type_name=OPENCL_TYPES[kind.dtype])


def statement(target: str, parts: Sequence[str]) -> list[str]:
    """C lines that assign an expression, broken between its `parts` where it is long."""
    one_line = f"{target} = {' '.join(parts)};"
    if len(INDENT) + len(one_line) <= MAX_LINE:
        return [one_line]
    return [f"{target} =", *(INDENT + part for part in parts[:-1]), f"{INDENT}{parts[-1]};"]


def used_fields(stage: Stage) -> tuple[str, ...]:
    """The fields a stage reads, in order of first use, then those it writes; each once."""
    return tuple(dict.fromkeys((*stage.fields_read, *stage.stored)))


def cell_index(field: str, stage: Stage) -> str:
    """The variable that holds the element index of the cell in the buffers of `field`."""
    return "c" if used_fields(stage) == (field,) != ("c",) else f"c_{field}"


def element(read: Read, cell: str) -> str:
    """The element index that `read` needs, from the variable `cell`.

    >>> element(Read("u", (-1, 0, 2)), "c")
    'c - u_pitch_0 + 2'
    """
    *outer, last = read.offset
    return cell + _outer(read.field, tuple(outer)) + plus(last)


@lru_cache(maxsize=1024)
def _outer(field: str, steps: tuple[int, ...]) -> str:
    """C text that adds the elements of so many steps along all axes but the last."""
    text = ""
    for axis, step in enumerate(steps):
        if step:
            times = "" if abs(step) == 1 else f"{abs(step)} * "
            text += f" {'-' if step < 0 else '+'} {times}{field}_pitch_{axis}"
    return text
