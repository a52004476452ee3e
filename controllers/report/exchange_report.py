# SPDX-License-Identifier: MIT
"""Which way of exchanging a run has found, and what the others took: a line, and plain data."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from controllers.report.duration import duration


@dataclass(frozen=True)
class ExchangeReport:
    """The way in which halos are exchanged, and why.

    seconds: of a launch of all places with its exchange, by way, as far as each was tried.
    """

    way: str
    why: str
    seconds: Mapping[str, float]

    def __str__(self) -> str:
        """
        >>> print(ExchangeReport("overlap on, packed", "none is faster", {"overlap on": 2e-3}))
        exchange: overlap on, packed (none is faster)
          overlap on: 2 ms per launch
        """
        tried = sorted(self.seconds.items(), key=lambda item: item[1])
        lines = [f"  {way}: {duration(seconds)} per launch" for way, seconds in tried]
        return "\n".join([f"exchange: {self.way} ({self.why})", *lines])

    def as_dict(self) -> dict[str, object]:
        """Plain values, as for JSON."""
        return {"way": self.way, "why": self.why, "seconds": {**self.seconds}}
