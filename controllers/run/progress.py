# SPDX-License-Identifier: MIT
"""How far a run is, for people: a bar in one line, rewritten, or a line now and then.

The bar is for terminals and notebooks; files get lines.
"""
from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, TextIO, TypeAlias, Union

from controllers.engine import Progress
from hitmap.comm import Communicator

REWRITE_S = 0.1     # between two updates
PLAIN_S = 5.0
WIDTH = 20          # of the bar, in characters


class Bar(Protocol):
    """The part of a bar of tqdm's that is used."""

    total: Any      # how many steps there are; None: not known yet

    def update(self, n: int) -> object:
        """So many steps more are done."""


# What may be told how far a run is.
Watcher: TypeAlias = Union[bool, Progress, Bar, None]


def told_by(watcher: Watcher, comm: Communicator) -> Progress | None:
    """What is called with the steps done and their total; None for nobody.

    True stands for a bar of rank 0 alone.  TypeError for what is neither a function nor a bar.
    """
    if watcher is None or isinstance(watcher, bool):
        wanted = watcher and comm.rank == 0 and sys.stderr is not None
        return ProgressBar(sys.stderr) if wanted else None
    if hasattr(watcher, "update") and hasattr(watcher, "total"):
        return _Updates(watcher)
    if callable(watcher):
        return watcher
    raise TypeError(
        f"progress is True, a function, or a bar with `update` and `total`, got {watcher!r}"
    )


class ProgressBar:
    """Call it with the steps done and their total, as often as you like."""

    def __init__(self, stream: TextIO, now: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._now = now
        in_notebook = type(stream).__module__.startswith("ipykernel")
        self._rewrites = in_notebook or stream.isatty()
        self._interval_s = REWRITE_S if self._rewrites else PLAIN_S
        self._start = self._last = now()
        self._width = 0

    def __call__(self, done: int, total: int) -> None:
        now = self._now()
        if done < total and now - self._last < self._interval_s:
            return
        self._last = now
        self._write(describe(done, total, now - self._start), done, total)

    def _write(self, line: str, done: int, total: int) -> None:
        if self._rewrites:
            line = f"{bar(done, total)} {line}"
            padding = " " * (self._width - len(line))
            self._stream.write(f"\r{line}{padding}" + ("\n" if done == total else ""))
            self._width = len(line)
        else:
            self._stream.write(f"{line}\n")
        self._stream.flush()


class _Updates:
    """Tells a bar what is new."""

    def __init__(self, bar: Bar) -> None:
        self._bar = bar
        self._done = 0

    def __call__(self, done: int, total: int) -> None:
        if self._bar.total is None:
            self._bar.total = total
        self._bar.update(done - self._done)
        self._done = done


def bar(done: int, total: int) -> str:
    """
    >>> bar(500, 2000)
    '[#####---------------]'
    """
    n_full = WIDTH * done // total if total else WIDTH
    return f"[{'#' * n_full}{'-' * (WIDTH - n_full)}]"


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
