# SPDX-License-Identifier: MIT
"""What stages may do with scalars, indices and coordinates."""
from __future__ import annotations

from collections.abc import Sequence

from controllers.program.coordinates import Coordinates
from controllers.program.expression import (
    Application,
    Constant,
    Coordinate,
    Expression,
    Index,
)
from controllers.program.functions import FUNCTIONS
from controllers.program.node import ordered
from controllers.program.stage import Stage


def check_given(stage: Stage, floats: bool, grid: Coordinates | None) -> None:
    """ValueError where what a stage does with what is given has no meaning.

    floats: whether all fields that it uses hold floats; elsewhere NumPy's promotion says it all.
    """
    n_axes = len(stage.offsets)
    for node in stage.given:
        if isinstance(node, (Index, Coordinate)) and node.axis >= n_axes:
            raise ValueError(
                f"stage {stage.name!r} uses {node}, and has {n_axes} axes; take a lower axis"
            )
        if isinstance(node, Coordinate) and (grid is None or grid.n_axes != n_axes):
            raise ValueError(
                f"stage {stage.name!r} uses {node}, and the program does not say where the cells "
                f"of its {n_axes} axes lie; give it grid=Coordinates(axes, lower, spacing)"
            )
    if floats and any(isinstance(node, Index) for node in stage.given):
        whole = index_values(ordered(*stage.expressions))
        for field, expression in stage.updates.items():
            if expression in whole:
                raise ValueError(
                    f"stage {stage.name!r} gives {field!r}, which holds floats, the whole number "
                    f"{expression}; choose floats by it, as in where(index == 3, a, b)"
                )


def index_values(nodes: Sequence[Expression]) -> dict[Expression, None]:
    """Those nodes, of a graph of floats, that are whole numbers (int64) made of indices.

    `nodes`: operands before their operation.  ValueError where whole numbers meet floats.

    >>> from controllers.program.expression import Read, where
    >>> [str(node) for node in index_values(ordered(where(2 * Index(0) == 3, Read("u", (0,)), 0)))]
    ['Index(axis=0, offset=0)', '<Constant * Index>']
    """
    found: dict[Expression, None] = {}
    for node in nodes:
        is_whole = isinstance(node, Application) and _of_indices(node, found)
        if isinstance(node, Index) or (is_whole and not node.is_condition):
            found[node] = None
    return found


def _of_indices(node: Application, whole: dict[Expression, None]) -> bool:
    """Whether values that it takes are whole numbers."""
    values = [operand for operand in node.operands if not operand.is_condition]
    if not any(value in whole for value in values):
        return False
    for value in values:
        if value not in whole and not (isinstance(value, Constant) and type(value.value) is int):
            raise ValueError(
                f"{node} takes an index and {value}, and indices are whole numbers; use whole "
                f"numbers with them (as 3, not 3.0), or Coordinate"
            )
    if FUNCTIONS[node.symbol].integers is None or node.symbol == "/":
        raise ValueError(
            f"{node} is no function of indices, which are whole numbers; use one of them"
        )
    return True
