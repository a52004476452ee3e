# SPDX-License-Identifier: MIT
"""What a run has cost: in all, and place by place; as a table for people and as plain data."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Wait:
    """How long a place stood still before the cells of a neighbour were in its halo."""

    place: int
    seconds: float


@dataclass(frozen=True)
class PlaceReport:
    """One place: its device and share of the cells (0 to 1), and where its time went.

    compute_s: time in which its kernels ran; `cells_per_s` counts that time.
    exchange_s: time in which halos were on their way, summed over the steps: from the end of the
        last kernel that writes a border cell to the start of the next step's first one that reads
        a halo cell.
    exposed_s: the part of it in which the place's device ran no kernel.
    waits: per neighbour on another controller, how long the device stood still, its kernels of
        the step done, before that neighbour's cells had come.  Waits for several overlap.

    The times are estimates from a sample of the steps (controllers/exchange_time.py).
    """

    place: int
    rank: int
    device: str
    cells: int
    share: float
    cells_per_s: float
    compute_s: float
    exposed_s: float
    controller: int = 0
    exchange_s: float = 0.0
    waits: tuple[Wait, ...] = ()

    @property
    def hidden(self) -> float | None:
        """The share of the exchange that was hidden behind kernels; None without an exchange."""
        return 1 - self.exposed_s / self.exchange_s if self.exchange_s else None

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON."""
        return {**asdict(self), "waits": [asdict(w) for w in self.waits], "hidden": self.hidden}


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

    @property
    def seconds_per_step(self) -> float:
        """0 without steps."""
        return self.seconds / self.steps if self.steps else 0.0

    @property
    def cells_per_s(self) -> float:
        """Cells of the domain times steps, per second; 0 without steps."""
        return self.cells * self.steps / self.seconds if self.seconds else 0.0

    @property
    def imbalance(self) -> float | None:
        """Computing time of the busiest device over the mean of all; None without kernels.

        1 is perfect; all others stand still for the share 1 - 1 / imbalance on average.
        """
        times: dict[tuple[int, int], float] = {}
        for place in self.places:
            device = place.rank, place.controller
            times[device] = times.get(device, 0.0) + place.compute_s
        return max(times.values()) * len(times) / total if (total := sum(times.values())) else None

    @property
    def hidden(self) -> float | None:
        """The share of all places' exchanges that was hidden behind kernels; None without any."""
        exchange_s = sum(place.exchange_s for place in self.places)
        return 1 - sum(p.exposed_s for p in self.places) / exchange_s if exchange_s else None

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON.

        >>> [*Report(2.0, 4, 100, ()).as_dict()][:6]
        ['seconds', 'seconds_per_step', 'cells_per_s', 'steps', 'cells', 'imbalance']
        """
        return {
            "seconds": self.seconds,
            "seconds_per_step": self.seconds_per_step,
            "cells_per_s": self.cells_per_s,
            "steps": self.steps,
            "cells": self.cells,
            "imbalance": self.imbalance,
            "hidden": self.hidden,
            "places": [place.as_dict() for place in self.places],
        }

    def table(self) -> str:
        """One line per place and one or two for all of them; in docs/explain.md, line by line.

        >>> waits = (Wait(1, 0.05), Wait(2, 0.08))
        >>> place = PlaceReport(0, 0, "cpu", 100, 1.0, 250.0, 1.6, 0.1, 0, 0.5, waits)
        >>> print(Report(2.0, 4, 100, (place,)).table())
        place  rank  device   share  cells/s  computing  exchange not hidden  hidden  longest wait
            0     0  cpu     100.0%      250      1.6 s               100 ms     80%  place 2 80 ms
        4 steps of 100 cells in 2 s: 500 ms per step, 200 cells/s
        80% of the exchange was hidden
        """
        head = ("place", "rank", "device", "share", "cells/s", "computing", "exchange not hidden",
                "hidden", "longest wait")  # fmt: skip
        rows = [_row(place) for place in self.places]
        total = (
            f"{self.steps} steps of {self.cells} cells in {_seconds(self.seconds)}: "
            f"{_seconds(self.seconds_per_step)} per step, {_number(self.cells_per_s)} cells/s"
        )
        table = format_table(head, rows, left=("device", "longest wait"))
        return "\n".join([table, total, *self._balance()])

    def _balance(self) -> list[str]:
        """A line on what could be better."""
        parts = []
        if self.hidden is not None:
            parts.append(f"{self.hidden:.0%} of the exchange was hidden")
        if self.imbalance is not None and len(self.places) > 1:
            parts.append(f"imbalance {self.imbalance:.2f}")
        return ["; ".join(parts)] if parts else []


def _row(place: PlaceReport) -> tuple[str, ...]:
    longest = max(place.waits, key=lambda wait: wait.seconds, default=None)
    return (
        str(place.place),
        str(place.rank),
        place.device,
        f"{place.share:.1%}",
        _number(place.cells_per_s),
        _seconds(place.compute_s),
        _seconds(place.exposed_s),
        "-" if place.hidden is None else f"{place.hidden:.0%}",
        "-" if longest is None else f"place {longest.place} {_seconds(longest.seconds)}",
    )


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
