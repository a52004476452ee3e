# SPDX-License-Identifier: MIT
"""How many launches of a device are under way: few enough that no driver blocks who enqueues.

NVIDIA's driver does so while some hundred are under way (of two H100 with driver 580.159.04, each
with a pass of chunks: 150 to 300).  A thread that drives several devices would let the others run
dry meanwhile, and one that brings large messages would not look at them.
"""
from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TypeVar

from controllers.device.event import Event
from controllers.engine.task import Awaited

Device = TypeVar("Device")

BETWEEN = 16    # launches between two marks
MARKS = 4       # that are not complete, at most


def backlogs_of(devices: Sequence[Device], *, has_messages: bool) -> dict[Device, Backlog]:
    """Of each, where the thread that drives them has something else to do meanwhile."""
    is_needed = has_messages or len(devices) > 1
    return {device: Backlog() for device in devices} if is_needed else {}


class Backlog:
    """Of one device, which all of its places have in common."""

    def __init__(self) -> None:
        self._marks: deque[Awaited] = deque()
        self._since = 0     # launches after the newest mark

    def forget(self) -> None:
        """Nothing is under way: a run begins."""
        self._marks.clear()
        self._since = 0

    def add(self, event: Event) -> None:
        """That of a launch which has been enqueued."""
        self._since += 1
        if self._since == BETWEEN:
            self._marks.append(Awaited(event))
            self._since = 0

    def blocker(self) -> Awaited | None:
        """What has to be complete before more is enqueued."""
        while self._marks and self._marks[0].complete():
            self._marks.popleft()
        return self._marks[0] if len(self._marks) >= MARKS else None
