# SPDX-License-Identifier: MIT
"""The search that leaves nothing out."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from controllers.tuning.space import C, Space

BATCH = 8   # configurations that are compared with the default at a time


def exhaustive(
    space: Space[C], known: Mapping[C, float], random: Random
) -> Iterator[Sequence[C]]:
    """All configurations, in their order."""
    every = space.configurations
    yield from (every[first : first + BATCH] for first in range(0, len(every), BATCH))
