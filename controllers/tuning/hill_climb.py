# SPDX-License-Identifier: MIT
"""The search that goes uphill: from the default, one parameter at a time, one notch at a time.

    lanes   . . . .         0        the default
            2 . . .         1, 2     both notches of one parameter: 2 is better,
            0 6 4 .         3        so on in that direction, until it is not
            1 5 . .         4, 5 ..  the next parameter, from the best so far
            steps

When no parameter alone helps, two at once are moved; then it starts again from a random place.
"""
from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import combinations, product
from math import inf
from random import Random
from typing import TypeAlias

from controllers.tuning.space import C, Space

_Move: TypeAlias = Sequence[tuple[int, int]]    # numbers of parameters, each with a direction


def hill_climb(
    space: Space[C], known: Mapping[C, float], random: Random
) -> Iterator[Sequence[C]]:
    """From the default uphill, and when that ends from random places, until all are known."""
    return climbs(space, known, random, space.default)


def climbs(
    space: Space[C], known: Mapping[C, float], random: Random, start: C
) -> Iterator[Sequence[C]]:
    """Uphill from `start`, then from random places, until all are known."""
    while True:
        yield from _climb(space, known, start)
        unknown = [config for config in space.configurations if config not in known]
        if not unknown:
            return
        start = random.choice(unknown)
        yield [start]


def _climb(space: Space[C], known: Mapping[C, float], start: C) -> Iterator[Sequence[C]]:
    """Uphill from `start`, to where no neighbour is better."""
    numbers = range(len(space.parameters))
    alone = [[[(number, -1)], [(number, 1)]] for number in numbers]
    together = [
        [[(one, down), (other, up)] for down, up in product((-1, 1), repeat=2)]
        for one, other in combinations(numbers, 2)
    ]
    best, before = start, None
    while best != before:
        before = best
        for moves in alone:
            best = yield from _along(space, known, best, moves)
        if best != before:
            continue
        for moves in together:
            best = yield from _along(space, known, best, moves)
            if best != before:
                break


def _along(
    space: Space[C], known: Mapping[C, float], best: C, moves: Sequence[_Move]
) -> Generator[Sequence[C], None, C]:
    """Move by any of `moves` as long as that helps; returns where that leads."""
    while True:
        near = [other for move in moves if (other := space.neighbour(best, *move)) is not None]
        yield near
        better = min([best, *near], key=lambda config: known.get(config, inf))
        if better == best:
            return best
        best = better
