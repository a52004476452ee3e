# SPDX-License-Identifier: MIT
"""When something has come to rest: a result that no longer changes, for `until=`."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from hitmap.argument import number, wrong


def steady(result: str, tolerance: float) -> Callable[[Any], bool]:
    """For `until=`: whether a result differs from what it was when last asked by little.

    By at most `tolerance` times its size.  A run or a repeat asks after every `check_every`; the
    first time it says no: `run.run(until=ct.steady("energy", 1e-4), check_every=99, at_most=9999)`.
    """
    if not isinstance(result, str):
        remedy = 'write steady("energy", 1e-4)'
        raise wrong("steady: result", "the name of a result", result, remedy)
    limit = float(number(tolerance, "steady: tolerance"))
    if not (limit >= 0 and math.isfinite(limit)):
        raise ValueError(f"steady: the tolerance is finite and not negative, got {limit}")
    last: tuple[int, int, float] | None = None      # the step, the count in a repeat, the result

    def holds(now: Any) -> bool:
        nonlocal last
        step, count, value = now.step, getattr(now, "count", 0), float(getattr(now, result))
        before, last = last, (step, count, value)
        if before is None or not _goes_on(before, step, count):
            return False
        return abs(value - before[2]) <= limit * abs(value)

    return holds


def _goes_on(before: tuple[int, int, float], step: int, count: int) -> bool:
    """Whether this is the same run as before, or the same repeat: a later step, a higher count."""
    return before[0] == step and before[1] < count if count else before[0] < step
