# SPDX-License-Identifier: MIT
"""What stages may do with folds: their names, and which scalars are known when a stage begins."""
from __future__ import annotations

from collections.abc import Mapping, Sequence

from controllers.program.expression import Scalar
from controllers.program.repeat import NOW
from controllers.program.scalars import Folded, ScalarRule, ScalarRules
from controllers.program.stage import Stage


def with_folds(
    scalars: Mapping[str, ScalarRule], stages: Sequence[Stage]
) -> Mapping[str, ScalarRule]:
    """`scalars` and one for each fold; ValueError where a name is taken."""
    fields = {name for stage in stages for name in (*stage.fields_read, *stage.updates)}
    if not isinstance(scalars, Mapping):
        return scalars      # refused with all else that is no rule
    known: dict[str, str] = {}
    for stage in stages:
        for name in stage.folds:
            what = None
            if name in known:
                what = f"stage {known[name]!r} has a fold of that name"
            elif not isinstance(scalars.get(name, Folded()), Folded):
                what = "a scalar has that name"
            elif name in fields:
                what = "a field has that name"
            if what:
                raise ValueError(
                    f"stage {stage.name!r} has a fold {name!r}, and {what}; rename one of them"
                )
            known[name] = stage.name
    if not known:
        return scalars
    return {**scalars, **dict.fromkeys(known, Folded())}


def check_folds(stages: Sequence[Stage], rules: ScalarRules, outside: set[str]) -> None:
    """ValueError where a scalar is used before the stage that folds it, or outside of fields.

    outside: the scalars that boundaries use.
    """
    for name in sorted(outside):
        if rules.needs([name]):
            raise ValueError(
                f"a boundary uses the scalar {name!r}, which is made of the fold "
                f"{min(rules.needs([name]))!r} in each step, while cells outside are made as "
                f"it begins; use it in a stage, or make it a Parameter"
            )
    to_come = {name: stage.name for stage in stages for name in stage.folds}
    for stage in stages:
        used = [node.name for node in stage.given if isinstance(node, Scalar)]
        for name in used:
            late = sorted(rules.needs([name]) & to_come.keys())
            if late:
                raise ValueError(
                    f"stage {stage.name!r} uses the scalar {name!r}, which is made of the fold "
                    f"{late[0]!r} of stage {to_come[late[0]]!r}, known only after that one; put a "
                    f"stage with the fold before it"
                )
        for name in stage.folds:
            del to_come[name]


def checked_results(results: Sequence[str] | None, rules: ScalarRules) -> tuple[str, ...]:
    """The names of what the host sees after a step; ValueError where one is made of no fold."""
    found = rules.folds if results is None else tuple(results)
    for name in found:
        if name in NOW:
            raise ValueError(
                f"a result cannot be called {name!r}, which a run says of itself; rename it"
            )
        if not rules.needs([name]):
            known = ", ".join(name for name in rules if rules.needs([name])) or "none"
            raise ValueError(
                f"a result {name!r} is made of no fold (those that are: {known}); give one of these"
            )
    return found
