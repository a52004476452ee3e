# SPDX-License-Identifier: MIT
"""How many chunks of rows the arrays of a call pass through a device in, and how long that takes.

The least number is that of COSP (Sabne, Sakdhnagool, Eigenmann 2013, equation 1): rows of all
slots, and what the items of a chunk have for themselves, next to what stays.  More of them let the
pipeline fill and drain sooner.
"""
# docs/decisions/0067-calls-pass-through-in-chunks.md
from __future__ import annotations

from dataclasses import asdict, dataclass
from math import isqrt

from controllers.executor.slot_memory import ALIGNMENT
from controllers.memory.ledger import size
from controllers.placement.chunk_model import LINK

# What a chunk costs beside its bytes: its commands, enqueued and waited for by other queues.
CHUNK_S = 5e-5
MOST_WANTED = 256       # chunks that a pipeline asks for; what memory asks for is done


@dataclass(frozen=True)
class Demand:
    """What a call asks of one device.

    rows: that pass through.  row_nbytes: of a row of all split arrays.  n_arrays: of these.
    private_nbytes: that an item has for itself.  beside: rows of a chunk that it does not compute.
    up_nbytes, down_nbytes: over the link in a call.
    """

    rows: int
    row_nbytes: int
    n_arrays: int
    private_nbytes: int = 0
    beside: int = 0
    up_nbytes: int = 0
    down_nbytes: int = 0

    def most_rows(self, n_slots: int, free: int, largest: int) -> int:
        """Of a chunk, where so many bytes are free and may be allocated at once; 0 where none fits.

        >>> Demand(rows=1000, row_nbytes=12, n_arrays=3).most_rows(2, 24 * 100 + 6 * 512, 2**20)
        100
        """
        room = self.n_arrays * ALIGNMENT
        per_row = n_slots * self.row_nbytes + self.private_nbytes
        fixed = n_slots * (room + self.beside * self.row_nbytes)
        rows = (free - fixed) // per_row if per_row else self.rows
        if self.row_nbytes:
            rows = min(rows, (largest - room) // self.row_nbytes - self.beside)
        return max(0, rows)

    def least_chunks(self, n_slots: int, free: int, largest: int) -> int | None:
        """COSP's equation 1; None where not even a row fits.

        >>> Demand(rows=1000, row_nbytes=12, n_arrays=3).least_chunks(2, 24 * 300 + 3072, 2**20)
        4
        """
        rows = self.most_rows(n_slots, free, largest)
        return -(-self.rows // rows) if rows else None

    def wanted_chunks(self, n_slots: int, kind: str) -> int:
        """As many as make the sum of both ends of the pipeline and of what chunks cost least.

        >>> Demand(1000, 12, 3, up_nbytes=8 * 2**30, down_nbytes=4 * 2**30).wanted_chunks(3, "gpu")
        73
        """
        if n_slots == 1:
            return 1
        ends_s = (self.up_nbytes + self.down_nbytes) / LINK.get(kind, LINK["cpu"])
        return min(MOST_WANTED, max(n_slots + 1, isqrt(int(ends_s / CHUNK_S))))


@dataclass(frozen=True)
class Streamed:
    """How the arrays of a function or an expression pass through the devices of a rank.

    chunks: of each place.  least: by equation 1.  up_nbytes, down_nbytes: of a call.  fused: bytes
    of arrays that stay on each device.  overlap: rows of a chunk beside those that it computes.
    """

    name: str
    split: tuple[str, ...]
    whole: tuple[str, ...]
    chunks: int
    least: int
    slots: int
    up_nbytes: int
    down_nbytes: int
    fused: int
    overlap: int = 0
    calls: int = 0

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        """
        >>> print(Streamed("add", ("a", "b"), ("c",), 6, 4, 3, 2**20, 2**10, 64, calls=2))
        add: 6 chunks of each place, at least 4, in 3 slots; split: a, b; whole: c, 64 B; 1 MiB...
        """
        more = f" (and {self.overlap} rows around each)" if self.overlap else ""
        whole = f"; whole: {', '.join(self.whole)}, {size(self.fused)}" if self.whole else ""
        return (
            f"{self.name}: {self.chunks} chunk{'s' * (self.chunks != 1)} of each place, at least "
            f"{self.least}, in {self.slots} slot{'s' * (self.slots != 1)}; split: "
            f"{', '.join(self.split)}{more}{whole}; {size(self.up_nbytes)} up and "
            f"{size(self.down_nbytes)} down per call, {self.calls} call{'s' * (self.calls != 1)}"
        )
