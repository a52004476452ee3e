# SPDX-License-Identifier: MIT
"""Pieces of OpenCL C that the parts of the strategy "streaming" share."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.kgt.text.c_lines import block


def plus(number: int) -> str:
    """C text that adds a number.

    >>> plus(2), plus(-2), plus(0)
    (' + 2', ' - 2', '')
    """
    return f" {'-' if number < 0 else '+'} {abs(number)}" if number else ""


def sizes(counts: Sequence[int]) -> str:
    """C text of the sizes of an array."""
    return "".join(f"[{count}]" for count in counts)


def moved(at: Sequence[int], by: Sequence[int]) -> tuple[int, ...]:
    """A place, moved on each axis.

    >>> moved((1, -1), (2, 1))
    (3, 0)
    """
    return tuple(place + step for place, step in zip(at, by))


def unrolled(loops: Sequence[tuple[str, int, int]], lines: Sequence[str]) -> list[str]:
    """C lines: `lines` in loops, each of (variable, count, step), which are unrolled.

    >>> unrolled([("i", 4, 1)], ["a[i] = 0;"])
    ['#pragma unroll', 'for (int i = 0; i < 4; ++i)', '    a[i] = 0;']
    """
    opened, closed = (" {", ["}"]) if len(lines) > 1 else ("", [])
    for name, count, step in reversed(loops):
        lines = block("""
            #pragma unroll
            for (int $i = 0; $i < $count; $next)$opened
                $lines
            $closed
        """,
            i=name, count=count, next=f"++{name}" if step == 1 else f"{name} += {step}",
            opened=opened, lines=lines, closed=closed,
        )  # fmt: skip
        opened, closed = "", []
    return list(lines)
