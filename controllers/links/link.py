# SPDX-License-Identifier: MIT
"""Links: how long messages take between controllers, as numbers that can be kept and compared."""
from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """One way for bytes: a message takes its latency, and its bytes at the link's bandwidth.

    >>> Link(1e-5, 1e9).seconds(1_000_000)
    0.00101
    """

    latency_s: float
    bytes_per_s: float

    def seconds(self, nbytes: float) -> float:
        """Of one message."""
        return self.latency_s + nbytes / self.bytes_per_s
