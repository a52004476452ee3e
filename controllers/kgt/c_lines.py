# SPDX-License-Identifier: MIT
"""Lines of C: functions, calls and conditions, broken where they are long."""
from __future__ import annotations

from collections.abc import Iterable, Sequence

from controllers.kgt.emitter import INDENT, MAX_LINE


def function(head: str, parameters: Sequence[str], body: Iterable[str]) -> list[str]:
    """A function, with a line for each parameter.

    >>> function("static long twice", ["const long x"], ["return 2 * x;"])
    ['static long twice(', '    const long x)', '{', '    return 2 * x;', '}']
    """
    lines = [f"{INDENT}{parameter}," for parameter in parameters]
    return [f"{head}(", *lines[:-1], f"{lines[-1][:-1]})", "{", *indented(body), "}"]


def called(name: str, arguments: Iterable[str]) -> list[str]:
    """A call, as a statement.

    >>> called("const long y = twice", ["x"])
    ['const long y = twice(x);']
    """
    lines = [f"{name}("]
    for argument in arguments:
        if len(lines[-1]) + len(argument) > MAX_LINE - 4 * len(INDENT):
            lines.append(INDENT)
        lines[-1] += f"{argument}, "
    return [line.rstrip() for line in [*lines[:-1], f"{lines[-1][:-2]});"]]


def indented(lines: Iterable[str], times: int = 1) -> list[str]:
    """The lines, deeper inside.

    >>> indented(["x = 1;"])
    ['    x = 1;']
    """
    return [INDENT * times + line for line in lines]
