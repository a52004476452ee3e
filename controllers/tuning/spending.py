# SPDX-License-Identifier: MIT
"""A budget of seconds that busy machines keep too: nothing begins that would probably exceed it."""
from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

now = time.monotonic


class Spending:
    """What of `budget_s` seconds is spent, in pieces of work that take about as long each.

    >>> spending = Spending(10.0)
    >>> spending.spend(4.0); spending.end_piece(); spending.fits
    True
    >>> spending.spend(3.0); spending.end_piece(); spending.fits
    False
    """

    def __init__(self, budget_s: float) -> None:
        self.budget_s, self.spent_s = budget_s, 0.0
        self._piece_s = self._longest_s = 0.0

    @property
    def left_s(self) -> float:
        """What may be spent yet, at least 0."""
        return max(0.0, self.budget_s - self.spent_s)

    @property
    def fits(self) -> bool:
        """Whether one more piece ends in time, if it takes as long as the longest one so far."""
        return 0 < self.left_s >= self._longest_s

    def spend(self, seconds: float) -> None:
        """So long has been worked on the present piece."""
        self.spent_s += seconds
        self._piece_s += seconds

    def end_piece(self) -> None:
        """What is spent from now on belongs to the next piece."""
        self._longest_s = max(self._longest_s, self._piece_s)
        self._piece_s = 0.0

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Spend what passes in the meantime."""
        start = now()
        try:
            yield
        finally:
            self.spend(now() - start)

    @contextmanager
    def piece(self) -> Iterator[None]:
        """Spend what passes in the meantime, on a piece."""
        with self.counting():
            yield
        self.end_piece()
