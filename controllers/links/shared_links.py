# SPDX-License-Identifier: MIT
"""Whether the devices of a node have their links to its memory for themselves, as numbers."""
from __future__ import annotations

from dataclasses import asdict, dataclass

OF_ITSELF = 0.9     # of what each has alone, at least, where nothing is shared


@dataclass(frozen=True)
class SharedLinks:
    """Bytes per second that go from a node's memory to its devices and back, both at once.

    alone: the sum of what each device has while no other one moves anything.  together: what all
    have while all do.
    """

    n_devices: int
    alone: float
    together: float

    @property
    def part(self) -> float:
        """What is left to each of what it has alone; 1 where nothing is shared."""
        return self.together / self.alone

    @property
    def are_shared(self) -> bool:
        """Whether it is so much less that measuring is not the reason."""
        return self.part < OF_ITSELF

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return {**asdict(self), "part": self.part, "are_shared": self.are_shared}

    def __str__(self) -> str:
        """
        >>> print(SharedLinks(2, 9e10, 6.66e10))
        the link is shared: 2 devices have 66.6 GB/s both ways, 74% of what each has alone
        >>> print(SharedLinks(2, 9e10, 8.82e10))
        the link is not shared: 2 devices have 88.2 GB/s both ways, 98% of what each has alone
        """
        what = "is shared" if self.are_shared else "is not shared"
        return (
            f"the link {what}: {self.n_devices} devices have {self.together * 1e-9:.1f} GB/s both "
            f"ways, {self.part:.0%} of what each has alone"
        )
