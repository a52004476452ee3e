# SPDX-License-Identifier: MIT
"""Work that takes as long as it takes: a kernel that is built, a file that is read.

A watchdog does not count the time of it, and says what it is.
"""
from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_under_way: dict[object, tuple[str, float]] = {}    # of the process, by a key of their own


@contextmanager
def errand(what: str) -> Iterator[None]:
    """`what` is under way in this block."""
    key = object()
    _under_way[key] = what, time.monotonic()
    try:
        yield
    finally:
        del _under_way[key]


def errands() -> list[str]:
    """What is under way, and for how long.

    >>> with errand("the build of a kernel"):
    ...     errands()
    ['the build of a kernel: under way, ... s']
    """
    now = time.monotonic()
    return [f"{what}: under way, {now - start:.3g} s" for what, start in [*_under_way.values()]]
