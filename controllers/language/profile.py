# SPDX-License-Identifier: MIT
"""Profiles: values beyond the grid as a Python function of coordinates and scalars says them."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from controllers.language.grid import Grid
from controllers.language.half_points import Half, settled
from controllers.language.location import line_of, located
from controllers.language.value import Value, is_value, plain
from controllers.program import rule
from controllers.program.expression import Coordinate, Expression, Scalar
from controllers.program.rule import Fixed, Inside, Rule
from hitmap.argument import wrong


@dataclass(frozen=True)
class Profile(Rule):
    """`Fixed`, as soon as a grid says what the parameters of its function are."""

    function: Callable[..., Any]

    def on(self, grid: Grid, half: Half) -> Fixed:
        """The rule of a field on a grid, which lies at half points along some axes.

        The function is called once, with what its parameters stand for.
        """
        given = {name: Value(Coordinate(axis), grid.places) for axis, name in enumerate(grid.axes)}
        names = inspect.signature(self.function).parameters
        what = f"fixed ({line_of(self.function)})"
        with located("fixed", self.function):
            found = self.function(
                **{name: given.get(name, Value(Scalar(name), grid.places)) for name in names}
            )
        if not is_value(found) or (isinstance(found, Value) and found.node.is_condition):
            raise wrong(what, "a value of coordinates and scalars", found)
        return Fixed(settled(found.node, half) if isinstance(found, Value) else plain(found))

    def outside(self, inside: Inside, distance: int) -> Expression:
        """It has no value before a grid is known."""
        raise ValueError(
            f"fixed ({line_of(self.function)}): a function of coordinates is for programs of "
            f"steps on a grid; give a number, or an expression of Coordinate and Scalar"
        )

    def __str__(self) -> str:
        return f"fixed({getattr(self.function, '__name__', 'a function')})"


def fixed(value: rule.Value | Callable[..., rule.Value]) -> Rule:
    """The value of all cells outside: a number, or a function of coordinates and scalars.

    The parameters of the function are axes of the grid, `t`, `dt` and scalars of the steps, by
    their names.  It is called once, as a step is; each cell outside has the value at its own
    coordinates, in the step that reads it.  `Coordinate` and `Scalar` make expressions by hand.

    >>> print(fixed(0.5), fixed(lambda x, t: x + t))
    fixed(0.5) fixed(<lambda>)
    """
    return Profile(value) if callable(value) else rule.fixed(value)
