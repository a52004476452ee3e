# SPDX-License-Identifier: MIT
"""The sizes of chunks among which a run chooses: steps of a pass, times those needed, slots."""
# docs/decisions/0079-chunks-and-slots-are-tuned-too.md
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil

from controllers.tuning.size_search import Point
from controllers.tuning.sizes import Size

SLOTS = 1, 2, 3, 4, 6, 8        # chunks that there may be room for at once
TIMES = 1, 1.25, 1.5, 2, 3, 4, 6, 8, 12, 16     # chunks may be so many times those that are needed


class SizeGrid:
    """Each point has the least number of chunks for its steps and slots, or some times that.

    least: the number of chunks of each place by steps and slots, COSP's equation 1; None where not
    a row fits.  most: chunks that a place may have.  fits: whether a size really does, collective.
    """

    def __init__(
        self, first: Size, spans: Sequence[int], least: Callable[[int, int], int | None],
        most: int, fits: Callable[[Size], bool] | None = None, *,
        slots: Sequence[int] = SLOTS, times: Sequence[float] = TIMES,
    ) -> None:  # fmt: skip
        """`first`: the size to begin with.  spans, slots, times: those to choose among, rising."""
        self._spans, self._times = sorted({*spans, first.span}), [*times]
        self._slots = sorted({*slots, first.slots})
        self._least, self._most, self._fits, self._first = least, most, fits, first
        self.ends = Point(len(self._spans), len(self._times), len(self._slots))
        needed = least(first.span, first.slots) or 1
        nearest = min(self._times, key=lambda times: abs(ceil(needed * times) - first.chunks))
        self.first = Point(
            self._spans.index(first.span), self._times.index(nearest),
            self._slots.index(first.slots),
        )  # fmt: skip

    def at(self, point: Point) -> Size | None:
        """That of a point; None where it does not fit.  Collective."""
        if point == self.first:
            return self._first
        span, slots = self._spans[point.span], self._slots[point.slots]
        least = self._least(span, slots)
        if least is None or least * self._times[point.times] > self._most:
            return None
        size = Size(span, ceil(least * self._times[point.times]), slots)
        return size if self._fits is None or self._fits(size) else None
