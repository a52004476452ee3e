# SPDX-License-Identifier: MIT
"""Lines of C: blocks with places for names and for other lines; functions and calls."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from textwrap import dedent

from controllers.kgt.text.emitter import INDENT, MAX_LINE

_PLACE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_LINES = re.compile(r"( *)\$(\w+)")


def block(text: str, **values: str | int | Iterable[str]) -> list[str]:
    """A block of C as lines, in which `$name` or `${name}` stands for a value.

    Alone on a line, `$name` may stand for any number of lines, which are indented as it is.

    >>> block('''
    ...     for (int $i = 0; $i < $n; ++$i) {
    ...         $body
    ...     }
    ... ''', i="at", n=4, body=["u[at] = 0;", "v[at] = 1;"])
    ['for (int at = 0; at < 4; ++at) {', '    u[at] = 0;', '    v[at] = 1;', '}']
    """
    lines: list[str] = []
    for line in dedent(text).strip("\n").splitlines():
        alone = _LINES.fullmatch(line)
        found = values[alone[2]] if alone else ""
        if alone and not isinstance(found, (str, int)):
            lines += [(alone[1] + each).rstrip() for each in found]
        else:
            lines.append(_PLACE.sub(lambda place: str(values[place[1] or place[2]]), line))
    return lines


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
