# SPDX-License-Identifier: MIT
"""When a pool learns from what has ended: while somebody waits anyway.

That takes milliseconds, in which nobody can begin a task: what was submitted last begins first.
"""
from __future__ import annotations

import threading
from collections.abc import Callable

from controllers.pool.forecast import Forecast

BEGINS_S = 1e-3     # until it has begun


def learn_meanwhile(
    forecast: Forecast, lock: threading.RLock, is_over: Callable[[float], bool]
) -> None:
    """Before a wait; `is_over` waits so many seconds at most, and says whether it has come."""
    if forecast.due and not is_over(BEGINS_S):
        with lock:
            forecast.refresh()
