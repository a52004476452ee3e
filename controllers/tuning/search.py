# SPDX-License-Identifier: MIT
"""Searches: which configurations to try next, given what is known of those tried before.

A search is a function of a space, of what is known, and of a source of random numbers.  It yields
batches of configurations; between two batches the caller measures what it can afford and adds it
to what is known: the time relative to the default, infinite where a configuration is of no use.
So one function serves a recorded table, a device, and a run under way.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import TypeAlias

from controllers.tuning.dichotomic import dichotomic
from controllers.tuning.hill_climb import hill_climb
from controllers.tuning.space import C, Space

Search: TypeAlias = Callable[[Space[C], Mapping[C, float], Random], Iterator[Sequence[C]]]

SEARCHES = ("hill_climb", "dichotomic", "random", "exhaustive")
BATCH = 8   # configurations that are compared with the default at a time, where all are tried


def search_named(name: str) -> Search[C]:
    """The search called `name`, one of SEARCHES."""
    if name not in SEARCHES:
        raise ValueError(f"the search is one of {', '.join(SEARCHES)}, got {name!r}")
    if name == "random":
        return random_order
    if name == "exhaustive":
        return exhaustive
    return dichotomic if name == "dichotomic" else hill_climb


def exhaustive(
    space: Space[C], known: Mapping[C, float], random: Random
) -> Iterator[Sequence[C]]:
    """All configurations, in their order: the search that leaves nothing out."""
    return _batches(space.configurations)


def random_order(
    space: Space[C], known: Mapping[C, float], random: Random
) -> Iterator[Sequence[C]]:
    """All, the default first and the others in random order: neighbours may tell nothing."""
    others = [*space.configurations[1:]]
    random.shuffle(others)
    return _batches([space.default, *others])


def _batches(every: Sequence[C]) -> Iterator[Sequence[C]]:
    return (every[first : first + BATCH] for first in range(0, len(every), BATCH))
