# SPDX-License-Identifier: MIT
"""Stages as people write them: `u[i, j] = (u[i-1, j] + u[i+1, j]) / 2`, a line per update."""
from __future__ import annotations

import textwrap

from controllers.program.expression import (
    Coordinate,
    Expression,
    Given,
    Index,
    Outcome,
    Read,
    Scalar,
    Symbol,
    count,
    evaluate,
)
from controllers.program.functions import ATOM, CHOICE, FUNCTIONS, WIDENED, needed, strength
from controllers.program.program import Stage

AXES = "ijkl"
MAX_OPERATIONS = 100    # of an expression that is printed
WIDTH = 96

_Text = tuple[str, int]     # with how strongly it binds


def formula(stage: Stage) -> str:
    """The stage as assignments; long ones are broken at operators, very long ones cut short.

    What it folds, it folds over all its cells, or those where a condition holds.

    >>> u = Read("u", (0, 0))
    >>> shape = ((0, 0), (0, 1))
    >>> print(formula(Stage("s", {"u": (u - (u + 0.5 * Read("u", (0, 1)))) / 4}, shape)))
    u[i, j] = (u[i, j] - (u[i, j] + 0.5 * u[i, j+1])) / 4
    >>> from controllers.program.fold import Fold
    >>> print(formula(Stage("s", {}, shape, {"top": Fold("max", u * u, u > 0)})))
    top = max(u[i, j] * u[i, j] where u[i, j] > 0)
    """
    here = (0,) * len(stage.offsets)
    each = [_assignment(cell(Read(field, here)), value) for field, value in stage.updates.items()]
    for name, fold in stage.folds.items():
        form = f"{fold.kind}({{}})" if fold.over is None else f"{fold.kind}({{}} where {{}})"
        each.append(_assignment(name, *fold.expressions, form=form))
    return "\n".join(each)


def _assignment(target: str, *values: Expression, form: str = "{}") -> str:
    n_operations = sum(n for symbol, n in count(*values).items() if symbol != WIDENED)
    if n_operations > MAX_OPERATIONS:
        return f"{target} = ... ({n_operations} operations)"
    lines = textwrap.wrap(
        f"{target} = {form.format(*map(expression_text, values))}", WIDTH, subsequent_indent="    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines)


def expression_text(expression: Expression) -> str:
    """The expression with no more parentheses than its order of evaluation needs.

    Where it would be long, operations that are used several times have names.

    >>> x = Read("u", (0,))
    >>> for _ in range(7):
    ...     x = x + x
    >>> expression_text(x)[:53]
    't5 + t5 with t0 = u[i] + u[i], t1 = t0 + t0, t2 = t1 '
    """
    named: list[str] = []

    def name(text: _Text) -> _Text:
        named.append(f"t{len(named)} = {text[0]}")
        return f"t{len(named) - 1}", ATOM

    def outcome(node: Outcome, operands: object) -> _Text:
        return f"{node.name} of {node.element.name}, in OpenCL C ({node.element.where})", CHOICE

    n_written = evaluate(
        expression, lambda read: 0, lambda value: 0, lambda name, *n: (name != WIDENED) + sum(n),
        given=lambda node: 0, outcome=lambda node, operands: 0,
    )
    shared = name if n_written > MAX_OPERATIONS else None
    text, _ = evaluate(
        expression, lambda read: (cell(read), ATOM), _constant, _joined, shared,
        lambda node: (given_text(node), ATOM), outcome,
    )  # fmt: skip
    return f"{text} with {', '.join(named)}" if named else text


def cell(read: Read) -> str:
    """
    >>> cell(Read("u", (-1, 0, 2)))
    'u[i-1, j, k+2]'
    """
    index = (f"{axis}{step:+d}" if step else axis for axis, step in zip(AXES, read.offset))
    return f"{read.field}[{', '.join(index)}]"


def given_text(node: Given) -> str:
    """
    >>> print(given_text(Scalar("dt")), given_text(Index(1, -1)), given_text(Coordinate(0, True)))
    dt (j-1) face(i)
    """
    if isinstance(node, Scalar):
        return node.name
    assert isinstance(node, (Index, Coordinate)), node
    index = f"{AXES[node.axis]}{node.offset:+d}" if node.offset else AXES[node.axis]
    if isinstance(node, Coordinate):
        return f"{'face' if node.half else 'center'}({index})"
    return f"({index})" if node.offset else index


def _constant(value: float) -> _Text:
    text = str(value).removesuffix(".0")
    return text, CHOICE if text.startswith("-") else ATOM


def _joined(symbol: Symbol, *operands: _Text) -> _Text:
    """Left to right without parentheses; a right operand as strong as the operator needs them."""
    function = FUNCTIONS[symbol]
    notation = function.for_people
    texts = (
        text if binding >= needed(function, notation, number) else f"({text})"
        for number, (text, binding) in enumerate(operands)
    )
    return notation.format(*texts), strength(function, notation)
