# SPDX-License-Identifier: MIT
"""What the steps of a place cost: kernel times and the gaps between them, by sampling."""
from __future__ import annotations

from controllers.event import Event

MAX_PAIRS = 256


class Samples:
    """The launches of some pairs of successive steps of a run, timed by their events.

    A pair gives the time that the kernels of a step take, and how long the device then
    stood still until the next step began: the part of the hand-over that was not hidden.
    """

    def __init__(self) -> None:
        self.wanted = False
        self._first = 0
        self._interval = 2
        self._steps: list[list[Event]] = []

    def begin(self, first: int, last: int) -> None:
        """Choose the steps of a run to sample: pairs at even distances."""
        self._first = first
        self._interval = max(2, -(-(last - first + 1) // MAX_PAIRS))
        self._steps = []
        self.wanted = False

    def open(self, step: int) -> None:
        """Step `step` begins."""
        self.wanted = (step - self._first) % self._interval < 2
        if self.wanted:
            self._steps.append([])

    def add(self, event: Event) -> None:
        """A launch of the open step; all of them are complete before the times are asked for."""
        self._steps[-1].append(event)

    def compute_s(self) -> float:
        """Mean time that the kernels of one step take, in seconds; 0 without kernels."""
        steps = [sum(e.profile.end - e.profile.start for e in step) for step in self._steps if step]
        return sum(steps) / len(steps) * 1e-9 if steps else 0.0

    def gap_s(self) -> float:
        """Mean time between the last kernel of a step and the first one of the next, in seconds."""
        pairs = zip(self._steps[0::2], self._steps[1::2], strict=False)
        gaps = [
            min(e.profile.start for e in new) - max(e.profile.end for e in old)
            for old, new in pairs
            if old and new
        ]
        return max(0.0, sum(gaps) / len(gaps) * 1e-9) if gaps else 0.0
