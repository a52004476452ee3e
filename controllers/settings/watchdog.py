# SPDX-License-Identifier: MIT
"""What `watchdog=` may say, and the environment where it says nothing."""
from __future__ import annotations

import math
import os

VARIABLE = "CONTROLLERS_WATCHDOG"


def limit(watchdog: float | str | None) -> float | None:
    """Seconds, or None for no watchdog, which 0 says as well.

    >>> limit("2.5"), limit(0), limit(None)
    (2.5, None, None)
    """
    try:
        seconds = float(watchdog or 0)
    except ValueError:
        seconds = -1
    if not 0 <= seconds < math.inf:
        raise ValueError(f"the watchdog takes seconds, 0 for none, got {watchdog!r}")
    return seconds or None


def limit_of(watchdog: float | str | None) -> float | None:
    """The same, by default of what the environment says."""
    return limit(os.environ.get(VARIABLE) if watchdog is None else watchdog)
