# SPDX-License-Identifier: MIT
"""Executions of one kind in one pool: the estimator is told of them, and its answers are kept."""
from __future__ import annotations

from typing import TypeAlias

from controllers.estimates.estimate import Estimate
from controllers.estimates.estimates import ENOUGH, Estimates
from controllers.estimates.history import History
from controllers.estimates.task_key import Case, TaskKey, Work
from controllers.pool.lately import FEWEST, Lately

MOST_BUFFERED = 8   # newest executions that the estimator is told at once
FEW = 8             # of which the estimator is told before the next estimate
MOST_FOUND = 1024   # estimates that are remembered
Execution: TypeAlias = "tuple[float, int, float, Work | None]"  # its case, and how long it took


class Executions:
    """Those of one key, for who holds the pool's lock.

    The estimator is told of them when there are a quarter more: it looks for how times grow with
    sizes then, which takes milliseconds, and is done by `refresh` while devices compute, except
    for the first few.  Estimates of kernels are as much longer or shorter as the newest ones were.
    n: how many there were in this pool; looks_at: how many there are when the estimator is told.
    """

    def __init__(self, estimates: Estimates, key: TaskKey) -> None:
        self._estimates, self._key = estimates, key
        self.n = 0
        self.looks_at = 1
        self._n_looks = 0
        self._untold: list[Execution] = []
        self._loaded = False
        self._first: Execution | None = None
        self._found: dict[tuple[float, int], Estimate | None] = {}
        self._largest: float | None = None
        self._lately = Lately()

    def add(self, execution: Execution) -> bool:
        """One more has taken so long; whether it is time for `refresh`."""
        self.n += 1
        self._untold.append(execution)
        del self._untold[:-MOST_BUFFERED]
        return self.n >= self.looks_at

    def add_of_kernel(self, execution: Execution, *, is_piece: bool = False) -> bool:
        """The same; the first one loads the kernel, too: it counts only if no other one follows.

        is_piece: of a share, which is told as well when it is over.
        """
        if self._loaded:
            self._first = None
            if not is_piece:
                self._lately.fresh.append(execution)
            return self.add(execution) or len(self._lately.fresh) >= FEWEST
        self._loaded, self._first = True, execution
        return False

    def add_first(self) -> None:
        """No other one will follow."""
        if self._first is not None:
            self.add(self._first)
            self._first = None

    def estimate(self, size: float, units: int) -> Estimate | None:
        """How long one takes, by the estimator; None where nothing is known."""
        if self.looks_at <= self.n < FEW:
            self._look()
        case, factor = (size, units), self._lately.factor
        found = self._found[case] if case in self._found else self._usual(size, units)
        return found if found is None or factor == 1 else found.times(factor)

    def _usual(self, size: float, units: int) -> Estimate | None:
        """By all executions, whatever the newest ones say."""
        case = size, units
        if case not in self._found:
            if len(self._found) >= MOST_FOUND:
                self._found.clear()
            self._found[case] = self._estimates.estimate(self._key, Case(size, units))
        return self._found[case]

    def refresh(self) -> None:
        """Have it look, so that the next estimate takes no time, and see how fast they are now."""
        if self.n >= self.looks_at:
            self._look()
            self._estimates.growth(self._key)
        else:
            self._lately.compare(self._usual)

    def _look(self) -> None:
        self.looks_at = self.n + max(1, self.n // 4)
        self.tell()
        self._found.clear()
        self._largest = None
        self._lately.begin_anew()
        self._lately.compare(self._usual)
        self._n_looks += 1

    def tell(self) -> None:
        """Tell the estimator now."""
        for size, units, seconds, work in self._untold:
            self._estimates.add(self._key, Case(size, units), seconds, work)
        self._untold.clear()

    def history(self) -> History:
        """All that is known of them."""
        self.tell()
        return self._estimates.history(self._key)

    @property
    def largest(self) -> float:
        """The largest size of those from which estimates follow; 0 where there is none."""
        if self._largest is None:
            sizes = (case.size for case in self._estimates.history(self._key).cases)
            self._largest = max(sizes, default=0.0)
        return self._largest

    @property
    def is_known(self) -> bool:
        """Whether there was ever one."""
        return self._estimates.knows(self._key)

    @property
    def is_new(self) -> bool:
        """Whether there are so few that all of them may have been disturbed."""
        return self.n < ENOUGH and self._estimates.n_kept(self._key) < ENOUGH

    @property
    def stamp(self) -> int:
        """The number of what is usual; another one when that will change with the next estimate."""
        return -1 if self.looks_at <= self.n < FEW else self._n_looks

    @property
    def factor(self) -> float:
        """How many times as long as usual they take just now, which is in all estimates."""
        return self._lately.factor
