# SPDX-License-Identifier: MIT
"""Where a value lies: at the centres of cells, or along some axes at the half points between them.

Half point i of an axis is the lower face of cell i; the last cell has one above it, too.  What is
computed of numbers, scalars and coordinates alone lies nowhere until it meets a field: its
coordinates are those of cells until then.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Union

import numpy as np

from controllers.language.neighbour import shifted
from controllers.program.expression import Coordinate, Expression, walk
from controllers.program.offsets import MAX_OFFSET
from controllers.program.stored_values import replaced
from hitmap.argument import short, wrong

Half = tuple[bool, ...]     # per axis
Locations = Union[Mapping[str, Any], None]


def halves_of(location: Locations, fields: Sequence[str], axes: Sequence[str]) -> dict[str, Half]:
    """Where each field lies, as users say it: by field an axis, or some, of half points.

    >>> halves_of({"vx": "x", "corner": ("y", "x")}, ["p", "vx", "corner"], ["y", "x"])
    {'p': (False, False), 'vx': (False, True), 'corner': (True, True)}
    """
    if location is not None and not isinstance(location, Mapping):
        remedy = 'write location=dict(vx="x")'
        raise wrong("location", "a mapping of fields to axes", location, remedy)
    found = dict.fromkeys(fields, (False,) * len(axes))
    for field, said in (location or {}).items():
        names = [*said] if isinstance(said, (list, tuple, set)) else [said]
        for name in names:
            if name not in axes:
                raise ValueError(
                    f"location: {field!r} lies at half points of axes, got {short(name)}; there "
                    f"are {', '.join(axes)}"
                )
        found[field] = tuple(axis in names for axis in axes)
    return found


def described(half: Half, axes: Sequence[str]) -> str:
    """For people.

    >>> described((True, True), ["y", "x"]), described((False, False), ["y", "x"])
    ('at half points of y and x', 'at cells')
    """
    names = [axis for axis, on in zip(axes, half) if on]
    return f"at half points of {' and '.join(names)}" if names else "at cells"


def common(halves: Sequence[Half | None], axes: Sequence[str]) -> Half | None:
    """Where operands lie together; ValueError where their locations differ."""
    known = [*dict.fromkeys(half for half in halves if half is not None)]
    if len(known) > 1:
        axis = next(name for name, a, b in zip(axes, *known) if a != b)
        raise ValueError(
            f"the operands lie {described(known[0], axes)} and {described(known[1], axes)}; bring "
            f'them together by one of their neighbours, f.at("{axis}", 1/2), or the mean of both'
        )
    return known[0] if known else None


def halves(step: Any) -> int | None:
    """Twice a step of half cells, which is odd; None for whole ones and for what is no number."""
    if not isinstance(step, (float, np.floating, Fraction)) or abs(step) > MAX_OFFSET:
        return None
    twice = 2 * Fraction(float(step))
    return twice.numerator if twice.denominator == 1 and twice % 2 else None


def moved(
    node: Expression, half: Half | None, offset: tuple[int, ...]
) -> tuple[Expression, Half | None]:
    """An expression so many half cells away, an odd number along one axis alone, and where it lies.

    A value at cells, seen half a cell up, lies at half points: at point i it is that of cell i.
    What lies nowhere still does.

    >>> from controllers.program.expression import Read
    >>> moved(Read("v", (0,)), (True,), (1,))     # the point above each cell
    (Read(field='v', offset=(1,)), (False,))
    """
    axis = next(at for at, twice in enumerate(offset) if twice)
    up = half is not None and half[axis]
    steps = ((twice + (1 if up else -1)) // 2 if twice else 0 for twice in offset)
    node = shifted(node, tuple(steps))
    if half is None:
        return _between(node, axis, to_half=False), None
    return node, tuple(on != (at == axis) for at, on in enumerate(half))


def settled(node: Expression, half: Half) -> Expression:
    """What lies nowhere, at a location: its coordinates are those there."""
    for axis, on in enumerate(half):
        if on:
            node = _between(node, axis, to_half=True)
    return node


def _between(node: Expression, axis: int, *, to_half: bool) -> Expression:
    """The same coordinates, seen from a half point in place of a cell, or from a cell."""

    def seen(one: Coordinate) -> Coordinate:
        offset = one.offset - one.half if to_half else one.offset + (not one.half)
        return Coordinate(axis, not one.half, offset)

    along = (one for one in walk(node) if isinstance(one, Coordinate) and one.axis == axis)
    return replaced([node], {one: seen(one) for one in along})[0]
