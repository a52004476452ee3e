# SPDX-License-Identifier: MIT
"""Expression trees as OpenCL C: the same tree, operation by operation.

C evaluates a + b + c as (a + b) + c, so parentheses appear only where the tree differs from
that.  A long expression is broken before its + and -, and cut into temporaries, which keeps
compilers out of trouble (their parsers recurse) and changes no bits: a temporary has the type of
the arithmetic, which is the field's or, for integers, what `controllers.kgt.text.integer` says.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from controllers.kgt.text.integer import integer_literal, integer_type
from controllers.kgt.text.lanes import SCALAR, Lanes
from controllers.program.expression import (
    Constant,
    Operation,
    Read,
    Symbol,
    evaluate,
    walk,
)
from controllers.program.program import INTEGERS, Stage

OPENCL_TYPES = {
    "float32": "float",
    "float64": "double",
    "uint8": "uchar",
    "int16": "short",
    "int32": "int",
    "int64": "long",
}
MAX_LEAVES = 64  # reads and constants in one C expression
MAX_LINE = 96
INDENT = "    "
_SUM, _PRODUCT, _ATOM = range(3)  # how tightly the outermost operation of a text binds


@dataclass(frozen=True)
class _Text:
    """C text of a subtree, in parts between which a line may be broken."""

    parts: tuple[str, ...]
    binding: int
    n_leaves: int
    constant: float | None = None


def assignment(
    target: str,
    stage: Stage,
    dtype: str,
    read_text: Callable[[Read], str] | None = None,
    lanes: Lanes = SCALAR,
) -> list[str]:
    """The C statements that assign the value of the stage's expression to `target`, as lines.

    `read_text` gives the C text of a read, as tight as a name, of the field's type; by default
    field u is read at index `c` (`c_u` where the stage uses several fields) plus the offset.
    Values are as wide as `lanes`.

    >>> from controllers.language.weights import Stencil
    >>> mean = Stencil.of("mean", [(-1, 1)], [1, 0, 1], 2).program("float32")
    >>> assignment("u_new[c]", mean.stages[0], "float32")
    ['u_new[c] = (u[c - 1] + u[c + 1]) * 0.5f;']
    """
    lines: list[str] = []
    field_type, arithmetic = OPENCL_TYPES[dtype], arithmetic_type(stage, dtype)
    promoted = arithmetic == "int" and lanes.width == 1     # by C itself
    names = (f"t{number}" for number in itertools.count())

    def temporary(text: _Text) -> _Text:
        name = next(names)
        lines.extend(statement(f"const {lanes.type(arithmetic)} {name}", text.parts))
        return _Text((name,), _ATOM, 1)

    def short(text: _Text) -> _Text:
        return text if text.n_leaves < MAX_LEAVES else temporary(text)

    def operation(symbol: Symbol, left: _Text, right: _Text) -> _Text:
        divisor = right.constant if symbol == "/" else None
        if divisor is not None and has_exact_reciprocal(divisor, dtype):
            symbol, right = "*", constant(1 / divisor)
        left, right = short(left), short(right)
        if symbol == "/" and arithmetic == "ulong":
            return _signed_quotient(left, right, lanes)
        return _joined(symbol, left, right)

    def constant(value: float) -> _Text:
        return _constant(value, dtype, arithmetic, lanes)

    def read(read: Read) -> _Text:
        text = _Text(((read_text or _element_of(stage))(read),), _ATOM, 1)
        return text if promoted or arithmetic == field_type else _converted(arithmetic, text, lanes)

    text = evaluate(stage.expression, read, constant, operation)
    if field_type != arithmetic:
        text = _converted(field_type, text if lanes.width == 1 else temporary(text), lanes)
    return lines + statement(target, text.parts)


def _element_of(stage: Stage) -> Callable[[Read], str]:
    return lambda read: f"{read.field}[{element(read, cell_index(read.field, stage))}]"


def arithmetic_type(stage: Stage, dtype: str) -> str:
    """The OpenCL C type in which the stage's expression is computed."""
    if dtype in INTEGERS:
        return integer_type(stage.expression, dtype)
    return OPENCL_TYPES[dtype]


def _constant(value: float, dtype: str, arithmetic: str, lanes: Lanes) -> _Text:
    if dtype in INTEGERS:
        text = integer_literal(int(value), arithmetic)
        if arithmetic == "ulong" and lanes.width > 1:   # it may be converted, as vectors are
            text = f"({lanes.type(arithmetic)}){text}"
        return _Text((text,), _ATOM, 1, value)
    return _Text((literal(value, dtype),), _ATOM, 1, float(np.dtype(dtype).type(value)))


def _joined(symbol: Symbol, left: _Text, right: _Text) -> _Text:
    binding = _SUM if symbol in "+-" else _PRODUCT
    before = left.parts if left.binding >= binding else _parenthesised(left.parts)
    after = right.parts if right.binding > binding else _parenthesised(right.parts)
    if binding == _SUM:
        parts = (*before, f"{symbol} {after[0]}", *after[1:])
    else:
        parts = (*before[:-1], f"{before[-1]} {symbol} {after[0]}", *after[1:])
    return _Text(parts, binding, left.n_leaves + right.n_leaves)


