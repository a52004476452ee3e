# SPDX-License-Identifier: MIT
"""When a run has decided on shares: each decision ends a window."""
from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deciding() -> Iterator[list[int]]:
    """In here the list gets the step of each decision on shares, which ends a window."""
    logger, steps = logging.getLogger("controllers.balance.balancer"), list[int]()

    class Listening(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if isinstance(record.args, tuple) and "balance after step" in record.msg:
                steps.append(int(str(record.args[0])))

    handler, level = Listening(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield steps
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
