# SPDX-License-Identifier: MIT
"""Interleaved measurements: A B C, C B A, A B C ...: what a machine's mood does, it does to all.

Each contestant has the same share of the time.  A slow one takes part in the first rounds alone.
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

ROUNDS, FEW_ROUNDS = 7, 3
GROWTH = 4
MIN_STEP_S = 1e-9       # of a clock that stands still
SLOW_S = 1.0            # a first step that took less may have compiled something


@dataclass(frozen=True)
class Entrant:
    """What takes turns.

    run: computes so many steps.  n_at_once: turns are of multiples of so many steps.  step_s:
    at most so many seconds a step; the first ones may take longer than those that follow.
    """

    run: Callable[[int], None]
    n_at_once: int
    step_s: float


def interleaved(
    entrants: Sequence[Entrant], seconds: float, clock: Callable[[], float] = time.perf_counter
) -> list[list[float]]:
    """Seconds per step, for each entrant one figure per round that it took part in.

    `seconds` is for all together; an entrant of which not even a turn fits still has one.
    """
    share = seconds / max(1, len(entrants))
    steps_s = [_step_s(one, share, clock) for one in entrants]
    lengths = [
        one.n_at_once * max(1, round(share / ROUNDS / (step_s * one.n_at_once)))
        for one, step_s in zip(entrants, steps_s)
    ]
    counts = [_rounds(share, step_s * n) for step_s, n in zip(steps_s, lengths)]
    times: list[list[float]] = [[] for _ in entrants]
    for number in range(ROUNDS):
        order = range(len(entrants))
        for which in order if number % 2 == 0 else reversed(order):
            if number < counts[which]:
                start = clock()
                entrants[which].run(lengths[which])
                times[which].append((clock() - start) / lengths[which])
    return times


def ratio(base: Sequence[float], own: Sequence[float]) -> float:
    """How many times as fast as the base, by the rounds in which both took part.

    >>> ratio([2.0, 4.0, 2.0], [1.0, 1.0])
    3.0
    """
    return statistics.median(a / b for a, b in zip(base, own))


def _rounds(share: float, turn_s: float) -> int:
    """How many turns an entrant has: a few at the least, unless not even one fits."""
    return min(ROUNDS, max(FEW_ROUNDS, round(share / turn_s))) if turn_s <= share else 1


def _step_s(one: Entrant, share: float, clock: Callable[[], float]) -> float:
    """Seconds of a step, from runs that grow until they take half a turn."""
    step_s, n_steps = one.step_s, one.n_at_once
    if step_s * n_steps > max(share, SLOW_S):
        return step_s
    while True:
        start = clock()
        one.run(n_steps)
        step_s = max((clock() - start) / n_steps, MIN_STEP_S)
        if step_s * n_steps >= share / ROUNDS / 2:
            return step_s
        n_steps *= GROWTH
