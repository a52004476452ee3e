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
) -> list[str]:
    """The C statements that assign what each updated field gets to its target, as lines.

    All is computed before the first is assigned, and what several updates share once.
    `read_text` gives the C text of a read, as tight as a name, of the field's type; by default
    field u is read at index `c` (`c_u` where the stage uses several fields) plus the offset.
    Values are as wide as `lanes`; `place` as in `given_text`.

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
    lines: list[str] = []
    expressions, floats = [*stage.updates.values()], given_dtype(stage, dtypes)
    names = (f"t{number}" for number in itertools.count())

    def temporary(text: Text) -> Text:
        if text.is_number:
            return text
        name = next(names)
        kind = "int" if text.truth else lanes.type(text.type_name)
        lines.extend(statement(f"const {kind} {name}", text.parts))
        return text._replace(parts=(name,), binding=ATOM, n_leaves=1, constant=None)

    values = Values(known(stage, dtypes).wide_type, lanes, temporary)

    def short(text: Text) -> Text:
        return text if text.n_leaves < MAX_LEAVES else temporary(text)

    def operation(symbol: Symbol, *operands: Text) -> Text:
        return values.operation(symbol, [short(operand) for operand in operands])

    def read(read: Read) -> Text:
        dtype = dtype_of(dtypes, read.field)
        text = (read_text or _element_of(stage))(read)
        return Text((text,), ATOM, 1, kind=Kind(dtype), type_name=OPENCL_TYPES[dtype])

    def given(node: Given) -> Text:
        kind = kind_of_given(node, floats)
        text = given_text(node, stage, place)
        return Text((text,), ATOM, 1, kind=kind, type_name=OPENCL_TYPES[kind.dtype])

    outcome = _outcomes(stage, dtypes, values, lines)
    texts = evaluate_all(expressions, read, values.number, operation, temporary, given, outcome)
    stored = [
        values.stored(text, dtype_of(dtypes, field))
        for field, text in zip(stage.updates, texts, strict=True)
    ]
    for field, text in zip(stage.updates, stored):
        lines += statement(targets[field], text.parts)
    return lines


def _outcomes(
    stage: Stage, dtypes: Dtypes, values: Values, lines: list[str]
) -> Callable[[Outcome, Sequence[Text]], Text]:
    """The texts of what element functions set; the calls of these are added to `lines`."""
    calls = Calls(stage, dtypes, lambda field: cell_index(field, stage))
    floats = given_dtype(stage, dtypes)

    def outcome(node: Outcome, operands: Sequence[Text]) -> Text:
        arguments = operands[len(operands) - len(node.arguments) :]
        given = [one if isinstance(argument, Index) else values.converted(one, floats)
                 for argument, one in zip(node.arguments, arguments)]  # fmt: skip
        name, made = calls.value(node, [" ".join(one.parts) for one in given])
        lines.extend(made)
        dtype = dtype_of(dtypes, node.field)
        return Text((name,), ATOM, 1, kind=Kind(dtype), type_name=OPENCL_TYPES[dtype])

    return outcome


def _element_of(stage: Stage) -> Callable[[Read], str]:
    return lambda read: f"{read.field}[{element(read, cell_index(read.field, stage))}]"


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
