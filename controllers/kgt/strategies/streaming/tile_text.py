# SPDX-License-Identifier: MIT
"""Pieces of OpenCL C that the parts of the strategy "streaming" share."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.kgt.strategies.streaming.tile import Tile
from controllers.kgt.text.emitter import INDENT


def plus(number: int) -> str:
    """C text that adds a number.

    >>> plus(2), plus(-2), plus(0)
    (' + 2', ' - 2', '')
    """
    return f" {'-' if number < 0 else '+'} {abs(number)}" if number else ""


def along(field: str, axis: int, n_axes: int, cells: str) -> str:
    """C text of the elements that so many cells along an axis are.

    >>> along("u", 0, 2, "i"), along("u", 1, 2, "i")
    ('i * u_pitch_0', 'i')
    """
    return cells if axis == n_axes - 1 else f"{cells} * {field}_pitch_{axis}"


def index(tile: Tile, shifts: Sequence[int] = ()) -> str:
    """C text that picks the cell of the loops from an array, moved by `shifts`."""
    each = zip(tile.loops, shifts or (0,) * len(tile.loops))
    return "".join(f"[{name}{plus(shift)}]" for name, shift in each)


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
    result, depth = [], 0
    for name, count, step in loops:
        move = f"++{name}" if step == 1 else f"{name} += {step}"
        result += [
            f"{INDENT * depth}#pragma unroll",
            f"{INDENT * depth}for (int {name} = 0; {name} < {count}; {move})",
        ]
        depth += 1
    if len(lines) > 1 and loops:
        result[-1] += " {"
    result += [INDENT * depth + line for line in lines]
    if len(lines) > 1 and loops:
        result.append(f"{INDENT * (depth - 1)}}}")
    return result


def each_cell(tile: Tile, lines: Sequence[str]) -> list[str]:
    """C lines: `lines` for each cell of an item."""
    counts = zip(tile.loops, tile.block)
    return unrolled([(name, count, 1) for name, count in counts], lines)
