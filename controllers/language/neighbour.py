# SPDX-License-Identifier: MIT
"""Expressions at neighbours of the cell, as large as kernels can be."""
from __future__ import annotations

from controllers.program import neighbour
from controllers.program.expression import Expression
from controllers.program.node import ordered

MAX_NODES = 20_000      # of an expression


def shifted(expression: Expression, offset: tuple[int, ...]) -> Expression:
    """`expression` as the cell at `offset` has it; ValueError where it is too large."""
    if any(offset):
        check_count(len(ordered(expression)))
    return neighbour.shifted(expression, offset)


def check_count(n_nodes: int) -> None:
    """ValueError where an expression has become too large for a kernel."""
    if n_nodes > MAX_NODES:
        raise ValueError(
            f"the expression has more than {MAX_NODES} operations; a step is traced once, and a "
            f"Python loop in it is written out: run more steps, or use several stages in a row"
        )
