# SPDX-License-Identifier: MIT
"""What a run has cost: in all, and place by place; as a table for people and as plain data."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field

from controllers.kernel.configuration import KernelUse
from controllers.memory.ledger import Ledger, size, sizes
from controllers.plan import PlaceMemory
from controllers.program.program import Math
from controllers.report.balance_report import BalanceReport
from controllers.report.choice_report import ChoiceReport
from controllers.report.digest_report import DigestReport
from controllers.report.duration import duration
from controllers.report.exchange_report import ExchangeReport
from controllers.report.pipeline import PipelineReport
from controllers.report.table import format_table
from controllers.report.tuning_report import TuningReport


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
    memory: what the place takes as long as the field is divided as now.

    The times are estimates from a sample of the steps (controllers/report/exchange_time.py).
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
    have finished the last step; input and output are outside, and what is no step of tuning, which
    `tuning` tells, and no moves of the cuts between devices, which `balance` tells.  `kernels` says
    what computes the largest box of each stage on each device; equal ones are listed once.
    `scalars` are the parameters of the program as they are now.  `halo_width` is the number of
    steps between two exchanges now, and `widths` says how long a step took, in seconds, with those
    that were tried.  `steps_per_launch` is that of the longest launch, and `lengths` says the steps
    of the longest one of each place where these are unlike.  `pipeline` is of the last passes that
    chunks made, `digests` what `digest_every` has found.
    """

    seconds: float
    steps: int
    cells: int
    places: tuple[PlaceReport, ...]
    devices: tuple[DeviceReport, ...] = ()
    kernels: tuple[KernelUse, ...] = ()
    steps_per_launch: int = 1
    math: Math = "strict"
    tuning: TuningReport | None = None
    scalars: Mapping[str, float] = field(default_factory=dict)
    balance: BalanceReport | None = None
    choice: ChoiceReport | None = None
    exchange: ExchangeReport | None = None
    halo_width: int = 1
    widths: Mapping[int, float] = field(default_factory=dict)
    lengths: tuple[int, ...] = ()
    pipeline: PipelineReport | None = None
    digests: DigestReport | None = None

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
        ['seconds', 'seconds_per_step', 'cells_per_s', 'steps', 'cells', 'steps_per_launch']
        """
        return {
            "seconds": self.seconds,
            "seconds_per_step": self.seconds_per_step,
            "cells_per_s": self.cells_per_s,
            "steps": self.steps,
            "cells": self.cells,
            "steps_per_launch": self.steps_per_launch,
            "imbalance": self.imbalance,
            "math": self.math,
            "hidden": self.hidden,
            "places": [place.as_dict() for place in self.places],
            "devices": [asdict(device) for device in self.devices],
            "kernels": [kernel.as_dict() for kernel in self.kernels],
            "tuning": self.tuning and self.tuning.as_dict(),
            "scalars": {**self.scalars},
            "balance": self.balance and self.balance.as_dict(),
            "choice": self.choice and self.choice.as_dict(),
            "exchange": self.exchange and self.exchange.as_dict(),
            "halo_width": self.halo_width,
            "widths": {str(width): seconds for width, seconds in self.widths.items()},
            "lengths": [*self.lengths],
            "pipeline": self.pipeline and self.pipeline.as_dict(),
            "digests": self.digests and self.digests.as_dict(),
        }

    def table(self) -> str:
        """One line per place, some for all of them; in docs/explain.md, line by line.

        >>> waits, memory = (Wait(1, 0.05), Wait(2, 0.08)), PlaceMemory(tiles=800)
        >>> place = PlaceReport(0, 0, "cpu", 100, 1.0, 250.0, 1.6, 0.1, memory, 0, 0.5, waits)
        >>> print(Report(2.0, 4, 100, (place,)).table())
        place  rank  device   share  memory  cells/s  computing  exchange not hidden  hidden ...
            0     0  cpu     100.0%   800 B      250      1.6 s               100 ms     80% ...
        4 steps of 100 cells in 2 s: 500 ms per step, 200 cells/s
        80% of the exchange was hidden
        """
        head = ("place", "rank", "device", "share", "memory", "cells/s", "computing",
                "exchange not hidden", "hidden", "longest wait")  # fmt: skip
        rows = [_row(place) for place in self.places]
        total = self._total()
        if self.steps_per_launch > 1:
            each = [*dict.fromkeys(self.lengths or [self.steps_per_launch])]
            total += f", {' and '.join(map(str, each))} steps per launch"
        if self.halo_width > self.steps_per_launch:
            total += f", an exchange every {self.halo_width} steps"
        table = format_table(head, rows, left=("device", "longest wait"))
        rest = [*self._math(), *self._scalars(), *self._balance(), *self._kernels()]
        rest += [*self._widths(), *self._memory(), *self._parts()]
        return "\n".join([table, total, *rest])

    def _parts(self) -> list[str]:
        """What is told by what has a report of its own."""
        found = (self.tuning, self.balance, self.choice, self.exchange, self.pipeline, self.digests)
        return [str(one) for one in found if one is not None]

    def _widths(self) -> Iterator[str]:
        """How long steps took with halo widths that were tried."""
        if self.widths:
            each = ", ".join(f"{width}: {duration(s)}" for width, s in self.widths.items())
            yield f"time of a step by the steps between two exchanges: {each}"

    def __repr__(self) -> str:
        return f"<Report: {self._total()}, places: {len(self.places)}>"

    def _total(self) -> str:
        """A line on all steps."""
        return (
            f"{self.steps} steps of {self.cells} cells in {duration(self.seconds)}: "
            f"{duration(self.seconds_per_step)} per step, {_number(self.cells_per_s)} cells/s"
        )

    def _math(self) -> list[str]:
        """A line on arithmetic that is not the strict one."""
        return [] if self.math == "strict" else [f"math {self.math}: other bits than the reference"]

    def _scalars(self) -> list[str]:
        """A line on the parameters."""
        values = [f"{name} = {value:g}" for name, value in self.scalars.items()]
        return [f"scalars: {', '.join(values)}"] if values else []

    def _balance(self) -> list[str]:
        """A line on what could be better."""
        parts = []
        if self.hidden is not None:
            parts.append(f"{self.hidden:.0%} of the exchange was hidden")
        if self.imbalance is not None and len(self.places) > 1:
            parts.append(f"imbalance {self.imbalance:.2f}")
        return ["; ".join(parts)] if parts else []

    def _memory(self) -> list[str]:
        """A line on the device that came nearest to its cap."""
        if not self.devices:
            return []
        fullest = max(self.devices, key=lambda device: device.peak_bytes / device.cap_bytes)
        most, cap = sizes(fullest.peak_bytes, fullest.cap_bytes)
        return [f"at most {most} of {cap} in use on a device"]

    def _kernels(self) -> list[str]:
        """Lines that say how the kernels are configured."""
        lines = (f"{k.device}: stage {k.stage}: {k.origin}" for k in self.kernels)
        return [*dict.fromkeys(lines)]


def _row(place: PlaceReport) -> tuple[str, ...]:
    longest = max(place.waits, key=lambda wait: wait.seconds, default=None)
    return (
        str(place.place),
        str(place.rank),
        place.device,
        f"{place.share:.1%}",
        size(place.memory.on_device),
        _number(place.cells_per_s),
        duration(place.compute_s),
        duration(place.exposed_s),
        "-" if place.hidden is None else f"{place.hidden:.0%}",
        "-" if longest is None else f"place {longest.place} {duration(longest.seconds)}",
    )


def _number(value: float) -> str:
    return f"{value:.3g}"
