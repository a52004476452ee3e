# SPDX-License-Identifier: MIT
"""How far a run is, on stderr: one line, rewritten, on a terminal; else a line now and then."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import TextIO

TERMINAL_S = 0.1    # between two updates
PLAIN_S = 5.0


class Progress:
    """Call it with the steps done and their total, as often as you like."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        self._terminal = stream.isatty()
        self._interval_s = TERMINAL_S if self._terminal else PLAIN_S
        self._start = self._last = now()
        self._width = 0

    def __call__(self, done: int, total: int) -> None:
        now = self._now()
        if done < total and now - self._last < self._interval_s:
            return
        self._last = now
        self._write(describe(done, total, now - self._start), done == total)

    def _write(self, line: str, is_last: bool) -> None:
        if self._terminal:
            padding = " " * (self._width - len(line))
            self._stream.write(f"\r{line}{padding}" + ("\n" if is_last else ""))
            self._width = len(line)
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()


def describe(done: int, total: int, elapsed_s: float) -> str:
    """
    >>> describe(500, 2000, 3.0)
    'step 500 of 2000 (25%), 3 s, 9 s left'
    >>> describe(2000, 2000, 12.34)
    'step 2000 of 2000 (100%), 12 s'
    """
    share = done / total if total else 1.0
    line = f"step {done} of {total} ({share:.0%}), {elapsed_s:.0f} s"
    return f"{line}, {elapsed_s * (1 - share) / share:.0f} s left" if 0 < share < 1 else line
