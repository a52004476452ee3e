# SPDX-License-Identifier: MIT
"""The search that draws lots: for spaces in which neighbours say nothing of each other."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from controllers.tuning.exhaustive import BATCH
from controllers.tuning.space import C, Space


def random_order(
    space: Space[C], known: Mapping[C, float], random: Random
) -> Iterator[Sequence[C]]:
    """All configurations, the default first and the others in random order."""
    others = [*space.configurations[1:]]
    random.shuffle(others)
    every = [space.default, *others]
    yield from (every[first : first + BATCH] for first in range(0, len(every), BATCH))
