# SPDX-License-Identifier: MIT
"""Extensions: the cells outside a domain, as expressions of cells inside.

Each cell outside, one axis at a time, is what its rule says of cells on its line; one that a rule
finds beyond the other end is a cell outside itself, less far out, as in a mirror of a mirror.
"""
from __future__ import annotations

from functools import lru_cache

from controllers.program.boundary import Boundary, Mirror, Rule
from controllers.program.expression import Constant, Expression, Node, Read, walk
from controllers.program.stage import Stage
from hitmap.argument import number, whole, wrong

MOST_CHECKED = 4    # distances at which a rule is tried as a program is made


@lru_cache(maxsize=1024)
def outside(rule: Rule, field: str, axis: int, n_axes: int, upper: bool, distance: int) -> Stage:
    """What gives the cells of `field` that lie `distance` cells beyond one end, as a stage.

    It reads along the axis alone, at the offsets from such a cell to those that its rule names.
    """

    def inside(k: int) -> Expression:
        step = distance + whole(k, "a boundary reads the cell before the end number", 0)
        along = -step if upper else step
        return Read(field, (0,) * axis + (along,) + (0,) * (n_axes - axis - 1))

    value = rule.outside(inside, distance)
    if not isinstance(value, Node):
        value = Constant(number(value, f"the boundary {rule} of {field!r}"))
    if value.is_condition:
        raise wrong(f"the boundary {rule} of {field!r}", "a number", value, "use where(.., 1, 0)")
    reads = [node.offset[axis] for node in walk(value) if isinstance(node, Read)]
    ends = (min([0, *reads]), max([0, *reads]))
    offsets = [(0, 0)] * n_axes
    offsets[axis] = ends
    return Stage("outside", {field: value}, tuple(offsets))


def depths(rule: Rule, distance: int) -> tuple[int, ...]:
    """Which cells before the end, 0 being the last one, give the cell so far beyond it."""
    stage = outside(rule, "u", 0, 1, False, distance)
    return tuple(sorted(read.offset[0] - distance for read in stage.reads))


def check_boundary(boundary: Boundary, field: str, n_axes: int, dtype: str) -> list[Stage]:
    """ValueError where rules do not suit a field; else what they compute near the ends."""
    if boundary.axes and len(boundary.axes) != n_axes:
        raise ValueError(
            f"field {field!r} has a boundary of {len(boundary.axes)} axes, the program has "
            f"{n_axes}; give a pair of rules for each"
        )
    for rule in (rule for side in boundary.axes for rule in side):
        if not isinstance(rule, Mirror):
            continue
        if rule.components:
            names = ", ".join(name for name, _ in rule.components)
            raise ValueError(f"field {field!r} has no components, and {rule} names {names}")
        if rule.sign < 0 and dtype.startswith("u"):
            raise ValueError(
                f"field {field!r} of {dtype} has no negative numbers, which {rule} makes; use "
                f"mirror(), or a signed dtype"
            )
    return [
        outside(rule, field, axis, n_axes, bool(upper), distance)
        for axis, side in enumerate(boundary.axes)
        for upper, rule in enumerate(side)
        if rule.extends
        for distance in range(1, MOST_CHECKED + 1)
    ]
