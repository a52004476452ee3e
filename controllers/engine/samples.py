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
        self.compute_s = 0.0    # mean time that the kernels of one step take; 0 without kernels
        self.gap_s = 0.0        # mean time from the last kernel of a step to the next step's first
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
        """A launch of the open step."""
        self._steps[-1].append(event)

    def end(self) -> None:
        """All launches are complete: work out the times, and let go of the events."""
        steps = [[(e.profile.start, e.profile.end) for e in step] for step in self._steps]
        self._steps = []
        self.compute_s = _mean([sum(end - start for start, end in step) for step in steps if step])
        self.gap_s = _mean(
            [
                min(start for start, _ in new) - max(end for _, end in old)
                for old, new in zip(steps[0::2], steps[1::2], strict=False)
                if old and new
            ]
        )


def _mean(times_ns: list[int]) -> float:
    """In seconds; 0 without times, never negative."""
    return max(0.0, sum(times_ns) / len(times_ns) * 1e-9) if times_ns else 0.0
