# SPDX-License-Identifier: MIT
"""How often something is done while steps run."""
from __future__ import annotations

import math
from dataclasses import dataclass

from hitmap.argument import number, whole


@dataclass(frozen=True)
class Every:
    """After so many steps, so many seconds of wall clock, or so much time of the steps."""

    steps: int | None = None
    seconds: float | None = None
    time: float | None = None


def every(
    *, steps: int | None = None, seconds: float | None = None, time: float | None = None
) -> Every:
    """How often something is done while steps run: after so many steps, or seconds.

    time: after the first step at or beyond each multiple of so much time, as steps count it.
    ValueError or TypeError unless one of the three is given, and above 0.

    >>> every(steps=100)
    Every(steps=100, seconds=None, time=None)
    """
    given = {"steps": steps, "seconds": seconds, "time": time}
    named = [name for name, value in given.items() if value is not None]
    if len(named) != 1:
        raise ValueError(
            f"every takes one of steps=, seconds= and time=, got {' and '.join(named) or 'none'}"
        )
    if steps is not None:
        return Every(steps=whole(steps, "steps", 1))
    name = named[0]
    found = float(number(given[name], name))
    if not (math.isfinite(found) and found > 0):
        raise ValueError(f"{name} must be above 0 and finite, got {found}")
    return Every(seconds=found) if name == "seconds" else Every(time=found)
