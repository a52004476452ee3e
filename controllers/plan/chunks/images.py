# SPDX-License-Identifier: MIT
"""Where the images lie that fields have on the host while chunks of them pass through devices.

In the host's memory as far as they may take it, in files beyond that.
"""
# docs/decisions/0066-images-in-files.md
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from controllers.plan.memory import PlanMemory
from controllers.plan.operation import Location


@dataclass(frozen=True)
class Images:
    """cap_bytes: what the images of each rank may take of its host's memory; None for all.

    folder: where the files are made.
    """

    cap_bytes: int | None = None
    folder: str = ""

    def placed(
        self, memories: Iterable[PlanMemory], locations: Sequence[Location]
    ) -> Iterator[PlanMemory]:
        """`memories`, those images in files for which there is no room after the ones before."""
        taken: Counter[int] = Counter()     # by rank
        for memory in memories:
            rank = locations[memory.home].rank
            is_beyond = self.cap_bytes is not None and (
                taken[rank] + memory.nbytes > self.cap_bytes
            )
            if memory.kind == "image" and is_beyond:
                yield replace(memory, in_file=True)
                continue
            taken[rank] += memory.nbytes * (memory.kind == "image")
            yield memory


IN_MEMORY = Images()
