# SPDX-License-Identifier: MIT
"""In which dtype each operation of an expression is computed: NumPy 2's promotion.

What fields hold is strong; numbers are weak: they take the dtype of what they meet, or float64 if a
float meets integers.  Among themselves constants are computed in int64 or float64, and rounded once
where they meet a field; indices are int64, scalars and coordinates floats (`given_dtype`).  The
reference and the generator ask `signature` alike, so this holds with any version of NumPy.
"""
from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias, Union

import numpy as np

from controllers.program.expression import Expression, Given, Index, Outcome, Symbol, evaluate_all
from controllers.program.function import BY_SIZE, Function
from controllers.program.functions import FLOATS, FUNCTIONS, INTEGERS
from controllers.program.stage import Stage

Dtypes: TypeAlias = Union[str, Mapping[str, str]]       # of all fields, or of each
_FLOAT_OF = {"int16": "float32", "int32": "float64", "int64": "float64"}     # uint8: float16


class Kind(NamedTuple):
    """What a value is: of a field's dtype; a condition; weak: a number, in int64 or a float."""

    dtype: str
    weak: bool = False

    @property
    def whole(self) -> bool:
        """Whether it is an integer."""
        return self.dtype in INTEGERS


CONDITION = Kind("bool")
WEAK_INTEGER, WEAK_FLOAT = Kind("int64", weak=True), Kind("float64", weak=True)


class Signature(NamedTuple):
    """The dtype in which a function takes its values, and what its result is."""

    dtype: str
    result: Kind


def dtype_of(dtypes: Dtypes, field: str) -> str:
    """That of one field."""
    return dtypes if isinstance(dtypes, str) else dtypes[field]


def dtype_of_outcome(dtypes: Dtypes, node: Outcome) -> str:
    """That of what an element function sets: of its field, or of what it makes for folds alone."""
    return node.element.folded.get(node.name) or dtype_of(dtypes, node.field)


def given_dtype(stage: Stage, dtypes: Dtypes) -> str:
    """That of the scalars and coordinates of a stage: float32 where it computes in that alone.

    Elsewhere they are float64, and rounded once to the dtype of what they meet.

    >>> from controllers.program.expression import Read
    >>> stage = Stage("s", {"u": Read("u", (0,)) + Read("n", (0,))}, ((0, 0),))
    >>> given_dtype(stage, "float32"), given_dtype(stage, {"u": "float32", "n": "int32"})
    ('float32', 'float64')
    """
    found = {dtype_of(dtypes, field) for field in (*stage.fields_read, *stage.stored)}
    found |= {FUNCTIONS[symbol].converts for symbol in stage.operations} - {""}
    return "float32" if found == {"float32"} else "float64"


def kind_of_given(node: Given, floats: str) -> Kind:
    """Of an index, or of a scalar or a coordinate in a dtype."""
    return WEAK_INTEGER if isinstance(node, Index) else Kind(floats, weak=True)


def kind_of_number(value: float) -> Kind:
    """Of a plain number."""
    return WEAK_INTEGER if isinstance(value, int) else WEAK_FLOAT


def promoted(*kinds: Kind) -> Kind:
    """What values become that meet each other.

    >>> promoted(Kind("int32"), Kind("float32")).dtype, promoted(Kind("int16"), WEAK_FLOAT).dtype
    ('float64', 'float64')
    >>> promoted(Kind("float32"), WEAK_FLOAT), promoted(WEAK_INTEGER, WEAK_FLOAT).weak
    (Kind(dtype='float32', weak=False), True)
    """
    if kinds.count(kinds[0]) == len(kinds):     # mostly
        return kinds[0]
    strong = [kind.dtype for kind in kinds if not kind.weak]
    if not strong:
        floats = [kind for kind in kinds if not kind.whole]
        return next((kind for kind in floats if kind != WEAK_FLOAT), (*floats, WEAK_INTEGER)[0])
    dtype = strong[0]
    for other in strong[1:]:
        if other != dtype:
            dtype = np.promote_types(dtype, other).name
    real = any(kind.weak and not kind.whole for kind in kinds)
    return Kind("float64" if dtype in INTEGERS and real else dtype)


def signature(function: Function, kinds: Sequence[Kind]) -> Signature:
    """How `function` is computed on operands of these kinds; ValueError where it is not for them.

    >>> signature(FUNCTIONS["/"], [Kind("uint8"), WEAK_INTEGER])
    Signature(dtype='float64', result=Kind(dtype='float64', weak=False))
    >>> signature(FUNCTIONS["<"], [Kind("uint8"), WEAK_INTEGER])
    Signature(dtype='int64', result=Kind(dtype='bool', weak=False))
    """
    return _signature(function, *kinds)


@lru_cache(maxsize=1024)    # of many operations, most are alike
def _signature(function: Function, *kinds: Kind) -> Signature:
    values = [kind for kind, condition in zip(kinds, function.takes) if not condition]
    if not values:
        return Signature(CONDITION.dtype, CONDITION)
    common = promoted(*values)
    if function.converts:
        return Signature(common.dtype, Kind(function.converts))
    dtype = _computed_in(function, common)
    if function.gives_condition:
        numbers = any(kind.weak for kind in values)
        return Signature("int64" if dtype in INTEGERS and numbers else dtype, CONDITION)
    return Signature(dtype, Kind(dtype, common.weak))


