# SPDX-License-Identifier: MIT
"""Whether tasks that are cut by rows are worth dividing: what sides cost each other tell wholes.

What is foreseen adds up what each side takes.  Functions that wait for the interpreter's lock, and
memory that both sides use, make a divided task longer, up to longer than one side alone.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence

from controllers.pool.hybrid.division import End, end_of
from controllers.pool.hybrid.outcome import When, watch
from controllers.pool.hybrid.tries import is_turn
from controllers.pool.job import Job

LOOKS = 4           # divided executions that are known, the newest ones
MOST_KNOWN = 256    # kinds of tasks


class Worth:
    """By how many times as long as foreseen tasks of a kind took that were divided."""

    def __init__(self) -> None:
        self._kinds: dict[Hashable, _Kind] = {}

    def counts(
        self, key: Hashable, ends: Sequence[End], counts: Sequence[int],
        waits: Sequence[float] = (),
    ) -> list[int]:  # fmt: skip
        """These counts, or all for the best side alone, where dividing has not paid for a while.

        That is neither the last time, nor by the second best of the newest.  Then it is tried again
        the 4th, 8th, 16th ... time.  waits: how long sides are busy, in s.
        """
        known = self._kinds.get(key)
        alone = _best_alone(ends, sum(counts))
        if known is None or len(known.longer) < LOOKS or max(counts) == sum(counts):
            return [*counts]
        longer = min(sorted(known.longer)[1], known.longer[-1])
        more_s = (longer - 1) * end_of(ends, counts, waits)
        if end_of(ends, counts) + more_s < end_of(ends, alone):
            known.n_alone = 0
            return [*counts]
        known.n_alone += 1
        return [*counts] if is_turn(known.n_alone) else alone

    def watch(self, key: Hashable, foreseen_s: float, jobs: Sequence[Job]) -> None:
        """Learn how long the longest of these takes, all that a divided task is, one of each side.

        A side may still be at the task before when another one begins: that is no time of this one.
        """
        if not 0 < foreseen_s < float("inf"):
            return
        if len(self._kinds) >= MOST_KNOWN:
            self._kinds.clear()
        kind = self._kinds.setdefault(key, _Kind())

        def learn(whens: Sequence[When]) -> None:
            kind.longer.append(max(end - start for start, end in whens) / 1e9 / foreseen_s)

        watch(jobs, learn)


class _Kind:
    """longer: times what was foreseen, of the newest.  n_alone: in a row, since it does not pay."""

    def __init__(self) -> None:
        self.longer: deque[float] = deque(maxlen=LOOKS)
        self.n_alone = 0


def _best_alone(ends: Sequence[End], n: int) -> list[int]:
    """All units for the side that is done first with them."""
    best = min(range(len(ends)), key=lambda number: ends[number](0, n))
    return [n if number == best else 0 for number in range(len(ends))]
