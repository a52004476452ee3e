# SPDX-License-Identifier: MIT
"""What users write that is other functions of the table: squares, small powers, clipped values."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MAX_POWER = 16


def composed(numpy: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    """The expression that stands for a call; None where a row of the table does.

    >>> from controllers.program.formula import expression_text
    >>> from controllers.program.node import Read
    >>> u = Read("u", (0,))
    >>> print(expression_text(u**3), "and", expression_text(np.clip(u, 0, 1)))
    u[i] * u[i] * u[i] and minimum(maximum(u[i], 0), 1)
    """
    rule = _RULES.get(numpy)
    return rule(*operands) if rule is not None else None


def _square(x: Any) -> Any:
    return x * x


def _clip(x: Any, least: Any, most: Any) -> Any:
    return _smaller(_larger(x, least), most)


def _power(x: Any, exponent: Any) -> Any:
    """Products, the same whatever computes them: x^n is (x^(n/2))^2, times x where n is odd.

    x^(n + 1/2) is x^n sqrt(x), and a power below 0 of half numbers is 1 / the one above 0.
    """
    exponent = getattr(exponent, "value", exponent)     # of a constant
    if isinstance(exponent, (float, np.floating)):
        return _half_power(x, float(exponent))
    if not isinstance(exponent, (int, np.integer)) or not 1 <= exponent <= MAX_POWER:
        return None
    result = x
    for bit in bin(exponent)[3:]:
        result = result * result
        if bit == "1":
            result = result * x
    return result


def _half_power(x: Any, exponent: float) -> Any:
    """Of an odd number of halves; None of others."""
    n, half = divmod(abs(exponent), 1)
    if half != 0.5 or n > MAX_POWER:
        return None
    root = _root(x)
    result = _power(x, int(n)) * root if n else root
    return 1 / result if exponent < 0 else result


_smaller, _larger, _root = np.minimum, np.maximum, np.sqrt
_RULES: dict[Callable[..., Any], Callable[..., Any]] = {
    np.square: _square,
    np.clip: _clip,
    np.power: _power,
    np.positive: lambda x: x,
}
