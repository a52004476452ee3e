# SPDX-License-Identifier: MIT
"""What a run has cost: in all, and place by place; as a table for people and as plain data."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from controllers.ledger import Ledger, size, sizes
from controllers.plan import PlaceMemory


@dataclass(frozen=True)
class PlaceReport:
    """One place: its device and share of the cells (0 to 1), and where its time went.

    `cells_per_s` counts the time in which its kernels ran, `compute_s`; `exposed_s` is the time
    its device stood still between steps, the part of the exchange that was not hidden.  `memory`
    is what the place takes as long as the field is divided as now.
    """

    place: int
    rank: int
    device: str
    cells: int
    share: float
    cells_per_s: float
    compute_s: float
    exposed_s: float
    memory: PlaceMemory


@dataclass(frozen=True)
class DeviceReport:
    """The memory of one device of a rank: its ledger, in bytes.

    `nbytes` is what is in use now, by purpose.  The peaks are the most that ever was in use:
    of the device's own memory, which `cap_bytes` limits, and of the host's.
    """

    rank: int
    controller: int
    device: str
    cap_bytes: int
    peak_bytes: int
    peak_host_bytes: int
    nbytes: dict[str, int]

    @classmethod
    def of(cls, rank: int, controller: int, ledger: Ledger) -> DeviceReport:
        """As the ledger is now."""
        return cls(
            rank,
            controller,
            ledger.device,
            ledger.cap_bytes,
            ledger.peak_on_device,
            ledger.peak_on_host,
            {purpose.replace(" ", "_"): n for purpose, n in ledger.as_dict().items()},
        )


@dataclass(frozen=True)
class Report:
    """All places: `seconds` for `steps` steps on a domain of `cells` cells.

    The time starts with everything built, launched once and in memory, and ends when all places
    have finished the last step; input and output are outside.
    """

    seconds: float
    steps: int
    cells: int
    places: tuple[PlaceReport, ...]
    devices: tuple[DeviceReport, ...] = ()

    @property
    def seconds_per_step(self) -> float:
        """0 without steps."""
        return self.seconds / self.steps if self.steps else 0.0

    @property
    def cells_per_s(self) -> float:
        """Cells of the domain times steps, per second; 0 without steps."""
        return self.cells * self.steps / self.seconds if self.seconds else 0.0

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON.

        >>> sorted(Report(2.0, 4, 100, ()).as_dict())
        ['cells', 'cells_per_s', 'devices', 'places', 'seconds', 'seconds_per_step', 'steps']
        """
        return {
            "seconds": self.seconds,
            "seconds_per_step": self.seconds_per_step,
            "cells_per_s": self.cells_per_s,
            "steps": self.steps,
            "cells": self.cells,
            "places": [asdict(place) for place in self.places],
            "devices": [asdict(device) for device in self.devices],
        }

    def table(self) -> str:
        """One line per place, one for all of them, and one on the fullest device.

        >>> place = PlaceReport(0, 0, "cpu", 100, 1.0, 250.0, 1.6, 0.1, PlaceMemory(tiles=800))
        >>> print(Report(2.0, 4, 100, (place,)).table())
        place  rank  device   share  memory  cells/s  computing  exchange not hidden
            0     0  cpu     100.0%   800 B      250      1.6 s               100 ms
        4 steps of 100 cells in 2 s: 500 ms per step, 200 cells/s
        """
        head = ("place", "rank", "device", "share", "memory", "cells/s", "computing",
                "exchange not hidden")  # fmt: skip
        rows = [
            (
                str(place.place),
                str(place.rank),
                place.device,
                f"{place.share:.1%}",
                size(place.memory.on_device),
                _number(place.cells_per_s),
                _seconds(place.compute_s),
                _seconds(place.exposed_s),
            )
            for place in self.places
        ]
        total = (
            f"{self.steps} steps of {self.cells} cells in {_seconds(self.seconds)}: "
            f"{_seconds(self.seconds_per_step)} per step, {_number(self.cells_per_s)} cells/s"
        )
        return "\n".join([format_table(head, rows, left=("device",)), total, *self._memory()])

    def _memory(self) -> list[str]:
        """A line on the device that came nearest to its cap."""
        if not self.devices:
            return []
        fullest = max(self.devices, key=lambda device: device.peak_bytes / device.cap_bytes)
        most, cap = sizes(fullest.peak_bytes, fullest.cap_bytes)
        return [f"at most {most} of {cap} in use on a device"]


def format_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[str] = ()
) -> str:
    """Columns as wide as they must be, right-aligned but those named in `left`.

    >>> print(format_table(("n", "what"), [("10", "a"), ("9", "bcdef")], left=("what",)))
     n  what
    10  a
     9  bcdef
    """
    widths = [max(map(len, column)) for column in zip(head, *rows)]
    lines = [
        "  ".join(
            text.ljust(width) if name in left else text.rjust(width)
            for name, text, width in zip(head, row, widths)
        )
        for row in (head, *rows)
    ]
    return "\n".join(line.rstrip() for line in lines)


def _number(value: float) -> str:
    return f"{value:.3g}"


def _seconds(value: float) -> str:
    """
    >>> _seconds(12.345), _seconds(0.0321), _seconds(1.5e-5), _seconds(0)
    ('12.3 s', '32.1 ms', '15 us', '0 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if value >= 1 / scale or unit == "us":
            return f"{value * scale:.3g} {unit}" if value else "0 s"
    raise AssertionError("the last unit takes everything")
