# SPDX-License-Identifier: MIT
"""Sweeps whose element functions look at what they touch (`controllers.kgt.text.element`)."""
from __future__ import annotations

from dataclasses import replace

from controllers.program.expression import (
    Application,
    Constant,
    Expression,
    Outcome,
    evaluate_all,
)
from controllers.program.sweep import Sweep


def looking(sweep: Sweep, simulated: bool) -> Sweep:
    """The same, whose element functions report what they read and do not declare.

    They begin with what lies in memory, so that it shows what they do not set.  A simulator sees
    that by itself, and would take this for a race: two groups may compute a cell.
    """
    updates = sweep.stage.updates

    def outcome(node: Outcome, operands: object) -> Expression:
        element = replace(node.element, looks=True, recalls=not simulated)
        return Outcome(element, node.name, node.arguments, node.specification)

    values = evaluate_all(
        [*updates.values()], _same, Constant, Application, given=_same, outcome=outcome
    )
    return replace(sweep, stage=replace(sweep.stage, updates=dict(zip(updates, values))))


def _same(leaf: Expression) -> Expression:
    return leaf
