# SPDX-License-Identifier: MIT
"""Links: how long messages take between controllers, as numbers that can be kept and compared."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """One way for bytes: a message takes its latency, and its bytes at the link's bandwidth.

    >>> Link(1e-5, 1e9).seconds(1_000_000)
    0.00101
    """

    latency_s: float
    bytes_per_s: float

    def seconds(self, nbytes: float, n_messages: int = 1) -> float:
        """Of messages with so many bytes together."""
        return n_messages * self.latency_s + nbytes / self.bytes_per_s

    def then(self, next_one: Link) -> Link:
        """This one and the next one, after one another, for whole messages.

        >>> Link(2**-10, 2.0**32).then(Link(2**-10, 2.0**32))
        Link(latency_s=0.001953125, bytes_per_s=2147483648.0)
        """
        per_byte = 1 / self.bytes_per_s + 1 / next_one.bytes_per_s
        return Link(self.latency_s + next_one.latency_s, 1 / per_byte)


@dataclass(frozen=True)
class Links:
    """The links of all controllers with each other, `between[source][target]`.

    packing: the bytes that a controller reads and writes in a second, as it gathers cells that do
        not lie one after another in its memory.
    """

    between: tuple[tuple[Link, ...], ...]
    packing: tuple[float, ...]

    def __post_init__(self) -> None:
        n = len(self.between)
        if not n or len(self.packing) != n or any(len(row) != n for row in self.between):
            raise ValueError(
                f"links: a square of at least 1 controller and as many rates of packing, got rows "
                f"of {[len(row) for row in self.between]} and {len(self.packing)} rates"
            )

    @classmethod
    def uniform(cls, n_controllers: int, link: Link, packing: float) -> Links:
        """The same between all controllers."""
        return cls(((link,) * n_controllers,) * n_controllers, (packing,) * n_controllers)

    @property
    def n_controllers(self) -> int:
        return len(self.between)

    def only(self, controllers: Sequence[int]) -> Links:
        """Those of some controllers, in this order."""
        rows = tuple(tuple(self.between[a][b] for b in controllers) for a in controllers)
        return Links(rows, tuple(self.packing[a] for a in controllers))
