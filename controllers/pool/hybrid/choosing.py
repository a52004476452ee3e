# SPDX-License-Identifier: MIT
"""Which division of a task is taken, by what is foreseen and by how long whole tasks have taken.

What is foreseen adds up parts.  How much sides hinder each other, and what it costs to divide at
all, only whole tasks tell: those that were divided alike, and what lies near as much longer.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from controllers.pool.hybrid.division import LEAST_GAIN

ENOUGH = 3          # executions of a division, of which some may have been disturbed
LOOK = 0.5          # what is foreseen to be so much worse than the best one is looked at
REACH = 0.3         # by so much the best one of divided ones may be worse, to look around it
DRIFT = 1.0         # by so much what is foreseen of a division may exceed that of the best one

Counts: TypeAlias = "tuple[int, ...]"   # units of each side


def chosen(
    foreseen: Callable[[Counts], float], best: Counts, last: Counts | None,
    times: Mapping[Counts, Sequence[float]], delayed: Callable[[Counts], float] = lambda one: 0.0,
) -> Counts:  # fmt: skip
    """The division to take; `best` is foreseen to be the best one, `last` was the last one.

    What might be better than all that was executed so far is tried, a few times each; then that
    remains which took least.  foreseen: seconds of a division.  times: how long executions have
    taken, the newest last.  delayed: by how much longer now, as sides are busy.

    >>> seconds = {(4, 4): 1.0, (0, 8): 1.9}
    >>> chosen(lambda counts: seconds.get(counts, 9.0), (4, 4), None, {})
    (4, 4)
    >>> chosen(lambda counts: seconds.get(counts, 9.0), (4, 4), (4, 4), {(4, 4): [2.1, 2.0, 2.2]})
    (0, 8)
    """
    took = {one: usual(some) for one, some in times.items()}
    least_s = min(took.values(), default=float("inf"))
    known = {one: foreseen(one) for one in took}
    longer = {one: took[one] / known[one] for one in took if 0 < known[one] < float("inf")}
    if last is not None and foreseen(last) <= (1 + DRIFT) * foreseen(best):
        if len(times.get(last, ())) < ENOUGH and delayed(last) <= LEAST_GAIN * foreseen(last):
            return last

    def expected(counts: Counts) -> float:
        seconds = took.get(counts)
        if seconds is None:
            seconds = foreseen(counts) * _nearby(counts, longer)
        return delayed(counts) + seconds

    looks = {*_alone(best), *_around(took, (1 + REACH) * least_s)}
    new = [one for one in looks if one not in took and expected(one) <= (1 + LOOK) * least_s]
    if not took or (best not in took and expected(best) <= (1 - LEAST_GAIN) * least_s):
        new.append(best)
    found = min(sorted(new or {best, *took}), key=expected)
    if not new and last is not None and expected(last) <= (1 + LEAST_GAIN) * expected(found):
        return last
    return found


def usual(seconds: Sequence[float]) -> float:
    """Below which a quarter of executions lies, as what disturbs them makes them longer alone.

    >>> usual([5.0, 9.0, 7.0]), usual([5.0, 9.0, 7.0, 6.0, 6.5, 8.0])
    (5.0, 6.0)
    """
    return sorted(seconds)[(len(seconds) - 1) // 4]


def _nearby(counts: Counts, longer: Mapping[Counts, float]) -> float:
    """How many times as long as foreseen those take that lie near, the nearer the more it counts.

    A side alone says nothing on divided tasks, nor these on it.
    """
    if not _is_divided(counts):
        return 1.0
    weights = {
        one: 1 / sum((a - b) ** 2 for a, b in zip(one, counts)) for one in longer
        if _is_divided(one) and one != counts
    }  # fmt: skip
    if not weights:
        return 1.0
    return sum(longer[one] * weight for one, weight in weights.items()) / sum(weights.values())


def _is_divided(counts: Counts) -> bool:
    return sum(count > 0 for count in counts) > 1


def _alone(counts: Counts) -> Iterator[Counts]:
    for number in range(len(counts)):
        yield tuple(sum(counts) if side == number else 0 for side in range(len(counts)))


def _around(took: Mapping[Counts, float], most_s: float) -> Iterator[Counts]:
    """Those that differ by a unit from the best of what was divided, if that took no longer."""
    tried = sorted(one for one in took if _is_divided(one) and took[one] <= most_s)
    counts = min(tried, key=took.__getitem__, default=())
    for giving, n in enumerate(counts):
        for taking in range(len(counts)):
            if taking != giving and n:
                moved = list(counts)
                moved[giving] -= 1
                moved[taking] += 1
                yield tuple(moved)
