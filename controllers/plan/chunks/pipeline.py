# SPDX-License-Identifier: MIT
"""What works at the same time while chunks pass through a device, and how long each of it is busy.

Copy-in, kernels and copy-out overlap, so that the one that takes longest is the bound.
"""
# docs/decisions/0070-chunks-are-tuned-while-they-run.md
from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

# COSP's types: copies are the bound, kernels are, or both take about as long.
Kind: TypeAlias = Literal["copy", "compute", "neither"]

CLEAR = 1.15    # a bound is one that takes so many times longer than the other
# Of what takes shorter, copies or kernels, so much is not hidden behind the other one: chunks wait
# for each other, so that a pass is fast where one of both is clearly the bound.
BARE = 0.25


@dataclass(frozen=True)
class Pipeline:
    """Seconds of a pass in which each is busy.

    up_s, down_s: the link, each way.  kernels_s: the device.  disk_s: what images in files lie on.
    """

    up_s: float
    down_s: float
    kernels_s: float
    disk_s: float = 0.0

    @property
    def copies_s(self) -> float:
        """Of the slowest way between the images and the device."""
        return max(self.up_s, self.down_s, self.disk_s)

    @property
    def longest_s(self) -> float:
        """What a pass takes at best, of many in a row."""
        return max(self.copies_s, self.kernels_s)

    @property
    def likely_s(self) -> float:
        """What a pass is likely to take: most of what takes shorter is hidden, but not all.

        >>> Pipeline(2.0, 1.0, 4.0).likely_s
        4.5
        """
        return self.longest_s + BARE * min(self.copies_s, self.kernels_s)

    @property
    def bound(self) -> str:
        """What takes longest, for people."""
        if self.kernels_s > self.copies_s:
            return "kernels"
        return "the disk" if self.disk_s > max(self.up_s, self.down_s) else "the link"

    @property
    def kind(self) -> Kind:
        """COSP's type of a loop.

        >>> Pipeline(2.0, 1.0, 1.0).kind, Pipeline(1.0, 1.0, 1.1).kind
        ('copy', 'neither')
        """
        if self.copies_s > CLEAR * self.kernels_s:
            return "copy"
        return "compute" if self.kernels_s > CLEAR * self.copies_s else "neither"

    def ends_s(self, n_chunks: int) -> float:
        """In which the first chunk of a run comes and the last one leaves."""
        return (self.up_s + self.down_s) / n_chunks

    def ideal_s(self, n_chunks: int, n_passes: int = 1) -> float:
        """What so many passes take at best (COSP, equation 2): the longest, and both ends.

        >>> Pipeline(4.0, 2.0, 1.0).ideal_s(4)
        5.5
        """
        return n_passes * self.longest_s + self.ends_s(n_chunks)

    def with_steps(self, times: float) -> Pipeline:
        """Of passes with so many times the steps, about: kernels alone take longer."""
        return Pipeline(self.up_s, self.down_s, times * self.kernels_s, self.disk_s)