def _converted(type_name: str, text: _Text, lanes: Lanes) -> _Text:
    before, after = lanes.conversion(type_name)
    parts = text.parts if after or text.binding == _ATOM else _parenthesised(text.parts)
    parts = (before + parts[0], *parts[1:])
    return _Text((*parts[:-1], parts[-1] + after), _ATOM, text.n_leaves)


def _signed_quotient(left: _Text, right: _Text, lanes: Lanes) -> _Text:
    """The quotient of two signed numbers that are written as `ulong`."""
    if right.constant == -1:
        return _joined("-", _Text(("0UL",), _ATOM, 1), left)    # wraps, where `long` is undefined
    if right.constant:
        divisor = _Text((integer_literal(int(right.constant), "long"),), _ATOM, 1)
        return _converted("ulong", _joined("/", _converted("long", left, lanes), divisor), lanes)
    parts = (*left.parts[:-1], f"{left.parts[-1]},", *right.parts[:-1], f"{right.parts[-1]})")
    return _Text((f"kgt_quotient({parts[0]}", *parts[1:]), _ATOM, left.n_leaves + right.n_leaves)


def _parenthesised(parts: tuple[str, ...]) -> tuple[str, ...]:
    opened = (f"({parts[0]}", *parts[1:])
    return (*opened[:-1], f"{opened[-1]})")


def statement(target: str, parts: Sequence[str]) -> list[str]:
    """C lines that assign an expression, broken between its `parts` where it is long."""
    one_line = f"{target} = {' '.join(parts)};"
    if len(INDENT) + len(one_line) <= MAX_LINE:
        return [one_line]
    return [f"{target} =", *(INDENT + part for part in parts[:-1]), f"{INDENT}{parts[-1]};"]


def used_fields(stage: Stage) -> tuple[str, ...]:
    """The fields a stage reads, in order of first use, then the one it writes; each once."""
    return tuple(dict.fromkeys((*stage.fields_read, stage.writes)))


def cell_index(field: str, stage: Stage) -> str:
    """The variable that holds the element index of the cell in the buffers of `field`."""
    return "c" if len(used_fields(stage)) == 1 else f"c_{field}"


def element(read: Read, cell: str) -> str:
    """The element index that `read` needs, from the variable `cell`.

    >>> element(Read("u", (-1, 0, 2)), "c")
    'c - u_pitch_0 + 2'
    """
    text = cell
    for axis, step in enumerate(read.offset):
        last = axis == len(read.offset) - 1
        pitch = f"{read.field}_pitch_{axis}"
        if step:
            length = (
                str(abs(step)) if last else pitch if abs(step) == 1 else f"{abs(step)} * {pitch}"
            )
            text += f" {'-' if step < 0 else '+'} {length}"
    return text


def literal(value: float, dtype: str) -> str:
    """C text of `value` rounded to `dtype`: the shortest decimal that is parsed back to it exactly.

    >>> literal(0.1, "float32"), literal(-2, "float64"), literal(1e-45, "float32")
    ('0.1f', '(-2.0)', '1e-45f')
    """
    text = decimal(value, dtype) + ("f" if dtype == "float32" else "")
    return f"({text})" if text.startswith("-") else text


def decimal(value: float, dtype: str) -> str:
    """The shortest decimal that is parsed back to `value` rounded to `dtype`; with a . or an e.

    Of an integer dtype, the digits alone.

    >>> decimal(1 / 3, "float32"), decimal(1e30, "float64")
    ('0.33333334', '1e+30')
    """
    if dtype in INTEGERS:
        return str(int(value))
    rounded = np.dtype(dtype).type(value)
    if rounded == 0 or 1e-4 <= abs(rounded) < 1e7:
        return np.format_float_positional(rounded, unique=True, trim="0")
    return np.format_float_scientific(rounded, unique=True, trim="-")


def has_exact_reciprocal(value: float, dtype: str) -> bool:
    """Whether x / value and x * (1 / value) have the same bits for all x of `dtype`.

    That is so for powers of two; those whose reciprocal is not a normal number are left out.
    Never for integers.

    >>> [has_exact_reciprocal(value, "float32") for value in (4.0, -0.5, 3.0, 2.0**127)]
    [True, True, False, False]
    """
    if dtype in INTEGERS:
        return False
    smallest = float(np.finfo(dtype).tiny)
    rounded = abs(float(np.dtype(dtype).type(value)))
    return math.frexp(rounded)[0] == 0.5 and smallest <= rounded <= 1 / smallest


def divides(stage: Stage, dtype: str) -> bool:
    """Whether a division is left in the generated code."""
    operations = (node for node in walk(stage.expression) if isinstance(node, Operation))
    return any(
        node.symbol == "/"
        and not (isinstance(node.right, Constant) and has_exact_reciprocal(node.right.value, dtype))
        for node in operations
    )
