# SPDX-License-Identifier: MIT
"""How many devices take part in a hybrid task."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from controllers.pool.lane import Lane
from controllers.pool.variant import Devices, checked_devices
from controllers.pool.way import Way

Rated: TypeAlias = tuple[float, Way]    # the seconds that all of a task would take, and how


@dataclass(frozen=True)
class DeviceCount:
    """At least and at most so many, which are those that would do the whole task fastest."""

    least: int
    most: int

    @classmethod
    def of(cls, task: str, given: Devices) -> DeviceCount | None:
        """As a user says it; ValueError or TypeError for what is no number.

        >>> DeviceCount.of("product", (0, 2))
        DeviceCount(least=0, most=2)
        """
        return None if given is None else cls(*checked_devices(task, given, at_least=0))

    def chosen(
        self, free: Mapping[Lane, Rated], every: Mapping[Lane, Rated]
    ) -> dict[Lane, Rated]:
        """The lanes that take part: of those that are free, and of others where these are too few.

        ValueError where there are too few of `every`.
        """
        found = [lane for lane in every if lane.device is not None]
        if len(found) < self.least:
            names = ", ".join(lane.name for lane in found) or "none"
            task = next(iter(every.values()))[1].key.task
            raise ValueError(
                f"task {task!r}: at least {self.least} devices are to take part, and this pool has "
                f"{len(found)} that can: {names}; ask for fewer by devices=, or open the pool with "
                f"more, such as devices='cpu/1,1'"
            )
        found.sort(key=lambda lane: (lane not in free, every[lane][0], lane.number))
        n = max(self.least, min(self.most, sum(lane in free for lane in found)))
        taken = {*found[:n]}
        return {
            lane: rated for lane, rated in every.items()
            if lane in taken or (lane.device is None and lane in free)
        }  # fmt: skip

    def with_least(self, lanes: Sequence[Lane], counts: Sequence[int], few: int) -> list[int]:
        """Units of a task by sides, a few for as many devices as are to take part at least.

        From who has most of them, as far as there are more than that.
        """
        found = list(counts)
        missing = self.least - sum(n > 0 for lane, n in zip(lanes, found) if lane.device)
        for number, lane in enumerate(lanes):
            most = max(range(len(found)), key=found.__getitem__)
            is_spare = found[most] > few or lanes[most].device is None
            if missing > 0 and lane.device and not found[number] and found[most] and is_spare:
                found[most] -= few
                found[number] = few
                missing -= 1
        return found
