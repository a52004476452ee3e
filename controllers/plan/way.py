# SPDX-License-Identifier: MIT
"""Ways to exchange: what a plan may do in more than one manner, with the same result.

Which one is fast depends on the device, its driver, the shape of borders, and how long messages
take; no figure tells beforehand.  What can never win is no way
(docs/decisions/0058-ways-to-exchange-are-tried.md).
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from controllers.plan.overlap import Overlap


@dataclass(frozen=True)
class ExchangeWay:
    """How the cells of halos travel; the usual way, where nothing is said.

    overlap: whether borders are computed first, "auto" as an estimate says.
    rectangles: borders and halos of devices with memory of their own that are not contiguous are
        copied box by box between tile and host; else a kernel packs them, and one copy takes all.
    together: what one sweep is the first to read goes to a neighbour in one message, packed; else
        each field by itself, straight from the tile and into it where it lies in one run there.

    >>> print(ExchangeWay(), "|", ExchangeWay("on", rectangles=True, together=False))
    overlap auto, packed, fields together | overlap on, by rectangles, fields apart
    """

    overlap: Overlap = "auto"
    rectangles: bool = False
    together: bool = True

    def __str__(self) -> str:
        boxes = "by rectangles" if self.rectangles else "packed"
        fields = "fields together" if self.together else "fields apart"
        return f"overlap {self.overlap}, {boxes}, {fields}"

    @property
    def others(self) -> Iterator[ExchangeWay]:
        """All ways, this one first; where it has `overlap` fixed, so have they."""
        overlaps = ["on", "off"] if self.overlap == "auto" else []
        yield self
        for overlap, rectangles, together in product(
            [self.overlap, *overlaps], [self.rectangles, not self.rectangles],
            [self.together, not self.together],
        ):  # fmt: skip
            way = ExchangeWay(overlap, rectangles, together)  # type: ignore[arg-type]
            if way != self:
                yield way
