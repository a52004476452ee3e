# SPDX-License-Identifier: MIT
"""How a function of NumPy's is applied to terms: the row of the table, and conversions before.

Promotion is NumPy 2's, whatever is installed.  Truth values are conditions here, and become numbers
where they meet some.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np

from controllers.array.term import Apply, Number, Term
from controllers.program.dtypes import (
    CONDITION,
    WEAK_FLOAT,
    WEAK_INTEGER,
    Kind,
    check_number,
    signature,
)
from controllers.program.functions import FLOATS, FUNCTIONS, function_of
from controllers.program.stage_check import Math

TRUTH, CONVERTED, TESTED = "truth", "converted", "tested"    # to a number, to a dtype, x != 0
_WEAK: dict[type, Kind] = {float: WEAK_FLOAT, int: WEAK_INTEGER}
_LOGICAL = {
    np.logical_and: np.bitwise_and, np.logical_or: np.bitwise_or, np.logical_xor: np.bitwise_xor,
    np.logical_not: np.invert,
}  # fmt: skip
_OF_TRUTHS = {
    np.add: np.bitwise_or, np.multiply: np.bitwise_and, np.maximum: np.bitwise_or,
    np.minimum: np.bitwise_and, np.not_equal: np.bitwise_xor,
}  # fmt: skip
_AS_BYTES = (np.equal, np.less, np.less_equal, np.greater, np.greater_equal, np.divide)


class Rule(NamedTuple):
    """The row `symbol`, the operands converted as `ways` say; `cast`: the result to a dtype."""

    symbol: str
    kind: Kind
    ways: tuple[tuple[str, str], ...]
    constant: bool      # whether plain numbers are part of the kernel
    dtype: str          # in which it is computed
    cast: str = ""
    is_plain: bool = False      # nothing is converted
    is_bare: bool = False       # ... and nothing is a number


def apply(function: Callable[..., Any], operands: Sequence[Any], math: Math) -> Term:
    """The term that a function makes of terms and of plain numbers."""
    for one in operands:        # 0.0 and -0.0 would be the same
        if type(one) is float or not (type(one) is int or one.lasts):
            return _applied(function, operands, math)
    return _lasting(function, tuple(operands), math)


@lru_cache(maxsize=1024)
def _lasting(function: Callable[..., Any], operands: tuple[Any, ...], math: Math) -> Term:
    """The same, made once: programs use the same ones again and again."""
    term = _applied(function, operands, math)
    term.lasts = True
    return term


def _applied(function: Callable[..., Any], operands: Sequence[Any], math: Math) -> Term:
    kinds = tuple([_WEAK.get(type(one)) or one.kind for one in operands])
    rule = _rule(function, kinds, math)
    if rule.is_bare:
        return Apply(rule.symbol, rule.kind, tuple(operands))
    if rule.constant:
        for one, kind in zip(operands, kinds):
            if kind.weak:
                check_number(one, rule.dtype)
    if rule.is_plain:
        terms = [
            Number(one, kind, constant=rule.constant) if kind.weak else one
            for one, kind in zip(operands, kinds)
        ]
        return Apply(rule.symbol, rule.kind, tuple(terms))
    made = [_operand(*one, rule.constant) for one in zip(operands, kinds, rule.ways)]
    term = Apply(rule.symbol, rule.kind, tuple(made))
    return Apply(rule.cast, Kind(rule.cast), (term,)) if rule.cast else term


@cache
def name_of(dtype: np.dtype[Any]) -> str:
    """The name of a dtype, which NumPy makes anew each time."""
    return str(dtype.name)


def converted(term: Term, dtype: str) -> Term:
    """The term in another dtype."""
    return _lasting_conversion(term, dtype) if term.lasts else _converted(term, dtype)


@lru_cache(maxsize=1024)
def _lasting_conversion(term: Term, dtype: str) -> Term:
    made = _converted(term, dtype)
    made.lasts = True
    return made


def _converted(term: Term, dtype: str) -> Term:
    if dtype == "bool":
        return term if term.kind == CONDITION else _operand(term, term.kind, (TESTED, ""), True)
    if term.kind == CONDITION:
        return truth(term, dtype)
    return term if term.kind.dtype == dtype else Apply(dtype, Kind(dtype), (term,))


def truth(term: Term, dtype: str) -> Term:
    """1 where a condition holds, else 0."""
    one, zero = (Number(value, WEAK_INTEGER, constant=True) for value in (1, 0))
    return Apply(dtype, Kind(dtype), (Apply("where", WEAK_INTEGER, (term, one, zero)),))


def _operand(one: Term | float, kind: Kind, way: tuple[str, str], constant: bool) -> Term:
    what, dtype = way
    if isinstance(one, (int, float)):
        term: Term = Number(one, kind, constant=constant)
    else:
        term = one
    if what == TRUTH:
        return truth(term, dtype)
    if what == TESTED:
        return Apply("!=", CONDITION, (term, Number(0, WEAK_INTEGER, constant=True)))
    return Apply(dtype, Kind(dtype), (term,)) if what == CONVERTED else term


@cache
def is_computed(ufunc: np.ufunc) -> bool:
    """Whether devices compute it; all others NumPy computes, of arrays on every rank."""
    rows = (function_of(ufunc, [are] * ufunc.nin) for are in (False, True))
    return any(row is not None for row in rows)


@lru_cache(maxsize=4096)
def _rule(function: Callable[..., Any], kinds: tuple[Kind, ...], math: Math) -> Rule:
    """TypeError or ValueError where NumPy, or strict arithmetic, has no such function."""
    function, ways = _of_conditions(function, kinds)
    given = tuple(_after(kind, way) for kind, way in zip(kinds, ways))
    row = function_of(function, [kind == CONDITION for kind in given])
    if row is None or len(row.takes) != len(given):
        raise TypeError(
            f"np.{function.__name__} is no function of fields, these are: {' '.join(FUNCTIONS)}; "
            f"take the arrays first, by np.asarray"
        )
    if row.takes != tuple(kind == CONDITION for kind in given):
        raise TypeError(
            f"np.{function.__name__} of truth values is not computed on fields; convert them "
            f"before, as (u > 0).astype('float64')"
        )
    if math == "strict" and not row.strict:
        raise ValueError(
            f"devices round {row.name!r} differently, so strict arithmetic refuses it; "
            f"{row.remedy + ', ' if row.remedy else ''}take the array first, as "
            f"np.{function.__name__}(np.asarray(u)), or the device's own by math='fast'"
        )
    values = [kind for kind in given if kind != CONDITION]
    dtype, result = signature(row, given)
    constant = not any(kind.dtype in FLOATS for kind in values)
    if result.weak:     # numbers alone: of an array they are of a dtype
        return Rule(row.name, result, ways, constant, dtype, result.dtype)
    is_plain = not any(what for what, _ in ways)
    is_bare = is_plain and not any(kind.weak for kind in kinds)
    return Rule(row.name, result, ways, constant, dtype, is_plain=is_plain, is_bare=is_bare)


def _of_conditions(
    function: Callable[..., Any], kinds: tuple[Kind, ...]
) -> tuple[Callable[..., Any], tuple[tuple[str, str], ...]]:
    """The function that is meant, and how truth values and numbers meet before it."""
    keep = tuple(("", "") for _ in kinds)
    n_truths = kinds.count(CONDITION)
    if function in _LOGICAL:
        ways = tuple(("", "") if kind == CONDITION else (TESTED, "") for kind in kinds)
        return _LOGICAL[function], ways
    if function is np.where:
        chosen, (first, *others) = kinds[0], kinds[1:]
        test = ("", "") if chosen == CONDITION else (TESTED, "")
        if first == CONDITION and others == [CONDITION]:
            return np.where, (test, (TRUTH, "uint8"), (TRUTH, "uint8"))
        return np.where, (test, *_numbers(kinds[1:]))
    if n_truths == 0:
        return function, keep
    if n_truths == len(kinds):
        if function in _OF_TRUTHS and len(kinds) == 2:
            return _OF_TRUTHS[function], keep
        if function in _AS_BYTES:
            return function, ((TRUTH, "uint8"),) * len(kinds)
        return function, keep
    if function in (np.bitwise_and, np.bitwise_or, np.bitwise_xor):
        return function, _numbers(kinds)
    return function, _numbers(kinds)


def _numbers(kinds: Sequence[Kind]) -> tuple[tuple[str, str], ...]:
    """Truth values as numbers of the dtype that they get where they meet the others."""
    others = [kind for kind in kinds if kind != CONDITION]
    strong = any(not kind.weak for kind in others)
    weak = "float64" if any(kind.dtype in FLOATS for kind in others) else "int64"
    dtype = "uint8" if strong else weak
    return tuple((TRUTH, dtype) if kind == CONDITION else ("", "") for kind in kinds)


def _after(kind: Kind, way: tuple[str, str]) -> Kind:
    what, dtype = way
    return CONDITION if what == TESTED else Kind(dtype) if what else kind
