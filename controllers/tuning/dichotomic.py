# SPDX-License-Identifier: MIT
"""The search that halves: along one parameter after another, what lies around the best so far.

    width   1 2 3 4 5 6 7 8 9
                  0                  the default, 4
              1         1            half way to both ends: neither is better
                2     2              half way to these: 6 is better, what is left lies above 4
                    3                and below 7: 5 is not better, so 6 is the best

So a parameter of n values takes about 2 log2(n) trials, where the climb takes as many as the best
lies away.  It relies on a single valley along each parameter; what that misses, the climb finds,
which goes on where no parameter is left to halve.
"""
from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from math import inf
from random import Random

from controllers.tuning.hill_climb import climbs
from controllers.tuning.space import C, Space


def dichotomic(
    space: Space[C], known: Mapping[C, float], random: Random
) -> Iterator[Sequence[C]]:
    """From the default by halves, and on from there as `hill_climb`, until all are known."""
    best, before = space.default, None
    while best != before:
        before = best
        for number in range(len(space.parameters)):
            best = yield from _halved(known, best, space.line(best, number))
    yield from climbs(space, known, random, best)


def _halved(
    known: Mapping[C, float], best: C, line: Sequence[C]
) -> Generator[Sequence[C], None, C]:
    """The best along `line`, on which `best` lies, if there is one valley."""
    low, at, high = -1, line.index(best), len(line)     # what is left lies between, without them
    while high - low > 2:
        below, above = (low + at) // 2, (at + high + 1) // 2
        near = [n for n in (below, above) if low < n < high and n != at]
        yield [line[n] for n in near]
        better = min([at, *near], key=lambda n: known.get(line[n], inf))
        if better == at:
            low, high = below, above
        else:
            low, high = (low, at) if better < at else (at, high)
        at = better
    return line[at]
