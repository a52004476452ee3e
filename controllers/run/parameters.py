# SPDX-License-Identifier: MIT
"""The parameters of a program as a computation has them, and the time that its steps take."""
from __future__ import annotations

from collections.abc import Mapping

from controllers.engine import Engine


class Parameters:
    """The values that were given; all others are the defaults of the program."""

    def __init__(self, given: Mapping[str, float]) -> None:
        self._given = dict(given)

    def change(self, engine: Engine, scalars: Mapping[str, float]) -> None:
        """From the next step on `scalars` have these values.

        ValueError or TypeError, and nothing is changed, where one cannot, or one has none.
        """
        rules = engine.plan.program.rules
        known = {**self._given, **rules.given(scalars)}
        engine.numbers.change(rules.complete(known), engine.n_steps)
        self._given = known
