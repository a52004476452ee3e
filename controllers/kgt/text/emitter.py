# SPDX-License-Identifier: MIT
"""Expressions as OpenCL C: the same operations, in the same order.

C evaluates a + b + c as (a + b) + c, so parentheses appear only where the expression differs from
that.  A long expression is broken before its + and -, and cut into temporaries, which keeps
compilers out of trouble (their parsers recurse) and changes no bits: a temporary has the type of
the arithmetic, which is the field's or, for integers, what `controllers.kgt.text.integer` says.  An
operation that is used several times is a temporary too.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np

from controllers.kgt.text.c_text import Text, converted, joined
from controllers.kgt.text.given import given_text, placed
from controllers.kgt.text.integer import integer_literal, integer_type
from controllers.kgt.text.lanes import SCALAR, Lanes
from controllers.program.expression import (
    Constant,
    Given,
    Index,
    Operation,
    Read,
    Symbol,
    evaluate,
)
from controllers.program.functions import ATOM, FUNCTIONS, Function
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

    def temporary(text: Text) -> Text:
        name = next(names)
        kind = "int" if text.truth else lanes.type(arithmetic)
        kind = "long" if text.whole else kind
        lines.extend(statement(f"const {kind} {name}", text.parts))
        return Text((name,), ATOM, 1, truth=text.truth, whole=text.whole)

    def short(text: Text) -> Text:
        return text if text.n_leaves < MAX_LEAVES else temporary(text)

    def operation(symbol: Symbol, *operands: Text) -> Text:
        divisor = operands[1].constant if symbol == "/" else None
        if divisor is not None and has_exact_reciprocal(divisor, dtype):
            symbol, operands = "*", (operands[0], constant(1 / divisor))
        operands = tuple(map(short, operands))
        if dtype in INTEGERS:
            return _of_integers(symbol, operands, arithmetic, lanes)
        if any(operand.whole for operand in operands):
            return _of_indices(symbol, operands)
        return joined(FUNCTIONS[symbol], FUNCTIONS[symbol].text, operands)

    def constant(value: float) -> Text:
        return _constant(value, dtype, arithmetic, lanes)

    def read(read: Read) -> Text:
        text = Text(((read_text or _element_of(stage))(read),), ATOM, 1)
        return text if promoted or arithmetic == field_type else converted(arithmetic, text, lanes)

    def given(node: Given) -> Text:
        text = Text((given_text(node, stage),), ATOM, 1)
        if dtype in INTEGERS:
            return converted(arithmetic, text, lanes)
        return text._replace(whole=isinstance(node, Index))

    text = evaluate(stage.expression, read, constant, operation, temporary, given)
    if field_type != arithmetic:
        text = converted(field_type, text if lanes.width == 1 else temporary(text), lanes)
    return lines + statement(target, text.parts)


def _element_of(stage: Stage) -> Callable[[Read], str]:
    return lambda read: f"{read.field}[{element(read, cell_index(read.field, stage))}]"


def arithmetic_type(stage: Stage, dtype: str) -> str:
    """The OpenCL C type in which the stage's expression is computed."""
    if dtype in INTEGERS:
        return integer_type(stage.expression, dtype)
    return OPENCL_TYPES[dtype]


def _constant(value: float, dtype: str, arithmetic: str, lanes: Lanes) -> Text:
    if dtype in INTEGERS:
        text = integer_literal(int(value), arithmetic)
        if arithmetic == "ulong" and lanes.width > 1:   # it may be converted, as vectors are
            text = f"({lanes.type(arithmetic)}){text}"
        return Text((text,), ATOM, 1, value)
    rounded = float(np.dtype(dtype).type(value))
    return Text((literal(value, dtype),), ATOM, 1, rounded, number=value)


def _of_indices(symbol: Symbol, operands: Sequence[Text]) -> Text:
    """An operation on whole numbers (long), of which some are constants."""
    whole = [
        one if one.number is None else Text((integer_literal(int(one.number), "long"),), ATOM, 1)
        for one in operands
    ]
    result = _of_integers(symbol, whole, "long", SCALAR)
    return result._replace(whole=not result.truth)


def _of_integers(
    symbol: Symbol, operands: Sequence[Text], arithmetic: str, lanes: Lanes
) -> Text:
    """An operation as if in int64; functions and `ulong` take operands that are turned signed."""
    function = FUNCTIONS[symbol]
    rule = function.integers
    assert rule is not None, f"a program refuses {symbol!r} on integers"
    if symbol == "/" and arithmetic == "ulong":
        return _signed_quotient(operands[0], operands[1], lanes)
    text = rule.text or function.text
    if rule.wraps or (not rule.text and arithmetic != "ulong"):
        return joined(function, text, operands)
    signed = "long" if arithmetic == "ulong" else arithmetic
    result = joined(function, text, [converted(signed, one, lanes) for one in operands])
    return result if result.truth else converted(arithmetic, result, lanes)


def _signed_quotient(left: Text, right: Text, lanes: Lanes) -> Text:
    """The quotient of two signed numbers that are written as `ulong`."""
    if right.constant == -1:
        zero = Text(("0UL",), ATOM, 1)     # wraps, where `long` is undefined
        return joined(FUNCTIONS["-"], FUNCTIONS["-"].text, (zero, left))
    division = FUNCTIONS["/"]
    if right.constant:
        divisor = Text((integer_literal(int(right.constant), "long"),), ATOM, 1)
        signed = joined(division, division.text, (converted("long", left, lanes), divisor))
        return converted("ulong", signed, lanes)
    return joined(division, "kgt_quotient({0},\n{1})", (left, right))


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
    return "c" if used_fields(stage) == (field,) != ("c",) else f"c_{field}"


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
    """Whether a division is left in the generated code, or what else `loose` drivers round so."""
    return bool(loose_functions(stage, dtype))


def loose_functions(stage: Stage, dtype: str) -> tuple[Function, ...]:
    """What the generated code has of functions that are `loose` in the table, in its order."""
    found = {
        node.symbol
        for node in stage.nodes
        if isinstance(node, Operation) and not _is_product(node, dtype)
    }
    return tuple(row for row in FUNCTIONS.values() if row.loose and row.name in found)


def _is_product(node: Operation, dtype: str) -> bool:
    """Whether it is a division that becomes a multiplication."""
    right = node.right
    divisor = right.value if node.symbol == "/" and isinstance(right, Constant) else None
    return divisor is not None and has_exact_reciprocal(divisor, dtype)


def in_vectors(stage: Stage) -> bool:
    """Whether all that the stage computes can be written for vectors of cells."""
    return not placed(stage) and all(FUNCTIONS[symbol].vectors for symbol in stage.operations)


def helpers(stage: Stage, dtype: str) -> list[str]:
    """C lines: the functions that the stage's expression calls, in the order of the table."""
    used = () if dtype in INTEGERS else stage.operations
    texts = [row.helper for row in FUNCTIONS.values() if row.helper and row.name in used]
    return "\n".join([*texts, ""]).replace("VALUE", OPENCL_TYPES[dtype]).splitlines()
