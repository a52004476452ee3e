# SPDX-License-Identifier: MIT
"""Stages whose element functions look at what they touch (`controllers.kgt.text.element`)."""
from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from controllers.program.expression import (
    Application,
    Constant,
    Expression,
    Outcome,
    evaluate_all,
)
from controllers.program.stage import Stage


@lru_cache(maxsize=64)
def looking(stage: Stage) -> Stage:
    """The same stage, whose element functions report what they read and do not declare."""

    def outcome(node: Outcome, operands: object) -> Expression:
        element = replace(node.element, looks=True)
        return Outcome(element, node.name, node.arguments, node.specification)

    values = evaluate_all(
        [*stage.updates.values()], _same, Constant, Application, given=_same, outcome=outcome
    )
    return replace(stage, updates=dict(zip(stage.updates, values)))


def _same(leaf: Expression) -> Expression:
    return leaf
