# SPDX-License-Identifier: MIT
"""Which sides get some units though it is foreseen that they are of no use: times may be unlucky.

What is known of a side that gets nothing would stay as it is, and keep it out for ever.
"""
from __future__ import annotations

from collections.abc import Sequence

from controllers.pool.hybrid.division import End, end_of, trial

FIRST_TURN = 4      # times that a side is left out, before it is tried again
MOST_KNOWN = 256    # kinds of tasks


class Tries:
    """By how many times in a row each side was left out, for each kind of task."""

    def __init__(self) -> None:
        self._left_out: dict[object, list[int]] = {}

    def counts(
        self, key: object, ends: Sequence[End], best: Sequence[int], is_new: Sequence[bool]
    ) -> list[int]:
        """The best counts, or with units of who has most for sides that are tried.

        A side that is new gets a `trial`.  One that has got nothing for 4, 8, 16 ... times gets
        what is foreseen to take half as long as the whole, so that more is known then; the first
        time a trial, if that is over in time should it take as long as a part of all.

        >>> tries, ends = Tries(), [lambda a, b: 1.0 * (b - a), lambda a, b: 16.0 * (b - a)]
        >>> [tries.counts("it", ends, (64, 0), [False, False])[1] for _ in range(8)]
        [0, 0, 0, 2, 0, 0, 0, 2]
        >>> ends[1] = lambda a, b: 99.0 + (b - a)   # were it true, no unit would be over in time
        >>> [tries.counts("other", ends, (64, 0), [False, False])[1] for _ in range(8)]
        [0, 0, 0, 1, 0, 0, 0, 0]
        """
        if len(self._left_out) >= MOST_KNOWN:
            self._left_out.clear()
        left_out = self._left_out.setdefault(key, [0] * len(best))
        found, whole_s, few = list(best), end_of(ends, best), trial(sum(best))
        for number, count in enumerate(best):
            left_out[number] = 0 if count else left_out[number] + 1
            most = max(range(len(found)), key=found.__getitem__)
            if count or found[most] <= few:
                continue
            n_units = few * is_new[number]
            if not n_units and is_turn(left_out[number]):
                fits = [ends[number](0, k) <= whole_s / 2 for k in range(1, found[most])]
                n_units = sum(fits) or sum(
                    ends[number](0, k) <= whole_s for k in range(1, few + 1)
                )
                if left_out[number] == FIRST_TURN and not n_units:
                    n_units = few * (ends[number](0, sum(best)) * few / sum(best) <= whole_s)
            found[most] -= n_units
            found[number] = n_units
        return found


def is_turn(n_times: int) -> bool:
    """Whether what was left out so many times in a row is to be tried now."""
    return n_times >= FIRST_TURN and n_times & (n_times - 1) == 0
