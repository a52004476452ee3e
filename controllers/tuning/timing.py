# SPDX-License-Identifier: MIT
"""How often to measure, in which order, and what to make of the times."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import TypeVar

T = TypeVar("T")

ROUNDS = 4          # turns of each configuration in a batch
VISIT_S = 2e-3      # of measured launches in a turn, at least
MIN_LAUNCHES, MAX_LAUNCHES = 2, 64      # ... and their number, besides the first


def turns(batch: Sequence[T]) -> Iterator[T]:
    """The members of a batch in turn, forwards and backwards.

    >>> "".join(turns("abc"))
    'abccbaabccba'
    """
    for number in range(ROUNDS):
        yield from batch if number % 2 == 0 else reversed(batch)


def n_launches(seconds: float) -> int:
    """Launches of so many seconds in a turn, the first of which does not count.

    It finds in the caches what another configuration has left there.

    >>> n_launches(10e-3), n_launches(100e-6), n_launches(0.0)
    (3, 21, 65)
    """
    wanted = round(VISIT_S / seconds) if seconds else MAX_LAUNCHES
    return 1 + min(max(wanted, MIN_LAUNCHES), MAX_LAUNCHES)


def typical(times: Sequence[float]) -> float:
    """The median of the times without the longest third: interruptions only make them longer.

    >>> typical([5.0, 1.0, 1.5, 90.0, 2.0, 70.0])
    1.75
    """
    kept = sorted(times)[: -(-2 * len(times) // 3)]
    return median(kept)
