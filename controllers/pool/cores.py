# SPDX-License-Identifier: MIT
"""Cores of the host as a budget: who asks for some gets them in turn."""
from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class _Turn:
    def __init__(self, least: int, most: int) -> None:
        self.least, self.most, self.got = least, most, 0
        self.come = threading.Event()


class Cores:
    """So many cores, for several threads; nobody is overtaken, so nobody waits for ever.

    >>> cores = Cores(4)
    >>> with cores.held(1, 3) as first, cores.held(1, 3) as second:
    ...     first, second
    (3, 1)
    """

    def __init__(self, n: int) -> None:
        self.n = n
        self._free = n
        self._lock = threading.Lock()
        self._turns: deque[_Turn] = deque()

    @contextmanager
    def held(self, least: int, most: int) -> Iterator[int]:
        """As many as are free, at least `least` and at most `most`, or all that there are.

        Waits for them; nobody asks who holds some already.
        """
        got = self._take(min(least, self.n), most)
        try:
            yield got
        finally:
            self._give(got)

    def _take(self, least: int, most: int) -> int:
        with self._lock:
            if not self._turns and self._free >= least:
                got = min(most, self._free)
                self._free -= got
                return got
            turn = _Turn(least, most)
            self._turns.append(turn)
        turn.come.wait()
        return turn.got

    def _give(self, n: int) -> None:
        with self._lock:
            self._free += n
            while self._turns and self._turns[0].least <= self._free:
                turn = self._turns.popleft()
                turn.got = min(turn.most, self._free)
                self._free -= turn.got
                turn.come.set()
