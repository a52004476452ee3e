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

from controllers.tuning.exhaustive import exhaustive
from controllers.tuning.hill_climb import hill_climb
from controllers.tuning.random_order import random_order
from controllers.tuning.space import C, Space

Search: TypeAlias = Callable[[Space[C], Mapping[C, float], Random], Iterator[Sequence[C]]]

SEARCHES = ("hill_climb", "random", "exhaustive")


def search_named(name: str) -> Search[C]:
    """The search called `name`, one of SEARCHES."""
    if name not in SEARCHES:
        raise ValueError(f"the search is one of {', '.join(SEARCHES)}, got {name!r}")
    if name == "random":
        return random_order
    return exhaustive if name == "exhaustive" else hill_climb
