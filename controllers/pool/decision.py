# SPDX-License-Identifier: MIT
"""Where a job was sent, and why."""
from __future__ import annotations

from typing import NamedTuple


class Decision(NamedTuple):
    """Where a job was sent, and when it was foreseen to end there and elsewhere, in seconds."""

    number: int
    task: str
    way: str
    ends_s: tuple[tuple[str, float], ...]

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
