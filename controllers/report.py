# SPDX-License-Identifier: MIT
"""What a run has cost: in all, and place by place; as a table for people and as plain data."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class PlaceReport:
    """One place: its device and share of the cells (0 to 1), and where its time went.

    `cells_per_s` counts the time in which its kernels ran, `compute_s`; `exposed_s` is the time
    its device stood still between steps, the part of the exchange that was not hidden.
    """

    place: int
    rank: int
    device: str
    cells: int
    share: float
    cells_per_s: float
    compute_s: float
    exposed_s: float


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

    def as_dict(self) -> dict[str, object]:
        """Plain data, for JSON.

        >>> sorted(Report(2.0, 4, 100, ()).as_dict())
        ['cells', 'cells_per_s', 'places', 'seconds', 'seconds_per_step', 'steps']
        """
        return {
            "seconds": self.seconds,
            "seconds_per_step": self.seconds_per_step,
            "cells_per_s": self.cells_per_s,
            "steps": self.steps,
            "cells": self.cells,
            "places": [asdict(place) for place in self.places],
        }

    def table(self) -> str:
        """One line per place and one for all of them.

        >>> place = PlaceReport(0, 0, "cpu", 100, 1.0, 250.0, 1.6, 0.1)
        >>> print(Report(2.0, 4, 100, (place,)).table())
        place  rank  device   share  cells/s  computing  exchange not hidden
            0     0  cpu     100.0%      250      1.6 s               100 ms
        4 steps of 100 cells in 2 s: 500 ms per step, 200 cells/s
        """
        head = ("place", "rank", "device", "share", "cells/s", "computing", "exchange not hidden")
        rows = [
            (
                str(place.place),
                str(place.rank),
                place.device,
                f"{place.share:.1%}",
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
        return format_table(head, rows, left=("device",)) + "\n" + total


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
