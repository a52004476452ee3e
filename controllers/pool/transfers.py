# SPDX-License-Identifier: MIT
"""How long bytes are on their way between the host's memory and a device's, by those that were."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence

from controllers.estimates.task_key import TaskKey
from controllers.pool.data import Touch
from controllers.pool.executions import Executions
from controllers.pool.lane import Lane
from controllers.pool.memories import Memories
from controllers.pool.newest import HOST_MEMORY

LINK_S, LINK_BYTES_S = 1e-5, 1e10   # of a transfer, until some were seen
SLOW_BYTES_S = 1e9      # of more bytes than were ever seen: what these took may be its start alone


class Transfers:
    """For who holds the pool's lock.  executions_of: those that are kept under a key.

    In a pool the first few tell, and what was kept; the others are for the next pool.
    """

    def __init__(
        self, lanes: Sequence[Lane], memories: Memories,
        executions_of: Callable[[TaskKey], Executions],
    ) -> None:  # fmt: skip
        self._lanes, self._memories, self._executions_of = lanes, memories, executions_of
        self._known: dict[tuple[int, bool], Executions | None] = {}

    def learn(self) -> None:
        """From those that are over."""
        moved = self._memories.moved
        while moved:
            memory, to_device, nbytes, seconds = moved.popleft()
            link = self._link(memory, to_device)
            if link is not None and nbytes:
                link.add((rounded(nbytes), 1, seconds, None))

    def where(self, touches: Iterable[Touch]) -> Hashable:
        """Where the newest cells are foreseen to be: while that is so, the same moves are."""
        if not self._memories.any:
            return ()
        self.learn()
        stamps = tuple(link and link.stamp for link in self._known.values())
        return stamps, *(touch.datum.foreseen.stale for touch in touches)

    def seconds(self, memory: int, nbytes: int, *, to_device: bool) -> float:
        """Of so many bytes from the host's memory to that of a device, or from there."""
        if memory == HOST_MEMORY:
            return 0.0
        link, size = self._link(memory, to_device), rounded(nbytes)
        found = None if link is None else link.estimate(size, 1)
        if link is None or found is None:
            return LINK_S + nbytes / LINK_BYTES_S
        if found.source == "regression" and size > (largest := link.largest):
            known = link.estimate(largest, 1) or found
            return min(found.seconds, known.seconds + (size - largest) / SLOW_BYTES_S)
        return found.seconds

    def _link(self, memory: int, to_device: bool) -> Executions | None:
        """None where no lane has this memory."""
        way = memory, to_device
        if way not in self._known:
            key = self._key(memory, to_device)
            self._known[way] = None if key is None else self._executions_of(key)
        return self._known[way]

    def _key(self, memory: int, to_device: bool) -> TaskKey | None:
        for lane in self._lanes:
            if lane.memory == memory and lane.device is not None:
                return TaskKey.of("a transfer", "to it" if to_device else "from it", lane.device)
        return None


def rounded(nbytes: int) -> float:
    """To an eighth, so that there are few unlike sizes.

    >>> rounded(1000), rounded(1001)
    (960.0, 960.0)
    """
    step = 1 << max(0, nbytes.bit_length() - 4)
    return float(nbytes // step * step)
