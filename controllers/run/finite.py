# SPDX-License-Identifier: MIT
"""Fields that are to stay finite: which, and where one is no more."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from controllers.program.program import FLOATS, Program
from controllers.run.ending import Until
from controllers.run.overview import Overview
from hitmap.agreement import on_all_ranks


def watched_fields(
    program: Program, stop_if: bool | str | Sequence[str], until: Until
) -> tuple[str, ...]:
    """The fields that are to stay finite; ValueError for what is none of floats."""
    floats = [field.name for field in program.fields if field.dtype in FLOATS]
    names = floats if stop_if is True else [stop_if] if isinstance(stop_if, str) else stop_if
    for name in names or ():
        if name not in floats:
            raise ValueError(
                f"stop_if={name!r}: there is no such field of floats; there are "
                f"{', '.join(floats) or 'none'}"
            )
    if names and callable(until):
        raise ValueError("stop_if= and until= a function are not done together; ask in until=")
    return tuple(names or ())


def not_finite(run: Overview, names: Sequence[str], before: int) -> FloatingPointError | None:
    """What is to be raised where a field has become NaN or infinite after `before`.  Collective."""
    for name in names:
        field = run[name]
        finite = np.abs(field) < np.inf
        if np.all(finite):
            continue
        at = np.unravel_index(int(np.argmin(np.where(finite, 1.0, 0.0))), field.shape)
        cell = tuple(map(int, at))
        steps = f"step {run.step}" if run.step == before + 1 else (
            f"one of the steps {before + 1} to {run.step}"
        )
        return on_all_ranks(FloatingPointError(
            f"{name} has become {field[cell]} at {cell} in {steps}; all steps before had finite "
            f"values, and the fields can be looked at"
        ))  # fmt: skip
    return None
