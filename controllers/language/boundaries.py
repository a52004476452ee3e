# SPDX-License-Identifier: MIT
"""What users say of the boundaries of several fields on a grid, and what is missing there.

One rule for all, one per axis, or one of these per field: `dict(u=ct.fixed(0), v=dict(y=...))`.  A
field that is read beyond the grid where no rule is has no values there; such programs are refused.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from controllers.language.grid import Grid
from controllers.language.half_points import Half
from controllers.language.profile import Profile
from controllers.program.boundary import KEEP, PERIODIC, Boundary, Side
from controllers.program.expression import Read, walk
from controllers.program.fold import expressions_of
from controllers.program.rule import Rule
from controllers.program.stage import Stage
from hitmap.argument import short

Sides = tuple[Side | None, ...]     # per axis; None where nothing is said
RING: Side = (PERIODIC, PERIODIC)


def sides_of(boundary: object, fields: Mapping[str, Half], grid: Grid) -> dict[str, Sides]:
    """The rules of each field, as they are said; the grid's where they are said by field.

    fields: where they lie.

    >>> grid, cells = Grid(y=8, x=8), (False, False)
    >>> [*map(bool, sides_of({"u": {"x": "mirror"}}, {"u": cells, "v": cells}, grid)["u"])]
    [False, True]
    """
    nothing: Sides = (None,) * len(grid.axes)
    usual = dict.fromkeys(fields, nothing) | _said(grid.boundary, fields, grid)
    return usual | _said(boundary, fields, grid)


def _said(boundary: object, fields: Mapping[str, Half], grid: Grid) -> dict[str, Sides]:
    """Of those fields of which something is said."""
    if boundary is None:
        return {}
    if not _by_field(boundary, [*fields], grid):
        return {field: _sides(boundary, grid, half) for field, half in fields.items()}
    assert isinstance(boundary, Mapping), "as it has fields"
    return {field: _sides(said, grid, fields[field]) for field, said in boundary.items()}


def shared(sides: Mapping[str, Sides], renames: Mapping[str, str]) -> dict[str, Sides]:
    """The same, fields that get one another's values having one rule, and rings being for all."""
    found = dict(sides)
    n_axes = len(next(iter(sides.values())))
    for new, old in [*renames.items()] * len(renames):  # along chains
        for one, other in ((new, old), (old, new)):
            found[one] = tuple(a or b for a, b in zip(found[one], found[other]))
    for axis in range(n_axes):
        if any(one[axis] == RING for one in found.values()):
            for field, axes in found.items():
                ring = axes[axis] or RING
                found[field] = (*axes[:axis], ring, *axes[axis + 1 :])
    return found


def boundary_of(sides: Sides) -> Boundary:
    """The rules, keep where nothing is said."""
    return Boundary(tuple(side or (KEEP, KEEP) for side in sides))


def check_reads(
    stage: Stage, sides: Mapping[str, Sides], halves: Mapping[str, Half], grid: Grid, what: str
) -> None:
    """ValueError where a stage reads cells beyond the grid that no rule says."""
    folded = expressions_of(stage.folds)
    each = [*((field, (value,)) for field, value in stage.updates.items()), (stage.home, folded)]
    every = {
        (read, halves[field]): None
        for field, values in each
        for read in walk(*values)
        if isinstance(read, Read)
    }
    for read, own in every:
        for axis, step in enumerate(read.offset):
            above = step + own[axis] - halves[read.field][axis]     # of the last cell
            if (step < 0 or above > 0) and sides[read.field][axis] is None:
                name = grid.axes[axis]
                raise ValueError(
                    f"{what} reads {read.field!r} at {read.offset}, which is beyond the grid at "
                    f"an end of the axis {name!r}, and nothing says what is there; give a "
                    f"boundary, such as boundary=dict({read.field}=ct.fixed(0)), ct.mirror(), "
                    f'ct.keep() or "periodic"'
                )


def _by_field(boundary: object, fields: Sequence[str], grid: Grid) -> bool:
    """Whether a rule is said for each field; ValueError for a name that is neither."""
    if not isinstance(boundary, Mapping):
        return False
    axes = [key for key in boundary if key in grid.axes or key in range(len(grid.axes))]
    named = [key for key in boundary if key in fields]
    for key in boundary:
        if key not in axes and key not in named:
            raise ValueError(
                f"boundary: {key!r} is neither a field ({', '.join(fields)}) nor an axis "
                f"({', '.join(grid.axes)})"
            )
    if named and len(named) < len(boundary):
        raise ValueError(
            f"boundary: {short(dict(boundary))} mixes fields and axes; write "
            f"dict({named[0]}=dict({axes[0]}=...))"
        )
    return bool(named)


def _sides(spelling: object, grid: Grid, half: Half) -> Sides:
    """What one field's spelling says per axis."""
    said = Boundary.of(spelling, grid.axes)     # type: ignore[arg-type]
    some = isinstance(spelling, Mapping)
    return tuple(
        None
        if some and name not in spelling and axis not in spelling   # type: ignore[operator]
        else (_on(grid, said.side(axis)[0], half), _on(grid, said.side(axis)[1], half))
        for axis, name in enumerate(grid.axes)
    )


def _on(grid: Grid, rule: Rule, half: Half) -> Rule:
    return rule.on(grid, half) if isinstance(rule, Profile) else rule
