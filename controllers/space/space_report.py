# SPDX-License-Identifier: MIT
"""What a workspace has cost, place by place: as a table for people and as plain data."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from controllers.memory.ledger import sizes
from controllers.placement.stream_size import Streamed
from controllers.report.duration import duration
from controllers.report.report import DeviceReport
from controllers.report.table import format_table


@dataclass(frozen=True)
class SpacePlace:
    """One place: its device, its share of the rows (0 to 1), and where its time went.

    compute_s: in kernels of functions of items.  exchange_s: in copies and messages that gather
    arrays for them.  wait_s: of the calls that gather, what is left.
    """

    place: int
    rank: int
    device: str
    share: float
    compute_s: float
    exchange_s: float
    wait_s: float


@dataclass(frozen=True)
class SpaceReport:
    """All places; times are estimates from a sample of the calls.

    calls: of functions of items.  source: from where the shares are.  streams: what has passed
    through the devices in chunks, as all arrays are on the host.
    """

    places: tuple[SpacePlace, ...]
    calls: int
    source: str
    devices: tuple[DeviceReport, ...] = ()
    streams: tuple[Streamed, ...] = ()

    @property
    def imbalance(self) -> float | None:
        """Computing time of the busiest place over the mean of all; None without kernels."""
        times = [place.compute_s for place in self.places]
        return max(times) * len(times) / sum(times) if any(times) else None

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return {**asdict(self), "imbalance": self.imbalance}

    def __str__(self) -> str:
        """
        >>> place = SpacePlace(0, 0, "cpu", 1.0, 1.5, 0.25, 0.0)
        >>> print(SpaceReport((place,), 3, "given"))
        place  rank  device   share  computing  exchange  waits
            0     0  cpu     100.0%      1.5 s    250 ms    0 s
        3 calls of functions; the shares are given
        """
        head = ("place", "rank", "device", "share", "computing", "exchange", "waits")
        rows = [
            (str(one.place), str(one.rank), one.device, f"{one.share:.1%}",
             *map(duration, (one.compute_s, one.exchange_s, one.wait_s)))
            for one in self.places
        ]  # fmt: skip
        uneven = self.imbalance if len(self.places) > 1 else None
        more = "" if uneven is None else f"; imbalance {uneven:.2f}"
        lines = [
            format_table(head, rows, left=("device",)),
            f"{self.calls} calls of functions; the shares are {self.source}{more}",
            *self._memory(), *map(str, self.streams),
        ]
        return "\n".join(lines)

    def _memory(self) -> Sequence[str]:
        """A line on the device that came nearest to its cap."""
        if not self.devices:
            return []
        fullest = max(self.devices, key=lambda device: device.peak_bytes / device.cap_bytes)
        most, cap = sizes(fullest.peak_bytes, fullest.cap_bytes)
        return [f"at most {most} of {cap} in use on a device"]
