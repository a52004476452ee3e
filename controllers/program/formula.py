# SPDX-License-Identifier: MIT
"""Stages as people write them: `u[i, j] = (u[i-1, j] + u[i+1, j]) / 2`."""
from __future__ import annotations

import textwrap

from controllers.program.expression import Constant, Expression, Read, Symbol, count, evaluate
from controllers.program.program import Stage

AXES = "ijkl"
MAX_OPERATIONS = 100    # of an expression that is printed
WIDTH = 96
_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2}
_LEAF = 3

_Text = tuple[str, int]     # with how strongly it binds


def formula(stage: Stage) -> str:
    """The stage as an assignment; long ones are broken at operators, very long ones cut short.

    >>> u = Read("u", (0, 0))
    >>> shape = ((0, 0), (0, 1))
    >>> print(formula(Stage("s", {"u": (u - (u + 0.5 * Read("u", (0, 1)))) / 4}, shape)))
    u[i, j] = (u[i, j] - (u[i, j] + 0.5 * u[i, j+1])) / 4
    """
    target = cell(Read(stage.writes, (0,) * len(stage.offsets)))
    n_operations = sum(count(stage.expression).values())
    if n_operations > MAX_OPERATIONS:
        return f"{target} = ... ({n_operations} operations)"
    lines = textwrap.wrap(
        f"{target} = {expression_text(stage.expression)}", WIDTH, subsequent_indent="    ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines)


def expression_text(expression: Expression) -> str:
    """The expression with no more parentheses than its order of evaluation needs."""
    return evaluate(expression, lambda read: (cell(read), _LEAF), _constant, _joined)[0]


def cell(read: Read) -> str:
    """
    >>> cell(Read("u", (-1, 0, 2)))
    'u[i-1, j, k+2]'
    """
    index = (f"{axis}{step:+d}" if step else axis for axis, step in zip(AXES, read.offset))
    return f"{read.field}[{', '.join(index)}]"


def _constant(value: float) -> _Text:
    text = str(Constant(value).value).removesuffix(".0")
    return text, _LEAF if value >= 0 else 0


def _joined(symbol: Symbol, left: _Text, right: _Text) -> _Text:
    """Left to right without parentheses; a right operand as strong as the operator needs them."""
    strength = _STRENGTH[symbol]
    left_text = left[0] if left[1] >= strength else f"({left[0]})"
    right_text = right[0] if right[1] > strength else f"({right[0]})"
    return f"{left_text} {symbol} {right_text}", strength
