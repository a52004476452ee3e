# SPDX-License-Identifier: MIT
"""Messages between ranks that arrive later than they do: a slow network on one machine."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

from controllers.device.event import COMPLETE, UNDER_WAY
from controllers.engine.network import MessageEnd


@contextmanager
def slow_messages(seconds: float) -> Iterator[None]:
    """In here what a rank receives is known to it so many seconds after it has arrived."""
    status: Callable[[MessageEnd], int] = vars(MessageEnd)["command_execution_status"].fget
    arrived: dict[MessageEnd, float] = {}

    def later(end: MessageEnd) -> int:
        if status(end) != COMPLETE or end._sends:
            return status(end)
        now = time.perf_counter()
        if now < arrived.setdefault(end, now) + seconds:
            return UNDER_WAY
        return COMPLETE

    start = MessageEnd.__call__

    def started(end: MessageEnd, *args: object) -> object:
        arrived.pop(end, None)
        return start(end, *args)    # type: ignore[arg-type]

    with patch.object(MessageEnd, "command_execution_status", property(later)), patch.object(
        MessageEnd, "__call__", started
    ):
        yield
