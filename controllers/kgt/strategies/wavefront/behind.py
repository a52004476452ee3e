# SPDX-License-Identifier: MIT
"""What "wavefront" functions read and write of a field that follows the one they compute.

A level reads of it, in the same cell, what the level two below it has.  So the first one finds it
in the memory of that field, the second one in that of the own field, the others in a ring; the last
one writes what the level below it has.
"""
from __future__ import annotations

from collections.abc import Iterator

from controllers.kgt.strategies.wavefront.levels import LAST, STREAM, Levels


def parameters(levels: Levels, kind: str) -> list[str]:
    """C text of the parameters that a function of a kind has for it."""
    if not levels.follower:
        return []
    found = [f"{levels.space(_where(levels, kind))} const {levels.cell} *const behind"]
    written = [f"__global {levels.cell} *const behind_new"] if _writes(levels, kind) else []
    return found + written


def pointers(levels: Levels, kind: str, count: int) -> Iterator[str]:
    """C lines: where its slices start that are read, and those that are written."""
    if not levels.follower:
        return
    where, field = _where(levels, kind), levels.behind(kind)
    for number in range(count):
        at = levels.slice("behind", where, number, field)
        yield f"{levels.space(where)} const {levels.cell} *const at_behind_{number} = {at};"
    for number in range(count) if _writes(levels, kind) else ():
        at = levels.slice("behind_new", "field", number, levels.follower)
        yield f"__global {levels.cell} *const at_behind_new_{number} = {at};"


def rows(levels: Levels, kind: str) -> list[str]:
    """C lines: where the row is in these slices."""
    if not levels.follower or levels.last < 2:
        return []
    lines = [f"const long item_row_behind = {_row(levels, levels.behind(kind))};"]
    written = f"const long item_row_behind_new = {_row(levels, levels.follower)};"
    return [*lines, *([written] if _writes(levels, kind) else [])]


def argument(levels: Levels, kind: str, number: int) -> list[str]:
    """C text of a vector of a slice that is read."""
    if not levels.follower:
        return []
    macro = "KGT_NEAR" if levels.behind(kind) else "KGT_KEPT"
    return [f"{macro}({_place(levels, f'at_behind_{number}', 'behind')})"]


def stored(levels: Levels, kind: str, count: int) -> dict[str, str]:
    """C text of vectors that are written, by where."""
    if not _writes(levels, kind):
        return {}
    low = levels.rings.reach[0][0] if levels.last else 0
    row = "item_row + " if levels.last > 1 else ""
    return {
        _place(levels, f"at_behind_new_{number}", "behind_new"):
        f"KGT_KEPT(at_{number + low} + {row}item_{levels.last})" for number in range(count)
    }  # fmt: skip


def asked(levels: Levels, count: int) -> list[str]:
    """C text of the places that the next front reads first, in the field itself."""
    if not levels.follower or not levels.last:
        return []
    newest = _place(levels, f"at_behind_{count - 1}", "behind")
    return [f"{newest} + {number} * {levels.follower}_pitch_0" for number in range(1, count + 1)]


def _where(levels: Levels, kind: str) -> str:
    return "field" if levels.behind(kind) else "ring"


def _writes(levels: Levels, kind: str) -> bool:
    return bool(levels.follower) and kind in (LAST, STREAM)


def _row(levels: Levels, field: str) -> str:
    """C text: where the row is in a slice of a field, or of a ring."""
    pitches = (
        f"{field}_pitch_{axis}" if field else levels.rings.pitch(axis)
        for axis in range(1, levels.last)
    )
    return " + ".join(f"item_{axis} * {pitch}" for axis, pitch in enumerate(pitches, 1))


def _place(levels: Levels, at: str, name: str) -> str:
    """C text: the cell of the loops in a slice."""
    row = f"item_row_{name} + " if levels.last > 1 else ""
    return f"{at} + {row}item_{levels.last}"
