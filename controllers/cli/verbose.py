# SPDX-License-Identifier: MIT
"""What the logger `controllers` has to say, on standard error."""
from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from hitmap.comm import Communicator


@contextmanager
def telling(comm: Communicator, wanted: bool) -> Iterator[None]:
    """In here each rank tells what it does, if that is wanted."""
    if not wanted:
        yield
        return
    logger, handler = logging.getLogger("controllers"), logging.StreamHandler()
    handler.setFormatter(logging.Formatter(f"rank {comm.rank}, %(name)s: %(message)s"))
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
