# SPDX-License-Identifier: MIT
"""What the host computes of scalars, in float64 with NumPy, in an order that suits."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from controllers.program.expression import Application, Constant, Expression, Scalar, walk
from controllers.program.functions import FUNCTIONS
from controllers.program.node import ordered

Work: TypeAlias = "list[tuple[str, list[tuple[Callable[..., Any] | None, Any]]]]"


def scalars_in(*expressions: Expression) -> set[str]:
    """The names of the scalars that expressions use."""
    return {node.name for node in walk(*expressions) if isinstance(node, Scalar)}


def work_of(derived: Mapping[str, Expression]) -> Work:
    """What to compute for each of these, in an order in which all that one uses is known."""
    uses = {name: scalars_in(rule) & derived.keys() for name, rule in derived.items()}
    try:
        names = [*TopologicalSorter(uses).static_order()]
    except CycleError as circle:
        raise ValueError(
            f"scalars are computed of each other in a circle, {' of '.join(circle.args[1][::-1])}; "
            f"make one of them a Parameter"
        ) from None
    return [(name, _program(derived[name])) for name in names]


def computed(
    work: Work, known: dict[str, float], most: Mapping[str, float] = MappingProxyType({})
) -> dict[str, float]:
    """`known` with the scalars that `work` computes of it, each of them at most what `most` says.
    """
    with np.errstate(all="ignore"):
        for name, program in work:
            slots: list[Any] = []
            for function, what in program:
                if function is None:
                    slots.append(np.float64(known[what] if isinstance(what, str) else what))
                else:
                    slots.append(function(*[slots[number] for number in what]))
            value = float(slots[-1])
            known[name] = min(value, most[name]) if name in most else value
    return known


def _program(rule: Expression) -> list[tuple[Callable[..., Any] | None, Any]]:
    """Functions with the places of their operands, or None with a number or a name."""
    places: dict[Expression, int] = {}
    found: list[tuple[Callable[..., Any] | None, Any]] = []
    for node in ordered(rule):
        places[node] = len(found)
        if isinstance(node, Application):
            function = FUNCTIONS[node.symbol].computed(whole=False)
            found.append((function, tuple(places[operand] for operand in node.operands)))
        elif isinstance(node, Scalar):
            found.append((None, node.name))
        else:
            assert isinstance(node, Constant)
            found.append((None, node.value))
    return found
