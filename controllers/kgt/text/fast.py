# SPDX-License-Identifier: MIT
"""Fast arithmetic (`--math fast`): constants divided beforehand, operations contracted.

Strict arithmetic divides a sum by its factor; here each weight is divided by it when the kernel is
written, in the field's dtype, or the sum is multiplied by the reciprocal where that costs no more.
The compiler may then round a product and a sum once instead of twice.  It is a matter of the
expression and of one pragma, so it is the same for all strategies.
"""
from __future__ import annotations

from dataclasses import replace

import numpy as np

from controllers.kgt.text.analysis import used_dtypes
from controllers.kgt.text.literals import has_exact_reciprocal
from controllers.program.expression import Application, Constant, Expression, Read, Symbol, evaluate
from controllers.program.program import FLOATS, Program, Stage

CONTRACTION = {"strict": "OFF", "fast": "ON"}


def stage_of(program: Program, stage: Stage) -> Stage:
    """The stage as it is computed by the arithmetic of `program`: `stage` itself where strict.

    >>> from controllers.program.formula import formula
    >>> from controllers.language.weights import Stencil
    >>> program = Stencil.of("s", [(-1, 1)], [1, 3, 1], 10).program("float64").with_math("fast")
    >>> print(formula(stage_of(program, program.stages[0])))
    u[i] = 0.1 * u[i-1] + 0.3 * u[i] + 0.1 * u[i+1]
    """
    if program.math == "strict":
        return stage
    found = used_dtypes(stage, program.dtypes)
    dtype = found[0]
    if len(found) > 1 or dtype not in FLOATS:   # a constant is not of one dtype for all
        return stage

    def operation(symbol: Symbol, *operands: Expression) -> Expression:
        if symbol == "/" and isinstance(operands[1], Constant):
            return _divided(operands[0], operands[1].value, dtype)
        return Application(symbol, *operands)

    updates = {
        field: evaluate(
            expression, _same, Constant, operation, given=_same, outcome=lambda node, _: node
        )
        for field, expression in stage.updates.items()
    }
    return replace(stage, updates=updates)


def _same(leaf: Expression) -> Expression:
    return leaf


def _divided(expression: Expression, divisor: float, dtype: str) -> Expression:
    """The same value without a division, or with it where a constant would leave the range.

    A division by a power of two is a product anyway.
    """
    if has_exact_reciprocal(divisor, dtype):
        return Application("/", expression, Constant(divisor))
    terms = _terms(expression)
    if all(weight == 1 for _, weight, _ in terms):
        scale = _quotient(1, divisor, dtype)
        if scale is None:
            return Application("/", expression, Constant(divisor))
        return Application("*", Constant(scale), expression)
    total: Expression | None = None
    for symbol, weight, read in terms:
        scaled = _quotient(weight, divisor, dtype)
        if scaled is None:
            return Application("/", expression, Constant(divisor))
        term = read if scaled == 1 else Application("*", Constant(scaled), read)
        total = term if total is None else Application(symbol, total, term)
    assert total is not None, "a sum has terms"
    return total


def _terms(expression: Expression) -> list[tuple[Symbol, float, Read]]:
    """Sign, weight and read of each term of a sum; [] where it is no sum of weighted reads."""
    terms: list[tuple[Symbol, float, Read]] = []
    symbol: Symbol = "+"
    while True:
        rest, last = None, expression
        if isinstance(expression, Application) and expression.symbol in "+-":
            symbol, rest, last = expression.symbol, expression.left, expression.right
        if isinstance(last, Read):
            terms.append((symbol, 1, last))
        elif (
            isinstance(last, Application)
            and last.symbol == "*"
            and isinstance(last.left, Constant)
            and isinstance(last.right, Read)
        ):
            terms.append((symbol, last.left.value, last.right))
        else:
            return []
        if rest is None:
            return terms[::-1]
        expression, symbol = rest, "+"


def _quotient(value: float, divisor: float, dtype: str) -> float | None:
    """`value` / `divisor`, rounded to `dtype`; None where that is not a normal number."""
    scalar = np.dtype(dtype).type
    with np.errstate(all="ignore"):
        rounded = float(scalar(value) / scalar(divisor))
    limits = np.finfo(dtype)
    return rounded if limits.tiny <= abs(rounded) <= limits.max else None