def _computed_in(function: Function, common: Kind) -> str:
    """The dtype of the arithmetic, on values that met in `common`."""
    dtype = common.dtype
    if not common.whole:
        if function.floats:
            return dtype
        raise ValueError(
            f"{function.name!r} is for integers, got {dtype}; convert to one, as x.astype('int32')"
        )
    if function.of_integers == BY_SIZE:
        if dtype in _FLOAT_OF:
            return _FLOAT_OF[dtype]
        raise ValueError(
            f"{function.name!r} of {dtype} is a float16, which fields do not hold; convert to "
            f"{' or '.join(FLOATS)} before, as x.astype('float32')"
        )
    if function.integers is None and not function.of_integers:
        raise ValueError(
            f"{function.name!r} is for {' and '.join(FLOATS)}, got {dtype}; "
            f"{function.remedy or 'convert to one of these'}"
        )
    return function.of_integers or dtype


def stores(kind: Kind, dtype: str) -> bool:
    """Whether a field of `dtype` takes such values: NumPy's casts of the same kind.

    >>> stores(Kind("int64"), "int16"), stores(Kind("float64"), "int32")
    (True, False)
    """
    if kind.weak:
        return kind.whole or dtype in FLOATS
    return bool(np.can_cast(kind.dtype, dtype, "same_kind"))


@dataclass(frozen=True)
class Value:
    """What is known of a value before a run: its kind, and the number where it is one."""

    kind: Kind
    number: float | None = None


class Applied(NamedTuple):
    """An operation: on which values, in which dtype it is computed, and what it gives."""

    function: Function
    operands: tuple[Value, ...]
    dtype: str
    result: Kind


def applied(
    expressions: Sequence[Expression], dtypes: Dtypes, floats: str = "float64"
) -> tuple[Sequence[Applied], Sequence[Value]]:
    """All operations of expressions over fields of these dtypes, each once; and what they give.

    What is computed of numbers alone is left out.  floats: the dtype of scalars and coordinates.
    ValueError where an operation is not for what it is given.
    """
    held = dtypes if isinstance(dtypes, str) else tuple(dtypes.items())
    return _all_applied(tuple(expressions), held, floats)


@lru_cache(maxsize=16)      # a program asks, and then its generator
def _all_applied(
    expressions: tuple[Expression, ...], held: str | tuple[tuple[str, str], ...], floats: str
) -> tuple[Sequence[Applied], Sequence[Value]]:
    dtypes = held if isinstance(held, str) else dict(held)
    found: list[Applied] = []

    def operation(symbol: Symbol, *operands: Value) -> Value:
        function = FUNCTIONS[symbol]
        dtype, result = signature(function, [operand.kind for operand in operands])
        numbers = [operand.number for operand in operands]
        if result.weak and None not in numbers:
            return Value(result, computed_number(function, dtype, numbers))
        for number in numbers:
            if number is not None:
                check_number(number, dtype)
        found.append(Applied(function, operands, dtype, result))
        return Value(result)

    def outcome(node: Outcome, operands: object) -> Value:
        dtype = dtype_of_outcome(dtypes, node)
        if node.specification is not None:
            (right,) = applied((node.specification,), dtypes, floats)[1]
            if right.kind.dtype != dtype and not (right.kind.weak and stores(right.kind, dtype)):
                raise ValueError(
                    f"the reference of {node.element.name!r} ({node.element.where}) gives "
                    f"{node.name!r} values of {right.kind.dtype}, and the field holds {dtype}; "
                    f"convert them, as x.astype({dtype!r})"
                )
        return Value(Kind(dtype))

    values = evaluate_all(
        expressions,
        lambda read: Value(Kind(dtype_of(dtypes, read.field))),
        lambda number: Value(kind_of_number(number), number),
        operation,
        given=lambda node: Value(kind_of_given(node, floats)),
        outcome=outcome,
    )
    return found, values


def computed_number(
    function: Function, dtype: str, numbers: Sequence[float | None]
) -> float:
    """What a function gives for plain numbers; ValueError where that is no finite number."""
    scalar = np.dtype(dtype).type
    for number in numbers:
        check_number(number or 0, dtype)
    with np.errstate(all="ignore"):
        result = function.computed(whole=dtype in INTEGERS)(*map(scalar, numbers))
    if not math.isfinite(result):
        raise ValueError(
            f"{function.name!r} of the constants {', '.join(map(str, numbers))} is {result}; "
            f"replace it by a number"
        )
    return int(result) if dtype in INTEGERS else float(result)


def check_number(number: float, dtype: str) -> None:
    """ValueError where a plain number cannot be one of `dtype`, whatever it is rounded to."""
    low, high = _limits(dtype)
    if not low <= number <= high:
        shown = f"{np.finfo(dtype).max:.7g}" if dtype in FLOATS else f"{low} to {high}"
        remedy = "use a wider dtype or scale it"
        if dtype in INTEGERS:
            remedy = "convert what it meets to a wider dtype"
        raise ValueError(
            f"the constant {number} is beyond the range of {dtype}, {shown}; {remedy}"
        )


@lru_cache(maxsize=16)
def _limits(dtype: str) -> tuple[int, int]:
    """The least and the largest finite number."""
    info = np.iinfo(dtype) if dtype in INTEGERS else np.finfo(dtype)
    return int(info.min), int(info.max)
