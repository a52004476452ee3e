# SPDX-License-Identifier: MIT
"""Where a job was sent, and why."""
from __future__ import annotations

from typing import NamedTuple, TypeAlias

from controllers.pool.lane import Lane
from controllers.pool.way import Way

# When it would end and start, the way, cores, and lanes of devices.
Choice: TypeAlias = "tuple[float, float, Way, int, tuple[Lane, ...]]"
Decided: TypeAlias = "tuple[int, str, Way, tuple[Lane, ...], list[Choice]]"


class Decision(NamedTuple):
    """Where a job was sent, and when it was foreseen to end there and elsewhere, in seconds."""

    number: int
    task: str
    way: str
    ends_s: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, decided: Decided) -> Decision:
        """For people."""
        number, task, way, lanes, choices = decided
        ends_s = tuple((other.words(k, some), end) for end, _, other, k, some in choices)
        return cls(number, task, way.words(1, lanes), ends_s)

    def __str__(self) -> str:
        """
        >>> print(Decision(3, "scale", "host on the host", (("host on the host", 0.002),)))
        3 scale: host on the host (ends at 2.000 ms)
        """
        ends = ", ".join(
            f"ends at {1e3 * end_s:.3f} ms" + (f" for {way}" if len(self.ends_s) > 1 else "")
            for way, end_s in self.ends_s
        )
        return f"{self.number} {self.task}: {self.way} ({ends})"
