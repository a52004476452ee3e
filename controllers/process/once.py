# SPDX-License-Identifier: MIT
"""How long something took, and how long it would take again: without what is done once.

Kernels are built, and what is alike is tried, once for a program on a device.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class _Once(threading.local):
    """seconds: that this thread has spent on such things so far; memory_s: on new memory."""

    seconds = memory_s = 0.0
    spends = False


_once = _Once()


@contextmanager
def done_once() -> Iterator[None]:
    """What is done in here is not done again."""
    outer, start_s = _once.spends, time.perf_counter()
    _once.spends = True
    try:
        yield
    finally:
        _once.spends = outer
        if not outer:
            _once.seconds += time.perf_counter() - start_s


@contextmanager
def done_for_memory() -> Iterator[None]:
    """What is done in here is done again for new memory alone."""
    start = Start.now()
    try:
        yield
    finally:
        _once.memory_s += start.took().again_s


class Took(NamedTuple):
    """Seconds, how many of them it would take again, and how many on the same memory."""

    seconds: float
    again_s: float
    here_s: float


class Start(NamedTuple):
    """When something was begun with, by a thread; `took` is asked by the same one.

    >>> start = Start.now()
    >>> with done_once():
    ...     time.sleep(0.01)
    >>> took = start.took()
    >>> took.seconds > 0.01, took.again_s < took.seconds - 0.0099
    (True, True)
    """

    at_s: float
    once_s: float
    memory_s: float

    @classmethod
    def now(cls) -> Start:
        """Of what begins here."""
        return cls(time.perf_counter(), _once.seconds, _once.memory_s)

    def took(self) -> Took:
        """Until now."""
        seconds = time.perf_counter() - self.at_s
        again_s = seconds - (_once.seconds - self.once_s)
        return Took(seconds, again_s, again_s - (_once.memory_s - self.memory_s))
