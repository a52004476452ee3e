# SPDX-License-Identifier: MIT
"""Which events a command must wait for.

Dependencies belong to cells, not to tiles: the download of a border must not wait for the
kernel that still computes the inner cells.  Events are opaque here: OpenCL events when
verbs are called at once, numbers of operations when a plan is recorded; so the rules are
tested without a device.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Generic, TypeVar

from hitmap.region import Region
from hitmap.shape import Shape

Event = TypeVar("Event")


class History(Generic[Event]):
    """Pending reads and writes of the cells of one memory, oldest first.

    >>> history = History()
    >>> history.wrote([Shape((0,), (2,))], "border kernel")
    >>> history.wrote([Shape((2,), (8,))], "inner kernel")
    >>> history.before_read([Shape((1,), (2,))])
    ['border kernel']
    """

    def __init__(self) -> None:
        self._writes: list[tuple[Shape, Event]] = []
        self._reads: list[tuple[Shape, Event]] = []

    def before_read(self, cells: Iterable[Shape]) -> list[Event]:
        """What a read of `cells` waits for: the writes of these cells."""
        return _touching(cells, self._writes) if self._writes else []

    def before_write(self, cells: Iterable[Shape]) -> list[Event]:
        """What a write of `cells` waits for: their writes and their reads."""
        return _touching(cells, self._writes + self._reads)

    def readers(self, cells: Iterable[Shape]) -> list[Event]:
        """The reads of `cells`."""
        return _touching(cells, self._reads) if self._reads else []

    def read(self, cells: Iterable[Shape], event: Event) -> None:
        """Record that `event` reads `cells`."""
        self._reads += [(box, event) for box in cells]

    def wrote(self, cells: Iterable[Shape], event: Event) -> None:
        """Record that `event` writes `cells`; it settles what it had to wait for."""
        boxes = list(cells)
        self._writes = _outside(boxes, self._writes) if self._writes else []
        self._writes += zip(boxes, repeat(event))
        if self._reads:
            self._reads = _outside(boxes, self._reads)

    def pending(self) -> list[Event]:
        """All events that are remembered."""
        return list(dict.fromkeys(event for _, event in self._writes + self._reads))

    def forget(self, is_over: Callable[[Event], bool]) -> None:
        """Drop the events that are over: nothing has to wait for them."""
        over = {event for event in self.pending() if is_over(event)}
        self._writes = [entry for entry in self._writes if entry[1] not in over]
        self._reads = [entry for entry in self._reads if entry[1] not in over]


def _touching(cells: Iterable[Shape], entries: list[tuple[Shape, Event]]) -> list[Event]:
    found: dict[Event, None] = {}
    for box in cells:
        for entry, event in entries:
            if box is entry or box.meets(entry):
                found[event] = None
    return list(found)


def _outside(
    boxes: list[Shape], entries: list[tuple[Shape, Event]]
) -> list[tuple[Shape, Event]]:
    """The entries without the cells of `boxes`."""
    gone: Region | None = None
    kept: list[tuple[Shape, Event]] = []
    for entry, event in entries:
        if entry in boxes:
            continue
        if not any(map(entry.meets, boxes)):
            kept.append((entry, event))
        elif not any(entry in box for box in boxes):
            gone = gone or Region.of(boxes)
            kept += [(rest, event) for rest in (Region.of([entry]) - gone).boxes]
    return kept
