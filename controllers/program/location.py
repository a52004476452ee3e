# SPDX-License-Identifier: MIT
"""Stages by location: what is computed of a stage that updates fields of unlike locations.

A field that lies at half points has other cells than one at centres, and one that is 0 on an end is
not computed there.  All of them read what the fields were before the stage.  Its folds go with the
first.  This says which cells; `controllers.program.pieces`, which are computed together.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from controllers.program.boundary import KEPT, Boundary
from controllers.program.expression import Expression
from controllers.program.identifier import MAX_LENGTH
from controllers.program.stage import Part, Stage


def by_location(stage: Stage, boundaries: Mapping[str, Boundary]) -> tuple[Stage, ...]:
    """The stage, as stages of which each computes the same cells of all its fields.

    >>> from controllers.program.expression import Read
    >>> both = Stage("flow", {"p": Read("p", (0,)), "v": Read("v", (0,))}, ((0, 0),))
    >>> [part.name for part in by_location(both, {"v": Boundary(half=(True,))})]
    ['flow_of_p', 'flow_of_v']
    """
    found: dict[object, dict[str, Expression]] = {}
    for field, expression in stage.updates.items():
        boundary = boundaries.get(field, KEPT)
        found.setdefault((boundary.half, boundary.walls), {})[field] = expression
    if len(found) < 2:
        return (stage,)
    return tuple(
        only(stage, [*updates], name_of(stage.name, [*updates][:1]), folds=not number)
        for number, updates in enumerate(found.values())
    )


def only(stage: Stage, fields: Sequence[str], name: str, *, folds: bool = False) -> Stage:
    """A stage of this name that does of `stage` the updates of these fields, and what it folds."""
    updates = {field: stage.updates[field] for field in fields}
    made = replace(stage, name=name, updates=updates, folds=stage.folds if folds else {})
    if isinstance(made, Part):
        return replace(made, whole=only(made.whole, fields, name, folds=folds))
    return made


def name_of(stage: str, fields: Sequence[str]) -> str:
    """What a stage is called that does some updates of another one."""
    short = "_".join(fields)[: MAX_LENGTH - 12].rstrip("_")
    return f"{stage[: MAX_LENGTH - len(short) - 4].rstrip('_')}_of_{short}"
