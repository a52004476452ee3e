# SPDX-License-Identifier: MIT
"""Which image of a tied tile holds the newest cells, and who must be waited for.

A tied tile has an image on the host and one on a device.  A write makes the written cells of
the other image stale; a read of stale cells needs a copy first, of just these cells.  Events
are opaque, so that the rules are tested without a device.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeVar

from controllers.memory.history import History
from hitmap.region import Region
from hitmap.shape import Shape

Event = TypeVar("Event")
Side = Literal["host", "device"]


class Coherence(Generic[Event]):
    """The state of one tile, cell by cell.

    `one_memory`: host and device compute in the same memory, so that nothing is ever stale
    and both sides share one history.

    >>> tile = Coherence()
    >>> tile.wrote("device", [Shape((2,), (5,))], "kernel")
    >>> [str(box) for box in tile.stale("host", [Shape((0,), (4,))])]
    ['[2:4]']
    >>> tile.before_read("device", [Shape((4,), (8,))])
    ['kernel']
    """

    def __init__(self, *, one_memory: bool = False) -> None:
        self._one_memory = one_memory
        device: History[Event] = History()
        self._history: dict[Side, History[Event]] = {
            "device": device,
            "host": device if one_memory else History(),
        }
        self._stale: dict[Side, Region] = {"host": Region.of([]), "device": Region.of([])}

    def stale(self, side: Side, cells: Iterable[Shape]) -> tuple[Shape, ...]:
        """Those of `cells` whose newest values are on the other side."""
        return (self._stale[side] & Region.of(cells)).boxes

    def before_read(self, side: Side, cells: Iterable[Shape]) -> list[Event]:
        """What a read of `cells` on one side waits for."""
        return self._history[side].before_read(cells)

    def before_write(self, side: Side, cells: Iterable[Shape]) -> list[Event]:
        """What a write of `cells` on one side waits for."""
        return self._history[side].before_write(cells)

    def read(self, side: Side, cells: Iterable[Shape], event: Event) -> None:
        """`event` reads `cells` on one side; they are not stale."""
        self._history[side].read(cells, event)

    def wrote(self, side: Side, cells: Iterable[Shape], event: Event) -> None:
        """`event` gives `cells` new values on one side; the other side's become stale."""
        boxes = list(cells)
        self._history[side].wrote(boxes, event)
        if not self._one_memory:
            written = Region.of(boxes)
            other: Side = "host" if side == "device" else "device"
            self._stale[side] = self._stale[side] - written
            self._stale[other] = self._stale[other] | written

    def copied(self, to: Side, cells: Iterable[Shape], event: Event) -> None:
        """`event` copies `cells` from the other side, where they are up to date."""
        boxes = list(cells)
        source: Side = "host" if to == "device" else "device"
        self._history[source].read(boxes, event)
        self._history[to].wrote(boxes, event)
        self._stale[to] = self._stale[to] - Region.of(boxes)

    def pending(self) -> list[Event]:
        """All that reads or writes the tile."""
        histories = dict.fromkeys([self._history["host"], self._history["device"]])
        return [event for history in histories for event in history.pending()]

    def forget(self, is_over: Callable[[Event], bool]) -> None:
        """Drop the events that are over."""
        for history in self._history.values():
            history.forget(is_over)
