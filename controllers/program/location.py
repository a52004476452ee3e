# SPDX-License-Identifier: MIT
"""Stages by location: updates of fields that lie at unlike locations are computed apart.

A field that lies at half points has other cells than one at centres, and one that is 0 on an end is
not computed there.  All of them read what the fields were before the stage.  Its folds go with the
first.
"""
from __future__ import annotations

from collections.abc import Mapping
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
    made = tuple(
        replace(
            stage, name=_name(stage.name, next(iter(updates))), updates=updates,
            folds={} if number else stage.folds,
        )
        for number, updates in enumerate(found.values())
    )  # fmt: skip
    if not isinstance(stage, Part):
        return made
    parts = zip(made, by_location(stage.whole, boundaries))
    return tuple(
        Part(one.name, one.updates, one.offsets, one.folds, whole=whole) for one, whole in parts
    )


def _name(stage: str, field: str) -> str:
    short = stage[: max(1, MAX_LENGTH - len(field) - 4)].rstrip("_")
    return f"{short}_of_{field}"[:MAX_LENGTH].rstrip("_")
